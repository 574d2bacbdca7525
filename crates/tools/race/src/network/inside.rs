//! Namespaces of the race's own: the command runs itself again inside them.
//!
//! Inside, the race is the first process of its own process namespace: when it ends, however that happens, the kernel ends
//! everything it has started, and with the last process go the networks, mounts and names. The command outside only
//! waits. Its pipe to the race carries a byte for each signal, and its end is the end of the race.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Says to the command that it is the one inside.
const INSIDE: &str = "REGATTA_RACE_INSIDE";

/// Is this the race inside? The variable alone is not enough: a race that took itself for the one inside would mount over the /run of
/// its host.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some() && std::process::id() == 1
}

/// The command that runs another one in namespaces of its own.
fn apart() -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args([
        "--mount",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]);
    command
}

/// May this user have namespaces at all?
pub fn check() -> Result<()> {
    let tried = apart().arg("true").stdin(Stdio::null()).output();
    let output =
        tried.context("a race between hosts takes the command unshare (package util-linux)")?;
    if !output.status.success() {
        bail!(
            "a race between hosts takes namespaces of its own, and this user gets none ({}): run it as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// Run this very command inside, and wait for its end.
pub fn run() -> Result<ExitCode> {
    check()?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let own = std::env::current_exe().context("the path of this command is unknown")?;
    let mut child = apart()
        .arg(own)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, "1")
        .stdin(Stdio::piped())
        // Signals of the terminal come here only, and go on through the pipe.
        .process_group(0)
        .spawn()
        .context("cannot run unshare")?;
    let mut pipe = child.stdin.take().context("no pipe")?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if pipe.write_all(&[signal as u8]).is_err() {
                break;
            }
        }
    });
    let status = child.wait()?;
    Ok(ExitCode::from(status.code().map_or(1, |code| code as u8)))
}

/// Inside: take signals from the pipe, and end with the command outside.
pub fn follow() {
    // The group it comes from has no number here.
    let _ = rustix::process::setpgid(None, None);
    std::thread::spawn(|| {
        let mut byte = [0];
        while let Ok(1) = std::io::stdin().read(&mut byte) {
            let signal = match i32::from(byte[0]) {
                SIGTERM => SIGTERM,
                _ => SIGINT,
            };
            let _ = signal_hook::low_level::raise(signal);
        }
        std::process::exit(1);
    });
}
