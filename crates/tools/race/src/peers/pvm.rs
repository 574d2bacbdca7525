//! PVM 3.4: a daemon, and tasks that the daemon spawns. Each launch gets a private virtual machine: one daemon with a
//! folder of its own, or a daemon on each host.
//!
//! The user's own virtual machine, if there is one, is neither used nor disturbed: PVM finds a daemon through a file in
//! `PVM_TMP`, which is set to the race's folder.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Mark;
use anyhow::{Context, Result, bail};

use super::{Facts, Job, Look, Machine, Peer, Surroundings, lacks_of_others, missing};
use crate::discover::{Competitor, c_compiler};
use crate::network::Network;
use crate::network::hosts::Hosts;
use crate::prepare::quietly;
use crate::process::{self, Supervisor};
use crate::settings::{Set, Tuning, When};
use crate::tree::Tree;

/// Its name in results.
pub const NAME: &str = "pvm";
/// As [`NAME`], with messages that are routed through the daemons.
pub const DAEMON: &str = "pvm-daemon";
/// The adapter for programs of PVM.
pub const ADAPTER: &str = "pvm";
/// The variable that makes programs skip the call for the direct route.
pub const BY_DAEMON: (&str, &str) = ("RACE_PVM_ROUTE", "daemon");
/// Note for readers about the times of environments with daemons.
pub const NOTE: &str =
    "'s time to join and leave is without starting its daemon, which runs already";

/// Returns the setting for the direct route, which the adapter requests in the program.
pub const fn direct(reason: &'static str) -> Tuning {
    let set = Set::Arguments(&["pvm_setopt(PvmRoute, PvmRouteDirect)"]);
    Tuning {
        in_program: true,
        ..Tuning::local(When::Always, &[], set, reason)
    }
}

/// PVM.
#[derive(Debug)]
pub struct Pvm;

static FACTS: Facts = Facts {
    looks: &[
        Look::new(NAME, "PVM", "#b16eb9", Mark::TriangleUp),
        Look::new(
            DAEMON,
            "PVM by its daemons",
            "#8a4f92",
            Mark::TriangleUpOpen,
        )
        .of_a_suite(),
    ],
    adapter: ADAPTER,
    libraries: &["libpvm3"],
    lacks: lacks_of_others,
    misses: |network| {
        let why = "is not raced over 127.0.0.1: its tasks on one host talk by Unix sockets";
        (network == Network::Loopback).then_some(why)
    },
    // PVM's daemons cannot be paused, so they would route messages during the turns of others.
    takes_turns: false,
    starts_tasks: true,
    note: Some(NOTE),
    tunings: &[direct(
        "tasks talk to each other, not through the daemon; pvm_psend and pvm_precv, which neither pack nor convert",
    )],
    ..Facts::USUAL
};

impl Peer for Pvm {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn find(&'static self, _machine: &Machine) -> Vec<Result<Competitor, String>> {
        let what = "packages pvm and pvm-dev of Debian and Ubuntu";
        match find() {
            Some(pvm) => vec![Ok(pvm.clone()), Ok(by_daemon(&pvm, DAEMON))],
            None => vec![Err(missing(NAME, what))],
        }
    }

    /// Returns the same program for both routes.
    fn program<'a>(&self, competitor: &'a Competitor) -> &'a str {
        match competitor.name == DAEMON {
            true => NAME,
            false => &competitor.name,
        }
    }

    fn prepare(&self, _peers: &Path) -> Option<Result<String>> {
        Some(install())
    }

    fn launch(&self, job: &Job) -> Command {
        job.by_itself()
    }

    /// Returns the command of the first task, which joins the daemon of its own host.
    fn launch_between(&self, job: &Job, hosts: &Hosts) -> Command {
        if hosts.network == Network::Loopback {
            return job.by_itself();
        }
        let mut command = Command::new(hosts.file("enter"));
        command.arg(hosts.each[0].name).arg(job.program);
        command.env("RACE_TASKS", job.tasks.to_string());
        command.env("RACE_HOSTS", hosts.words(false));
        command
    }

    fn surround(
        &self,
        supervisor: &Supervisor,
        competitor: &Competitor,
        work: &Path,
        hosts: Option<&Hosts>,
    ) -> Result<Option<Box<dyn Surroundings>>> {
        let machine = VirtualMachine::start(supervisor, competitor, work, hosts)?;
        Ok(Some(Box::new(machine)))
    }
}

/// Returns PVM as it is installed here, or `None` if it is not.
pub fn find() -> Option<Competitor> {
    let root = env::var_os("PVM_ROOT")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from("/usr/lib/pvm3"));
    let daemon = root.join("lib/pvmd");
    let header = Path::new("/usr/include/pvm3.h").exists() || root.join("include/pvm3.h").exists();
    if !daemon.exists() || !header {
        return None;
    }
    let variables = [
        ("PVM_ALLOW_ROOT", "1".to_owned()),
        ("PVM_ROOT", root.to_string_lossy().into_owned()),
        // Spawned tasks get the daemon's variables, and those of their parent's variables that are named here.
        ("PVM_EXPORT", EXPORTED.to_owned()),
    ];
    Some(Competitor {
        name: NAME.to_owned(),
        peer: &Pvm,
        tuned: true,
        compiler: c_compiler(),
        flags: vec![
            format!("-I{}/include", root.display()),
            "-lgpvm3".to_owned(),
            "-lpvm3".to_owned(),
        ],
        launcher: daemon,
        arguments: Vec::new(),
        variables: variables
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec(),
        on_request: false,
    })
}

/// Variables that spawned tasks inherit from their parent.
pub const EXPORTED: &str = "RACE_HOLD:RACE_PVM_ROUTE";

/// Returns the same environment with another name, with messages through the daemons and no settings.
pub fn by_daemon(direct: &Competitor, name: &str) -> Competitor {
    let (variable, value) = BY_DAEMON;
    let mut variables = direct.variables.clone();
    variables.push((variable.to_owned(), value.to_owned()));
    Competitor {
        name: name.to_owned(),
        tuned: false,
        variables,
        on_request: true,
        ..direct.clone()
    }
}

/// Interval between checks that a daemon is up.
const DAEMON_CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// A running daemon. Dropping it ends the virtual machine and all its tasks.
struct VirtualMachine {
    daemon: Tree,
    folder: PathBuf,
    /// The folders in which the hosts' daemons write their addresses. The first is `folder`.
    folders: Vec<PathBuf>,
}

/// Returns a host file for these hosts, with this daemon on each. Debian installs the group server in /usr/bin, where
/// the daemon does not search by default.
fn host_file(names: &[&str], daemon: &Path) -> String {
    let servers = daemon.parent().unwrap_or(Path::new("/"));
    let line = |name: &&str| {
        let (servers, daemon) = (servers.display(), daemon.display());
        format!("{name} ep=/usr/bin:{servers} dx={daemon}\n")
    };
    names.iter().map(line).collect()
}

/// Returns the command of the first daemon, on its host.
fn command(daemon: &Path, hosts: Option<&Hosts>, name: &str) -> Command {
    let Some(hosts) = hosts else {
        return Command::new(daemon);
    };
    let mut command = Command::new(hosts.file("enter"));
    command
        .arg(name)
        .arg(daemon)
        .env("PVM_RSH", hosts.file("rsh"));
    command
}

impl VirtualMachine {
    /// Starts a daemon below `work` and waits until it can spawn tasks.
    fn start(
        supervisor: &Supervisor,
        competitor: &Competitor,
        work: &Path,
        hosts: Option<&Hosts>,
    ) -> Result<VirtualMachine> {
        let hosts = hosts.filter(|hosts| hosts.network != Network::Loopback);
        let folders: Vec<PathBuf> = match hosts {
            None => vec![work.join("pvm")],
            Some(hosts) => {
                let pvm = hosts.file("pvm");
                hosts.each.iter().map(|host| pvm.join(host.name)).collect()
            }
        };
        for folder in &folders {
            let _ = fs::remove_dir_all(folder);
            fs::create_dir_all(folder)?;
        }
        let folder = folders[0].clone();
        let list = folder.join("hosts");
        let names: Vec<&str> = match hosts {
            None => vec!["localhost"],
            Some(hosts) => hosts.each.iter().map(|host| host.name).collect(),
        };
        fs::write(&list, host_file(&names, &competitor.launcher))?;
        let mut daemon = command(&competitor.launcher, hosts, names[0]);
        daemon
            .arg(format!("-n{}", names[0]))
            .arg(&list)
            .envs(
                competitor
                    .variables
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .env("PVM_TMP", &folder);
        let mut daemon = process::tied(daemon);
        daemon
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let daemon = supervisor.spawn(&mut daemon)?;
        let mut machine = VirtualMachine {
            daemon,
            folder,
            folders,
        };
        machine.await_ready()?;
        Ok(machine)
    }

    /// Waits until a daemon is ready: it then has written its address to the file pvmd.UID.
    fn await_ready(&mut self) -> Result<()> {
        let file = format!("pvmd.{}", rustix::process::getuid().as_raw());
        let written =
            |folder: &PathBuf| fs::metadata(folder.join(&file)).is_ok_and(|m| m.len() > 0);
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.folders.iter().all(written) {
            if let Some(status) = self.daemon.child().try_wait()? {
                bail!(
                    "the PVM daemon ended immediately ({status}): {}",
                    self.log()
                );
            }
            if self.daemon.stop().wait(DAEMON_CHECK_INTERVAL) {
                bail!("the race was interrupted");
            }
            if Instant::now() > deadline {
                bail!("the PVM daemon was not ready within 10 s: {}", self.log());
            }
        }
        Ok(())
    }

    fn log(&self) -> String {
        let uid = rustix::process::getuid().as_raw();
        fs::read_to_string(self.folder.join(format!("pvml.{uid}")))
            .unwrap_or_default()
            .trim()
            .to_owned()
    }
}

impl Surroundings for VirtualMachine {
    /// Returns the variable by which tasks find this daemon.
    fn variable(&self) -> (&'static str, String) {
        ("PVM_TMP", self.folder.display().to_string())
    }
}

impl Drop for VirtualMachine {
    fn drop(&mut self) {
        // The daemon ends its tasks and removes its files on SIGTERM.
        self.daemon.end();
        for folder in &self.folders {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Installs PVM as a package, if this process may.
fn install() -> Result<String> {
    if Path::new("/usr/lib/pvm3/lib/pvmd").exists() && Path::new("/usr/include/pvm3.h").exists() {
        return Ok("is installed".to_owned());
    }
    let by_hand = "install it with `sudo apt-get install pvm pvm-dev`; Debian 13 has no PVM: build PVM 3.4 there and set PVM_ROOT";
    if quietly(Command::new("apt-get").arg("--version")).is_err() {
        bail!("apt-get is missing: install PVM 3.4 manually and set PVM_ROOT");
    }
    let how = if is_root() { "" } else { "sudo -n " };
    eprintln!(
        "regatta: PVM is missing, so its packages are installed: {how}apt-get install pvm pvm-dev"
    );
    let install = |update: bool| {
        let mut command = if is_root() {
            Command::new("apt-get")
        } else {
            Command::new("sudo")
        };
        if !is_root() {
            command.args(["-n", "apt-get"]);
        }
        command.env("DEBIAN_FRONTEND", "noninteractive");
        if update {
            command.arg("update")
        } else {
            command.args(["install", "-y", "--no-install-recommends", "pvm", "pvm-dev"])
        };
        quietly(&mut command)
    };
    if install(false).is_err() {
        // Fresh images have no package lists.
        install(true).context(by_hand)?;
        install(false).context(by_hand)?;
    }
    Ok("installed from the distribution's packages".to_owned())
}
