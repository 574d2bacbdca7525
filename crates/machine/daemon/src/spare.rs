//! A reserve thread for callers for whom no thread can be started: it tells them why they are not served.
//!
//! A caller whose connection is closed without a message has to assume that this daemon has died. One thread tells all
//! of these callers the reason, one after the other, each for a short time. If too many wait, further ones are closed
//! without a message.

use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use regatta_launch::limits;
use rustix::process::Pid;

use crate::answer;
use crate::daemon::Daemon;
use crate::talk::Wire;

/// Maximum number of callers that wait for the reserve thread.
const MAX_QUEUED_CALLERS: usize = 64;

/// A connection of a caller: a process of the user, or a daemon (`None`).
type Caller = (Wire, Option<Pid>);

/// The reserve thread. It ends when this is dropped.
pub(crate) struct Spare(SyncSender<(Caller, io::Error)>);

impl Spare {
    pub(crate) fn start(daemon: &Arc<Daemon>) -> io::Result<Spare> {
        let (unserved, told) = mpsc::sync_channel(MAX_QUEUED_CALLERS);
        let daemon = daemon.clone();
        Builder::new().spawn(move || tell_all(&daemon, &told))?;
        Ok(Spare(unserved))
    }

    /// Serves a caller in a thread of its own. If none can be started, the reserve thread tells the caller the reason.
    pub(crate) fn serve(&self, daemon: &Arc<Daemon>, thread: Builder, caller: Caller) {
        let caller = Arc::new(Mutex::new(Some(caller)));
        let (daemon, taken) = (daemon.clone(), caller.clone());
        let take = |caller: &Mutex<Option<Caller>>| {
            let mut place = caller.lock().unwrap_or_else(PoisonError::into_inner);
            place.take()
        };
        let started = thread.spawn(move || {
            if let Some((wire, process)) = take(&taken) {
                answer::serve(&daemon, wire, process);
            }
        });
        if let Err(error) = started
            && let Some(caller) = take(&caller)
        {
            let _ = self.0.try_send((caller, error));
        }
    }
}

fn tell_all(daemon: &Daemon, unserved: &Receiver<(Caller, io::Error)>) {
    for ((wire, process), error) in unserved {
        let what = format!("the daemon of {} cannot answer", daemon.charge.name);
        let why = limits::no_process(&what, &error);
        answer::turn_away(daemon, wire, process, why.sentence);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use regatta_launch::identity;
    use regatta_wire::session::{FromDaemon, FromJob, PREAMBLE, PROTOCOL};

    use super::*;
    use crate::ask::{Ask, Opening, Reply};
    use crate::daemon::tests::daemon;
    use crate::talk::Talk;

    /// Returns a talk with a daemon that has no thread for it.
    fn unserved(spare: &Spare, daemon: &Arc<Daemon>) -> Talk {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let wire = Wire::local(ours).expect("a wire");
        // A stack of this size does not fit into any address space.
        let thread = Builder::new().stack_size(1 << 60);
        let caller = (wire, Some(rustix::process::getpid()));
        spare.serve(daemon, thread, caller);
        Talk::new(
            Wire::local(theirs).expect("a wire"),
            Duration::from_secs(60),
        )
    }

    #[test]
    fn a_command_for_which_there_is_no_thread_is_told_so() {
        let daemon = daemon();
        let spare = Spare::start(&daemon).expect("a thread");
        let mut command = unserved(&spare, &daemon);
        let opening = Opening {
            identity: identity(),
            from: None,
            to: None,
            ask: Ask::Hosts { watch: false },
        };
        command.send_line(&opening).expect("room");
        match command.receive::<Reply>() {
            Ok(Reply::Refused(sentence)) => {
                assert!(
                    sentence.starts_with("the daemon of alpha cannot answer"),
                    "{sentence}"
                );
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_process_of_a_job_for_which_there_is_no_thread_is_told_so() {
        let daemon = daemon();
        let spare = Spare::start(&daemon).expect("a thread");
        // A caller that sends nothing delays the next one only for a short time.
        let _silent = unserved(&spare, &daemon);
        let mut job = unserved(&spare, &daemon);
        let hello = FromJob::Hello {
            protocol: PROTOCOL,
            identity: identity(),
        };
        job.send(&PREAMBLE).expect("room");
        job.send_message(&hello).expect("room");
        job.send_message(&FromJob::Watch {}).expect("room");
        let greeted = job.receive_message::<FromDaemon>(1 << 10);
        assert!(matches!(greeted, Ok(FromDaemon::Hello { .. })));
        let told = job.receive_message::<FromDaemon>(1 << 10);
        assert!(
            matches!(&told, Ok(FromDaemon::Refused { sentence }) if sentence.contains("alpha")),
            "{told:?}"
        );
    }

    #[test]
    fn a_caller_is_served_in_a_thread_of_its_own() {
        let daemon = daemon();
        let spare = Spare::start(&daemon).expect("a thread");
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let wire = Wire::local(ours).expect("a wire");
        let caller = (wire, Some(rustix::process::getpid()));
        spare.serve(&daemon, Builder::new(), caller);
        let mut command = Talk::new(
            Wire::local(theirs).expect("a wire"),
            Duration::from_secs(60),
        );
        let opening = Opening {
            identity: identity(),
            from: None,
            to: None,
            ask: Ask::Hosts { watch: false },
        };
        command.send_line(&opening).expect("room");
        let reply = command.receive::<Reply>();
        assert!(matches!(reply, Ok(Reply::Hosts(_))), "{reply:?}");
    }
}
