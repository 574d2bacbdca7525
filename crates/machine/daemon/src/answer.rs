//! The answers of a daemon: to the user's commands on its host, and to other daemons.

use std::sync::Arc;
use std::time::{Duration, Instant};

use regatta_launch::{Refusal, identity};
use regatta_membership::{HostId, Input};
use regatta_wire::session::PREAMBLE;
use rustix::event::{PollFd, PollFlags};
use rustix::process::Pid;

use crate::ask::{Ask, Opening, Reply};
use crate::daemon::{Daemon, Moment};
use crate::talk::{Talk, Wire, wait};
use crate::{everybody, sessions, shells, tasks, unreached};

/// Time limit for a request and its answer.
pub(crate) const TALK_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that another daemon on a busy host may take to try an address. A firewall in between is noticed sooner.
pub(crate) const REACH_TIMEOUT: Duration = Duration::from_secs(10);

/// Time that a caller which is turned away may take to send its request.
const REFUSED_CALLER_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads a caller's request and refuses it with this reason.
pub(crate) fn turn_away(daemon: &Daemon, wire: Wire, caller: Option<Pid>, why: String) {
    let mut talk = Talk::new(wire, REFUSED_CALLER_TIMEOUT);
    let Ok(first) = talk.first_byte() else {
        return;
    };
    match caller.filter(|_| first == PREAMBLE[0]) {
        Some(_) if sessions::greet(daemon, &mut talk).is_some() => {
            sessions::refuse(&mut talk, why);
        }
        None if open(daemon, &mut talk, caller).is_some() => {
            let _ = talk.send_line(&Reply::Refused(why));
        }
        _ => {}
    }
}

/// Serves one conversation to its end. `caller` is the user's process that began it, or `None` for a daemon.
pub(crate) fn serve(daemon: &Arc<Daemon>, wire: Wire, caller: Option<Pid>) {
    let mut talk = Talk::new(wire, TALK_TIMEOUT);
    let Ok(first) = talk.first_byte() else {
        return;
    };
    let rest = match caller.filter(|_| first == PREAMBLE[0]) {
        Some(caller) => {
            let Some(request) = sessions::greet(daemon, &mut talk) else {
                return;
            };
            counted(daemon, || sessions::answer(daemon, talk, caller, request))
        }
        None => {
            let Some(opening) = open(daemon, &mut talk, caller) else {
                return;
            };
            counted(daemon, || answer(daemon, talk, opening))
        }
    };
    if let Some(rest) = rest {
        rest();
    }
}

/// Answers a request. A daemon that is to end waits for this.
fn counted<T>(daemon: &Arc<Daemon>, answer: impl FnOnce() -> T) -> T {
    daemon.lock().answers_due += 1;
    let answered = answer();
    daemon.lock().answers_due -= 1;
    daemon.announce();
    answered
}

/// Reads the first line. Returns `None`, after a refusal where one is due, if its sender may not make this request.
fn open(daemon: &Daemon, talk: &mut Talk, caller: Option<Pid>) -> Option<Opening> {
    let opening = talk.receive::<Opening>().ok()?;
    if !opening.ask.is_asked_by(caller.is_some()) {
        return None;
    }
    if opening.identity != identity() && !opening.ask.is_of_any_version() {
        let sentence = other_version(daemon, &opening.identity);
        let _ = talk.send_line(&Reply::Refused(sentence));
        return None;
    }
    let own = daemon.lock().membership.own().address();
    if let Some(to) = opening.to.filter(|&to| to != own) {
        let sentence = format!(
            "the daemon of {} was reached at {to} in place of another daemon; check whether something between the hosts redirects connections",
            daemon.charge.name
        );
        let _ = talk.send_line(&Reply::Refused(sentence));
        return None;
    }
    Some(opening)
}

/// Returns the refusal for a program of another version.
pub(crate) fn other_version(daemon: &Daemon, other: &str) -> String {
    format!(
        "the daemon of {} is regatta {}, but the program that connected to it is regatta {other}: use the same release on all hosts (`regatta down` works with any release)",
        daemon.charge.name,
        identity(),
    )
}

/// Work that takes longer than an answer.
pub(crate) type Rest = Box<dyn FnOnce()>;

fn answer(daemon: &Arc<Daemon>, mut talk: Talk, opening: Opening) -> Option<Rest> {
    let from = opening.from.map(HostId::from);
    let reply = match opening.ask {
        Ask::Hosts { watch: true } => {
            return Some(watch(daemon, talk, |daemon, talk| {
                talk.send_line(&Reply::Hosts(daemon.report()))
            }));
        }
        Ask::UnreachedThere { said } => {
            unreached::receive(daemon, from?, said);
            Ok(Reply::Done)
        }
        Ask::ClaimHere { job } => {
            shells::claim_here(daemon, talk, &job, from?);
            return None;
        }
        Ask::ShellHere { job, detachable } => {
            return shells::serve_daemon(daemon, talk, (job, detachable), from?);
        }
        Ask::Down | Ask::End | Ask::Leave => {
            depart(daemon, talk, &opening.ask);
            return None;
        }
        Ask::Hosts { watch: false } => Ok(Reply::Hosts(daemon.report())),
        Ask::JoinConfig => Ok(Reply::JoinConfig(Box::new(daemon.join_config()))),
        Ask::Move { address } => daemon.move_to(address).map(|()| Reply::Done),
        Ask::Remove { host } => everybody::remove(daemon, &host),
        Ask::Tasks => Ok(everybody::tasks(daemon)),
        Ask::Kill { target, signal } => everybody::kill(daemon, &target, signal),
        Ask::Vouch => vouch(daemon),
        Ask::Reach { at } => Talk::call(at, &daemon.keys, REACH_TIMEOUT)
            .map(|_| Reply::Done)
            .map_err(|error| Refusal::of_regatta(error.to_string())),
        Ask::TasksHere => Ok(Reply::Tasks {
            tasks: tasks::here(daemon),
            leaders: tasks::leaders(daemon),
            silent: Vec::new(),
        }),
        Ask::KillHere { job, rank, signal } => tasks::kill(daemon, &job, rank, signal),
    };
    let reply = reply.unwrap_or_else(|refusal| Reply::Refused(refusal.sentence));
    talk.limit(Some(TALK_TIMEOUT));
    let _ = talk.send_line(&reply);
    None
}

/// Leaves the machine in good order; the driver ends the daemon when the others know that.
pub(crate) fn leave(daemon: &Arc<Daemon>) {
    let state = daemon.lock();
    state.channels.let_go("this host leaves the machine");
    drop(state);
    daemon.notify(Input::Leave);
}

/// Ends this daemon, or all daemons. The command notices the end of the process by the end of its connection.
fn depart(daemon: &Arc<Daemon>, mut talk: Talk, how: &Ask) {
    let reply = match how {
        Ask::Down => everybody::down(daemon),
        Ask::Leave => {
            leave(daemon);
            Reply::Done
        }
        _ => Reply::Done,
    };
    talk.limit(Some(TALK_TIMEOUT));
    let _ = talk.send_line(&reply);
    let mut state = daemon.lock();
    state.exit_waiters.push(talk);
    state.over |= *how != Ask::Leave;
    drop(state);
    daemon.announce();
}

fn vouch(daemon: &Arc<Daemon>) -> Result<Reply, Refusal> {
    let absent = {
        let state = daemon.lock();
        if state.hindrance().is_none() {
            return Ok(Reply::Note(
                "a majority of the hosts answers, so there is nothing to vouch for".to_owned(),
            ));
        }
        state.unanswered()
    };
    daemon.notify(Input::Vouch);
    if absent.is_empty() {
        return Ok(Reply::Done);
    }
    Ok(Reply::Note(format!(
        "this side continues with the hosts that answer, and treats these as dead: {}. If they are alive and form a majority, this side ends its jobs and joins them as soon as it reaches them",
        absent.join(", ")
    )))
}

/// Calls `tell` now and after each change of the machine, until the other end has gone or the daemon ends.
pub(crate) fn watch(
    daemon: &Arc<Daemon>,
    mut talk: Talk,
    mut tell: impl FnMut(&Daemon, &mut Talk) -> std::io::Result<()> + 'static,
) -> Rest {
    let daemon = daemon.clone();
    daemon.lock().watchers += 1;
    Box::new(move || {
        loop {
            let moment = daemon.lock().moment();
            talk.limit(Some(TALK_TIMEOUT));
            if tell(&daemon, &mut talk).is_err() || !await_news(&daemon, &talk, moment) {
                break;
            }
            if daemon.lock().over {
                // The last report may contain the reason why the daemon ends.
                talk.limit(Some(TALK_TIMEOUT));
                let _ = tell(&daemon, &mut talk);
                break;
            }
        }
        daemon.lock().watchers -= 1;
        daemon.announce();
    })
}

/// Waits until there is something new, or the daemon is to end. Returns `false` if the other end has gone.
fn await_news(daemon: &Arc<Daemon>, talk: &Talk, moment: Moment) -> bool {
    let mut state = daemon.lock();
    while state.moment() == moment && !state.over {
        let until = Instant::now() + Duration::from_secs(1);
        state = match daemon.await_change(state, until) {
            Some(state) => state,
            None => daemon.lock(),
        };
        state.remarks.expire(Instant::now());
        // Checks once a second whether the other end has gone.
        let now = Some(Instant::now());
        if wait(&mut [PollFd::new(talk, PollFlags::IN)], now) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use regatta_wire::session::{FromDaemon, FromJob, PROTOCOL};

    use super::*;
    use crate::daemon::tests::daemon;

    #[test]
    fn a_daemon_does_nothing_that_another_one_was_asked() {
        let daemon = daemon();
        let own = daemon.lock().membership.own();
        let elsewhere = (own.address().ip(), own.address().port() ^ 1).into();
        for (to, is_meant) in [(elsewhere, false), (own.address(), true)] {
            let (ours, theirs) = UnixStream::pair().expect("sockets");
            let serving = daemon.clone();
            let server = std::thread::spawn(move || {
                let wire = Wire::local(ours).expect("a wire");
                serve(&serving, wire, None);
            });
            let mut other = Talk::new(Wire::local(theirs).expect("a wire"), TALK_TIMEOUT);
            let opening = Opening {
                identity: identity(),
                from: Some(own.into()),
                to: Some(to),
                ask: Ask::TasksHere,
            };
            other.send_line(&opening).expect("room");
            let reply = other.receive::<Reply>().expect("an answer");
            assert_eq!(matches!(reply, Reply::Tasks { .. }), is_meant, "{reply:?}");
            server.join().expect("it goes");
        }
    }

    #[test]
    fn a_process_is_owed_no_answer_before_it_has_asked() {
        let (daemon, (ours, theirs)) = (daemon(), UnixStream::pair().expect("sockets"));
        let serving = daemon.clone();
        let server = std::thread::spawn(move || {
            let wire = Wire::local(ours).expect("a wire");
            serve(&serving, wire, Some(rustix::process::getpid()));
        });
        let mut job = Talk::new(Wire::local(theirs).expect("a wire"), TALK_TIMEOUT);
        job.send(&PREAMBLE).expect("room");
        let hello = FromJob::Hello {
            protocol: PROTOCOL,
            identity: identity(),
        };
        job.send_message(&hello).expect("room");
        let greeted = job.receive_message::<FromDaemon>(1 << 10);
        assert!(matches!(greeted, Ok(FromDaemon::Hello { .. })));
        assert_eq!(daemon.lock().answers_due, 0);
        drop(job);
        server.join().expect("it goes");
    }
}
