//! Installation of peers: the list, and the common parts of peers that are wheels of PyPI. Nothing outside the peers'
//! folder is touched, except that PVM is installed as a package if this process may do that.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::discover::Competitor;
use crate::peers::{self, Machine, Peer, missing};

/// The result of the installation of one peer.
#[derive(Debug)]
pub struct Prepared {
    /// Name of the peer's first environment.
    pub name: &'static str,
    /// What was done, or the failure and its remedy.
    pub outcome: Result<String>,
}

/// Installs every peer that is not installed yet.
pub fn prepare(peers: &Path) -> Vec<Prepared> {
    let mut all = peers::ALL.to_vec();
    all.sort_by_key(|peer| peer.facts().takes_package_lists);
    let each = all.into_iter().filter_map(|peer| {
        let outcome = peer.prepare(peers)?;
        let name = peer.facts().looks[0].name;
        Some(Prepared { name, outcome })
    });
    each.collect()
}

/// Runs a command without showing its output, and returns that. If the command fails, the error has its last line of
/// standard error.
pub fn quietly(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("without a word");
        bail!("{name} failed: {last}");
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Installs a library of PyPI in a venv of its own. Returns what was done.
pub fn wheel(peers: &Path, name: &str) -> Result<String> {
    let folder = peers.join(name);
    if folder.join("bin/mpicc").exists() {
        return Ok(format!("is in {}", folder.display()));
    }
    fs::create_dir_all(peers).with_context(|| format!("cannot create {}", peers.display()))?;
    quietly(Command::new("python3").args(["-m", "venv"]).arg(&folder))
        .context("a venv is needed: install python3-venv")?;
    let pip = folder.join("bin/pip");
    quietly(Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check", name]))
        .context("check that PyPI can be reached")?;
    Ok(format!("installed into {}", folder.display()))
}

/// Returns the environments of a library of PyPI in its own folder, with its best settings and with its defaults.
/// `variables` are set to 1 in every launch.
pub fn wheel_in(
    machine: &Machine,
    name: &str,
    default: &str,
    peer: &'static dyn Peer,
    variables: &[&str],
) -> Vec<Result<Competitor, String>> {
    let bin = machine.peers.join(name).join("bin");
    let (compiler, launcher) = (bin.join("mpicc"), bin.join("mpirun"));
    if !compiler.exists() || !launcher.exists() {
        return vec![Err(missing(name, "a wheel on PyPI"))];
    }
    let variables = variables.iter();
    let tuned = Competitor {
        name: name.to_owned(),
        peer,
        tuned: true,
        compiler,
        flags: Vec::new(),
        launcher,
        arguments: Vec::new(),
        variables: variables
            .map(|name| ((*name).to_owned(), "1".to_owned()))
            .collect(),
        on_request: false,
    };
    let as_it_comes = Competitor {
        name: default.to_owned(),
        tuned: false,
        on_request: true,
        ..tuned.clone()
    };
    vec![Ok(tuned), Ok(as_it_comes)]
}
