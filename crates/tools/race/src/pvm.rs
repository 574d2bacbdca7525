//! A private virtual machine of PVM 3.4 for one launch: one daemon, in a folder of its own, or one on each host.
//!
//! The user's own virtual machine, if there is one, is neither used nor disturbed: PVM finds a
//! daemon through a file in `PVM_TMP`, and that is ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::discover::Competitor;
use crate::network::Network;
use crate::network::hosts::Hosts;
use crate::process::{self, Supervisor};
use crate::tree::Tree;

/// How often a daemon that has been started is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// A running daemon; dropping it ends the virtual machine and all its tasks.
pub struct VirtualMachine {
    daemon: Tree,
    folder: PathBuf,
    /// Where each host's daemon writes its address; the first one's is `folder`.
    folders: Vec<PathBuf>,
}

/// A host file for these hosts, with this daemon on each. Debian keeps the group server in /usr/bin, where the daemon does not look by itself.
fn host_file(names: &[&str], daemon: &Path) -> String {
    let servers = daemon.parent().unwrap_or(Path::new("/"));
    let line = |name: &&str| {
        let (servers, daemon) = (servers.display(), daemon.display());
        format!("{name} ep=/usr/bin:{servers} dx={daemon}\n")
    };
    names.iter().map(line).collect()
}

/// The command of the first daemon, where its host is.
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
    /// Start a daemon below `work` and wait until it takes tasks.
    pub fn start(
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

    /// Where tasks find this daemon.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A daemon is ready once it has written its address into the file pvmd.UID.
    fn await_ready(&mut self) -> Result<()> {
        let file = format!("pvmd.{}", rustix::process::getuid().as_raw());
        let written =
            |folder: &PathBuf| fs::metadata(folder.join(&file)).is_ok_and(|m| m.len() > 0);
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.folders.iter().all(written) {
            if let Some(status) = self.daemon.child().try_wait()? {
                bail!("the PVM daemon ended at once ({status}): {}", self.log());
            }
            if self.daemon.stop().wait(LOOK) {
                bail!("the race is to stop");
            }
            if Instant::now() > deadline {
                bail!(
                    "the PVM daemon did not become ready in 10 s: {}",
                    self.log()
                );
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

impl Drop for VirtualMachine {
    fn drop(&mut self) {
        // The daemon ends its tasks and removes its files on SIGTERM.
        self.daemon.end();
        for folder in &self.folders {
            let _ = fs::remove_dir_all(folder);
        }
    }
}
