//! Channels that outlive the command that has opened them.
//!
//! If a machine must end with the allocation of its hosts, such as one of Slurm, the commands that carry its channels
//! stay, one for each host: the daemons there end with them. A separate process, the keeper, holds these channels, and
//! the local descriptor that depends on them. It ends when the last command has ended.

use std::os::fd::{AsFd, OwnedFd};

use regatta_program::Refusal;
use rustix::event::{PollFd, PollFlags};
use rustix::process::PidfdFlags;

use crate::channel::remote::{self, Remote};
use crate::plan::Across;
use crate::sys;
use crate::system::signals::Signals;

/// Channels whose commands go on running.
pub struct Channels {
    pub(crate) remotes: Vec<Remote>,
}

impl Channels {
    /// Opens a channel to the only host of `across`, on which nothing is sent. It ends with the host, or with its
    /// keeper.
    pub fn to(across: &Across) -> Result<Channels, Refusal> {
        let signals = Signals::catch()?;
        let remote = Remote::open(across, 0, &across.hosts[0].name, &signals)?;
        sys::restore(signals.before());
        Ok(Channels {
            remotes: vec![remote],
        })
    }

    /// Closes the channels, and returns when their commands have ended.
    pub fn end(mut self) {
        remote::part(&mut self.remotes);
    }

    /// Forks a process that keeps the channels and `hanging`, which may end before them. The caller must be
    /// single-threaded.
    pub fn keep(self, hanging: impl AsFd) -> Result<(), Refusal> {
        let failed = |errno| {
            Refusal::of_regatta(format!(
                "the process that stays with the daemons cannot be started: {errno}"
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
        // Leave the session of the user's terminal.
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

/// Waits until all commands have ended. If `hanging` ends first, the channels are closed, so that the commands that
/// wait for them end as well.
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
