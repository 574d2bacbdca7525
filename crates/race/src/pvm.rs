//! A private virtual machine of PVM 3.4 for one launch: one daemon, in a folder of its own.
//!
//! The user's own virtual machine, if there is one, is neither used nor disturbed: PVM finds a
//! daemon through a file in `PVM_TMP`, and that is ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::discover::Competitor;
use crate::process;

/// A running daemon; dropping it ends the virtual machine and all its tasks.
pub struct VirtualMachine {
    daemon: Child,
    folder: PathBuf,
}

impl VirtualMachine {
    /// Start a daemon below `work` and wait until it takes tasks.
    pub fn start(competitor: &Competitor, work: &Path) -> Result<VirtualMachine> {
        let folder = work.join("pvm");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        // Debian keeps the group server in /usr/bin, where the daemon does not look by itself.
        let hosts = folder.join("hosts");
        let servers = competitor
            .launcher
            .parent()
            .unwrap_or(Path::new("/"))
            .display()
            .to_string();
        fs::write(&hosts, format!("localhost ep=/usr/bin:{servers}\n"))?;
        let daemon = Command::new(&competitor.launcher)
            .arg("-nlocalhost")
            .arg(&hosts)
            .envs(
                competitor
                    .variables
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .env("PVM_TMP", &folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| {
                format!(
                    "cannot start the PVM daemon {}",
                    competitor.launcher.display()
                )
            })?;
        let mut machine = VirtualMachine { daemon, folder };
        machine.await_ready()?;
        Ok(machine)
    }

    /// Where tasks find this daemon.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The daemon is ready once it has written its address into the file pvmd.UID.
    fn await_ready(&mut self) -> Result<()> {
        let address = self
            .folder
            .join(format!("pvmd.{}", rustix::process::getuid().as_raw()));
        let deadline = Instant::now() + Duration::from_secs(10);
        while fs::metadata(&address).map(|m| m.len()).unwrap_or(0) == 0 {
            if let Some(status) = self.daemon.try_wait()? {
                bail!("the PVM daemon ended at once ({status}): {}", self.log());
            }
            if Instant::now() > deadline {
                bail!(
                    "the PVM daemon did not become ready in 10 s: {}",
                    self.log()
                );
            }
            std::thread::sleep(Duration::from_millis(2));
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
        let pid = Pid::from_child(&self.daemon);
        let tasks = process::descendants(pid.as_raw_nonzero().get());
        // The daemon ends its tasks and removes its files on SIGTERM.
        let _ = kill_process(pid, Signal::TERM);
        let deadline = Instant::now() + Duration::from_secs(2);
        while matches!(self.daemon.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        process::end_all(&tasks);
        let _ = fs::remove_dir_all(&self.folder);
    }
}
