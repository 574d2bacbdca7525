//! The environment of tasks that another host has ordered to be started here.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use regatta_program::Variable;

use crate::hosts::expand::expand;

/// Variables that describe a host, or the user's login there. Each host keeps its own.
const LOCAL: [&str; 11] = [
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "HOSTNAME",
    "MAIL",
    "TMPDIR",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// Returns the directory on this host. Variables of this host are replaced in a text that is no absolute path.
pub(crate) fn directory_here(directory: OsString) -> OsString {
    match directory.to_str() {
        Some(text) if !text.starts_with('/') => {
            expand(text, |name| std::env::var(name).ok()).into()
        }
        _ => directory,
    }
}

/// Returns the environment that another host has sent, with this host's own variables, for tasks that start in this
/// directory.
pub(crate) fn adapted(sent: impl Iterator<Item = Variable>, directory: OsString) -> Vec<Variable> {
    let in_step = std::env::var_os("SLURM_STEP_ID").is_some();
    let is_local = |name: &OsStr| {
        let bytes = name.as_bytes();
        LOCAL.iter().any(|local| local.as_bytes() == bytes)
            || in_step && name.to_str().is_some_and(regatta_slurm::is_of_step)
            || bytes.starts_with(b"SSH_")
            || bytes.starts_with(b"XDG_")
    };
    let own =
        std::env::vars_os().filter(|(name, _)| is_local(name) && name != "PWD" && name != "OLDPWD");
    own.chain(sent.filter(|(name, _)| !is_local(name)))
        .chain([("PWD".into(), directory)])
        .collect()
}
