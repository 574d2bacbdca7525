//! Channels that are to outlive the command which has opened them.
//!
//! Where a machine is to end with what its hosts were lent for, as an allocation of Slurm, the commands that carry its
//! channels stay, one for each host: they are what the daemons there hang on. A process of its own, the keeper, holds
//! them, and with them whatever hangs on it here. It ends when the last of them has ended.

use std::os::fd::{AsFd, OwnedFd};

use regatta_program::Refusal;
use rustix::event::{PollFd, PollFlags};
use rustix::process::PidfdFlags;

use crate::channel::remote::{self, Remote};
use crate::plan::Across;
use crate::sys;
use crate::system::signals::Signals;

/// Channels whose commands go on.
pub struct Channels {
    pub(crate) remotes: Vec<Remote>,
}

impl Channels {
    /// A channel to this one host, on which nothing is said: it ends with the host, or with its keeper.
    pub fn to(across: &Across) -> Result<Channels, Refusal> {
        let signals = Signals::catch()?;
        let remote = Remote::open(across, 0, &across.hosts[0].name, &signals)?;
        sys::restore(signals.before());
        Ok(Channels {
            remotes: vec![remote],
        })
    }

    /// Ends them, and returns when their commands have ended.
    pub fn end(mut self) {
        remote::part(&mut self.remotes);
    }

    /// Has a process of its own keep the channels and `hanging`, which may end before them. The caller must have one thread.
    pub fn keep(self, hanging: impl AsFd) -> Result<(), Refusal> {
        let failed = |errno| {
            Refusal::of_regatta(format!(
                "nothing can be started that stays with the daemons: {errno}"
            ))
        };
        let commands: rustix::io::Result<Vec<OwnedFd>> = self
            .remotes
            .iter()
            .filter_map(Remote::command)
            .map(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()))
            .collect();
        let commands = commands.map_err(failed)?;
        if sys::fork().map_err(failed)?.is_some() {
            return Ok(());
        }
        // The session of a command at a terminal is not for this process.
        let _ = rustix::process::setsid();
        let _ = rustix::thread::set_name(c"regatta-keeper");
        let _ = rustix::process::chdir("/");
        sys::unblock_all();
        if let Ok(null) = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
        {
            let _ = rustix::stdio::dup2_stdin(&null);
            let _ = rustix::stdio::dup2_stdout(&null);
            let _ = rustix::stdio::dup2_stderr(&null);
        }
        wait(commands, self, &hanging);
        std::process::exit(0)
    }
}

/// Until all commands have ended. When what hangs here ends before them, the channels are closed, for those that look at them.
fn wait(mut commands: Vec<OwnedFd>, mut channels: Channels, hanging: &impl AsFd) {
    let mut hangs = true;
    while !commands.is_empty() {
        let mut fds: Vec<PollFd> = commands
            .iter()
            .map(|command| PollFd::new(command, PollFlags::IN))
            .collect();
        fds.extend(hangs.then(|| PollFd::new(hanging, PollFlags::RDHUP)));
        if regatta_connection::ready::poll(&mut fds, None).is_err() {
            continue;
        }
        let mut ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        if hangs && ready.pop() == Some(true) {
            hangs = false;
            let close = |remote: &mut Remote| remote.link.close();
            channels.remotes.iter_mut().for_each(close);
        }
        let mut ended = ready.into_iter();
        commands.retain(|_| ended.next() != Some(true));
    }
}
