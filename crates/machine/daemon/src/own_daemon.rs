//! Waits for the end of this host's daemon, for a command that asked for it. It returns when the process has ended and
//! has released its resources.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use regatta_connection::local_socket;
use regatta_launch::Refusal;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags};

use crate::ask::Reply;
use crate::talk::{Talk, wait};

/// Time that the process may take after its last answer: longer than a daemon waits for jobs that end with it, and for
/// a locked directory.
pub(crate) const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// The process of the daemon at the other end of a talk.
pub(crate) struct OwnDaemon {
    pid: Pid,
    process: OwnedFd,
}

impl OwnDaemon {
    /// Returns the process. To be called before any request, since an answer then proves that the process lives and
    /// still has this process id. Returns `None` if the process is not visible from here, for example if a container
    /// shares the directory of the sockets with its host.
    pub(crate) fn of(talk: &Talk) -> Option<OwnDaemon> {
        let (pid, _) = local_socket::peer(talk)?;
        OwnDaemon::numbered(Pid::from_raw(pid as i32)?)
    }

    fn numbered(pid: Pid) -> Option<OwnDaemon> {
        let process = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(OwnDaemon { pid, process })
    }
}

/// Waits for the end of a daemon that has agreed to end. If its process is not visible, waits for the end of the
/// connection.
pub(crate) fn await_end(
    mut talk: Talk,
    daemon: Option<OwnDaemon>,
    limit: Duration,
) -> Result<(), Refusal> {
    let (has_ended, process, remedy) = match daemon {
        Some(OwnDaemon { pid, process }) => (
            ends_until(&process, Instant::now() + limit),
            format!(" (process {pid})"),
            format!("`kill -KILL {pid}` ends it"),
        ),
        None => {
            talk.limit(Some(limit));
            let answer = talk.receive::<Reply>();
            (
                !answer.is_err_and(|error| error.kind() == ErrorKind::TimedOut),
                String::new(),
                "`pkill -KILL regatta-daemon` ends it".to_owned(),
            )
        }
    };
    match has_ended {
        true => Ok(()),
        false => Err(Refusal::of_regatta(format!(
            "the daemon of this host{process} has not ended within {} s; processes that its jobs started may still run here; {remedy}",
            limit.as_secs()
        ))),
    }
}

/// Waits for the end of the process. Returns `false` after `until`. A signal does not end the wait.
fn ends_until(process: &OwnedFd, until: Instant) -> bool {
    loop {
        let mut fds = [PollFd::new(process, PollFlags::IN)];
        let is_over = !wait(&mut fds, Some(until));
        if is_over || fds[0].revents().contains(PollFlags::IN) {
            return !is_over;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::talk::Wire;

    /// Returns a talk whose other side is closed.
    fn ended_talk() -> Talk {
        let (ours, _) = UnixStream::pair().expect("sockets");
        Talk::new(Wire::local(ours).expect("a wire"), EXIT_TIMEOUT)
    }

    #[test]
    fn a_daemon_has_ended_when_its_process_has_and_not_when_it_has_hung_up() {
        let mut command = Command::new("cat");
        let mut child = command.stdin(Stdio::piped()).spawn().expect("a process");
        let daemon = OwnDaemon::numbered(Pid::from_child(&child));
        assert!(daemon.is_some());
        let input = child.stdin.take();
        let refused = await_end(ended_talk(), daemon, Duration::ZERO);
        let sentence = refused.expect_err("it lives").sentence;
        let named = format!("(process {}) has not ended", child.id());
        assert!(sentence.contains(&named), "{sentence}");
        let daemon = OwnDaemon::numbered(Pid::from_child(&child));
        drop(input);
        await_end(ended_talk(), daemon, EXIT_TIMEOUT).expect("its end");
        let status = child.try_wait().expect("a child");
        assert!(status.is_some(), "it lives");
    }

    #[test]
    fn a_daemon_that_is_not_seen_from_here_has_ended_when_it_hangs_up() {
        await_end(ended_talk(), None, EXIT_TIMEOUT).expect("its end");
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        let talk = Talk::new(Wire::local(ours).expect("a wire"), EXIT_TIMEOUT);
        let refused = await_end(talk, None, Duration::ZERO);
        assert!(refused.is_err());
    }

    #[test]
    fn the_process_at_the_other_end_of_a_talk_is_known() {
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        let talk = Talk::new(Wire::local(ours).expect("a wire"), EXIT_TIMEOUT);
        let daemon = OwnDaemon::of(&talk).expect("this process");
        assert_eq!(daemon.pid, rustix::process::getpid());
    }
}
