//! Answers of a daemon to processes of jobs on its host. `regatta_wire::session` describes the messages.

use std::sync::Arc;

use regatta_launch::identity;
use regatta_wire::session::{FromDaemon, FromJob, MAX_REQUEST_BYTES, PREAMBLE, PROTOCOL};
use rustix::process::Pid;

use crate::answer::{self, Rest};
use crate::daemon::Daemon;
use crate::shells::Wanted;
use crate::talk::Talk;
use crate::{shells, tasks, unreached};

/// Answers the request of a process.
pub(crate) fn answer(
    daemon: &Arc<Daemon>,
    talk: Talk,
    caller: Pid,
    request: FromJob,
) -> Option<Rest> {
    match request {
        FromJob::Watch {} => {
            let mut last = None;
            Some(answer::watch(daemon, talk, move |daemon, talk| {
                let membership = daemon.snapshot(&daemon.lock());
                if last.as_ref() == Some(&membership) {
                    return Ok(());
                }
                last = Some(membership.clone());
                talk.send_message(&FromDaemon::Membership { membership })
            }))
        }
        FromJob::Unreachable { job, pairs } => {
            let (daemon, first) = (daemon.clone(), unreached::of_job(&job, pairs));
            Some(Box::new(move || unreached::listen(&daemon, talk, first)))
        }
        FromJob::Open {
            host,
            job,
            detachable,
        } => shells::open(
            daemon,
            talk,
            &host,
            (job, Wanted::New { detachable }),
            caller,
        ),
        FromJob::Claim { host, job } => {
            shells::open(daemon, talk, &host, (job, Wanted::Waiting), caller)
        }
        FromJob::OwnerLost {
            session,
            successors,
        } => {
            let daemon = daemon.clone();
            Some(Box::new(move || {
                hear_agent(&daemon, talk, caller, (session, successors));
            }))
        }
        FromJob::Hello { .. } => None,
    }
}

/// Exchanges hellos with a process and reads its request. Returns `None` unless it has the same version.
pub(crate) fn greet(daemon: &Daemon, talk: &mut Talk) -> Option<FromJob> {
    if talk.exactly(PREAMBLE.len()).ok()? != PREAMBLE {
        return None;
    }
    let hello = talk.receive_message::<FromJob>(MAX_REQUEST_BYTES).ok()?;
    let FromJob::Hello {
        protocol,
        identity: theirs,
    } = hello
    else {
        return None;
    };
    let ours = FromDaemon::Hello {
        protocol: PROTOCOL,
        identity: identity(),
    };
    talk.send_message(&ours).ok()?;
    if (protocol, &theirs) != (PROTOCOL, &identity()) {
        refuse(talk, answer::other_version(daemon, &theirs));
        return None;
    }
    talk.receive_message(MAX_REQUEST_BYTES).ok()
}

pub(crate) fn refuse(talk: &mut Talk, sentence: String) {
    let _ = talk.send_message(&FromDaemon::Refused { sentence });
}

/// Serves an agent that has lost its owner, as long as it listens for the next one. It must be a process of the session
/// that it names.
fn hear_agent(
    daemon: &Arc<Daemon>,
    mut talk: Talk,
    caller: Pid,
    (number, successors): (u64, Vec<String>),
) {
    let session = daemon.lock().channels.session(number);
    let session = session.filter(|(shell, _)| tasks::is_below(*shell, caller));
    let (Some((_, session)), Ok(socket)) = (session, talk.socket()) else {
        return refuse(&mut talk, "there is no such session".to_owned());
    };
    let connection = session.agent_knows(successors, socket);
    talk.limit(None);
    while let Ok(FromJob::OwnerLost {
        session: same,
        successors,
    }) = talk.receive_message(MAX_REQUEST_BYTES)
    {
        if same != number {
            break;
        }
        session.successors_are(connection, successors);
    }
    session.agent_is_gone(connection);
}
