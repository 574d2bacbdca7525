//! The answers of a daemon: to the user's commands on its host, and to other daemons.

use std::sync::Arc;
use std::time::{Duration, Instant};

use regatta_launch::{Refusal, identity};
use regatta_membership::{HostId, Input};
use rustix::event::{PollFd, PollFlags};
use rustix::process::Pid;

use crate::ask::{Ask, Opening, Reply, Tenure};
use crate::channels::{Channel, Cut, End};
use crate::daemon::Daemon;
use crate::detached_session::DetachedSession;
use crate::relay;
use crate::shell::Shell;
use crate::talk::{self, Talk, Wire, wait};
use crate::{everybody, tasks, unreached};

/// How long a conversation of a question and an answer may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(5);
/// How long a shell whose channel has broken waits at least for word of its launcher's host.
const VERDICT: Duration = Duration::from_secs(30);
/// How long another daemon may take to try an address, on a busy host. That a firewall is between shows sooner.
pub(crate) const TRIAL: Duration = Duration::from_secs(10);

/// Serves one conversation to its end. `caller` is the process of the user's that began it; `None`: it is a daemon.
pub(crate) fn serve(daemon: &Arc<Daemon>, wire: Wire, caller: Option<Pid>) {
    let mut talk = Talk::new(wire, LIMIT);
    let Ok(opening) = talk.receive::<Opening>() else {
        return;
    };
    if !opening.ask.is_asked_by(caller.is_some()) {
        return;
    }
    if opening.identity != identity() && !opening.ask.is_of_any_version() {
        let sentence = format!(
            "the daemon of {} is regatta {}, and what speaks with it is regatta {}: use the same release on all hosts (`regatta down` works with any)",
            daemon.charge.name,
            identity(),
            opening.identity
        );
        let _ = talk.send_line(&Reply::Refused(sentence));
        return;
    }
    daemon.lock().answers_due += 1;
    let rest = answer(daemon, talk, opening, caller);
    daemon.lock().answers_due -= 1;
    daemon.announce();
    if let Some(rest) = rest {
        rest();
    }
}

/// Work that takes longer than an answer.
type Rest = Box<dyn FnOnce()>;

fn answer(
    daemon: &Arc<Daemon>,
    mut talk: Talk,
    opening: Opening,
    caller: Option<Pid>,
) -> Option<Rest> {
    let from = opening.from.map(HostId::from);
    let reply = match opening.ask {
        Ask::Hosts { watch: true } => {
            let daemon = daemon.clone();
            daemon.lock().watchers += 1;
            return Some(Box::new(move || {
                watch(&daemon, talk);
                daemon.lock().watchers -= 1;
                daemon.announce();
            }));
        }
        Ask::Unreached => {
            let daemon = daemon.clone();
            return Some(Box::new(move || unreached::listen(&daemon, talk)));
        }
        Ask::UnreachedThere { said } => {
            unreached::receive(daemon, from?, said);
            Ok(Reply::Done)
        }
        Ask::Shell { host, job, tenure } => {
            return shell(daemon, talk, &host, (job, tenure), caller?);
        }
        Ask::ShellHere {
            job,
            tenure: Tenure::Inherited,
        } => {
            inherit(daemon, talk, &job, from?);
            return None;
        }
        Ask::ShellHere { job, tenure } => return shell_here(daemon, talk, (job, tenure), from?),
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
        Ask::Reach { at } => Talk::call(at, &daemon.keys, TRIAL)
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
    talk.limit(Some(LIMIT));
    let _ = talk.send_line(&reply);
    None
}

/// Leaves the machine in good order; the driver ends the daemon when the others know.
pub(crate) fn leave(daemon: &Arc<Daemon>) {
    let state = daemon.lock();
    state.channels.cut("this host leaves the machine");
    drop(state);
    daemon.notify(Input::Leave);
}

/// Ends this daemon, or all. The command is answered when the process is gone.
fn depart(daemon: &Arc<Daemon>, mut talk: Talk, how: &Ask) {
    let reply = match how {
        Ask::Down => everybody::down(daemon),
        Ask::Leave => {
            leave(daemon);
            Reply::Done
        }
        _ => Reply::Done,
    };
    talk.limit(Some(LIMIT));
    let _ = talk.send_line(&reply);
    let mut state = daemon.lock();
    state.mourners.push(talk);
    state.over |= *how != Ask::Leave;
    drop(state);
    daemon.announce();
}

fn vouch(daemon: &Arc<Daemon>) -> Result<Reply, Refusal> {
    let absent = {
        let state = daemon.lock();
        if state.hindrance().is_none() {
            return Ok(Reply::Note(
                "a majority of the hosts answers: nobody has to vouch for anything".to_owned(),
            ));
        }
        state.unanswered()
    };
    daemon.notify(Input::GoOn);
    if absent.is_empty() {
        return Ok(Reply::Done);
    }
    Ok(Reply::Note(format!(
        "this side goes on with the hosts that answer; taken for dead: {}. Should these live and be a majority, this side will end what it runs and join them when it hears of them",
        absent.join(", ")
    )))
}

/// Tells of the machine until nobody listens.
fn watch(daemon: &Arc<Daemon>, mut talk: Talk) {
    loop {
        let moment = daemon.lock().moment();
        talk.limit(Some(LIMIT));
        if talk.send_line(&Reply::Hosts(daemon.report())).is_err() {
            return;
        }
        let mut state = daemon.lock();
        while state.moment() == moment && !state.over {
            let until = Instant::now() + Duration::from_secs(1);
            state = match daemon.await_change(state, until) {
                Some(state) => state,
                None => daemon.lock(),
            };
            state.remarks.expire(Instant::now());
            // Once a second it is noticed when the other end has gone away.
            let now = Some(Instant::now());
            if wait(&mut [PollFd::new(&talk, PollFlags::IN)], now) {
                return;
            }
        }
        if state.over {
            drop(state);
            // The last word may be why the daemon ends.
            talk.limit(Some(LIMIT));
            let _ = talk.send_line(&Reply::Hosts(daemon.report()));
            return;
        }
    }
}

/// A shell on a host, for a command here.
fn shell(
    daemon: &Arc<Daemon>,
    talk: Talk,
    host: &str,
    (job, tenure): (String, Tenure),
    caller: Pid,
) -> Option<Rest> {
    let mut talk = talk;
    let mut refuse = |sentence: String| {
        let _ = talk.send_line(&Reply::Refused(sentence));
        None
    };
    let (own, found) = {
        let state = daemon.lock();
        if let Some(hindrance) = state.hindrance() {
            return refuse(hindrance);
        }
        let own = state.membership.own();
        let is_here = host == daemon.charge.name || host == own.address().to_string();
        (own, if is_here { Ok(own) } else { state.find(host) })
    };
    let peer = match found {
        Ok(peer) => peer,
        Err(sentence) => return refuse(sentence),
    };
    if peer == own {
        // A job that is lost with this host needs nobody to wait for.
        return shell_here(daemon, talk, (job, Tenure::Passing), own);
    }
    let far = match far_shell(daemon, host, (own, peer), (job.clone(), tenure)) {
        Ok(far) => far,
        Err(sentence) => return refuse(sentence),
    };
    let cut = Cut::new().ok()?;
    let channel = Channel {
        job,
        end: End::Launcher(caller),
        peer,
        cut: cut.clone(),
        session: None,
    };
    let number = register(daemon, channel);
    let (daemon, host) = (daemon.clone(), host.to_owned());
    talk.send_line(&Reply::Done).ok()?;
    Some(Box::new(move || {
        let ((near, first), (far, second)) = (talk.into_parts(), far.into_parts());
        relay::run(near, far, [first, second], (&host, peer), &cut);
        daemon.lock().channels.remove(number);
        daemon.announce();
    }))
}

/// Has the daemon of another host start a shell, or hand over one that waits. An error is a sentence.
fn far_shell(
    daemon: &Daemon,
    host: &str,
    (own, peer): (HostId, HostId),
    (job, tenure): (String, Tenure),
) -> Result<Talk, String> {
    let far = Talk::call(peer.address(), &daemon.keys, LIMIT).and_then(|mut far| {
        far.send_line(&Opening {
            identity: identity(),
            from: Some(own.into()),
            ask: Ask::ShellHere { job, tenure },
        })?;
        Ok((far.receive::<Reply>()?, far))
    });
    match far {
        Ok((Reply::Done, far)) => Ok(far),
        Ok((Reply::Refused(sentence), _)) => Err(format!("on the host {host}: {sentence}")),
        Ok(_) => Err(format!("the host {host} says what is not understood")),
        Err(error) => Err(talk::explain(host, &error).sentence),
    }
}

/// A shell on this host; `peer` is the launcher's.
fn shell_here(
    daemon: &Arc<Daemon>,
    mut talk: Talk,
    (job, tenure): (String, Tenure),
    peer: HostId,
) -> Option<Rest> {
    let (own, hindrance) = {
        let state = daemon.lock();
        (state.membership.own(), state.hindrance())
    };
    let connection = format!("{} 0 {} 0", peer.address().ip(), own.address().ip());
    let shell = match hindrance {
        Some(hindrance) => Err(hindrance),
        None => Shell::start(&connection).map_err(|refusal| refusal.sentence),
    };
    let shell = match shell {
        Ok(shell) => shell,
        Err(sentence) => {
            let _ = talk.send_line(&Reply::Refused(sentence));
            return None;
        }
    };
    let cut = Cut::new().ok()?;
    let silence = Duration::from_millis(daemon.charge.silence_ms);
    let session = match tenure {
        Tenure::Lasting => Some(DetachedSession::new(VERDICT.max(silence * 3)).ok()?),
        _ => None,
    };
    let channel = Channel {
        job,
        end: End::Agent(shell.pid()),
        peer,
        cut: cut.clone(),
        session: session.clone(),
    };
    let number = register(daemon, channel);
    let daemon = daemon.clone();
    let _ = talk.send_line(&Reply::Done);
    Some(Box::new(move || {
        let (wire, arrived) = talk.into_parts();
        shell.serve(wire, arrived, &cut, session.as_deref());
        daemon.lock().channels.remove(number);
        daemon.announce();
    }))
}

/// Gives the shell of a job that has lost its launcher's host to a launcher on another one.
fn inherit(daemon: &Arc<Daemon>, mut talk: Talk, job: &str, peer: HostId) {
    let found = {
        let mut state = daemon.lock();
        let known = state.membership.hosts().any(|(host, _)| host == peer);
        match state.hindrance() {
            Some(hindrance) => Err(hindrance),
            None if !known => Err("the host that asks is not one of the machine".to_owned()),
            None => state
                .channels
                .inherit(job, peer)
                .ok_or_else(|| format!("nothing of the job {job} waits here for another launcher")),
        }
    };
    match found {
        Err(sentence) => _ = talk.send_line(&Reply::Refused(sentence)),
        Ok(session) => {
            // Should this fail, the shell finds out when it tries to speak.
            let _ = talk.send_line(&Reply::Done);
            session.give(talk.into_parts());
        }
    }
}

/// Enters a channel, which is cut at once if the host at its other end has just been lost.
fn register(daemon: &Arc<Daemon>, channel: Channel) -> u64 {
    let mut state = daemon.lock();
    let (peer, cut) = (channel.peer, channel.cut.clone());
    let number = state.channels.add(channel);
    let own = state.membership.own();
    if state.over || peer != own && !state.membership.hosts().any(|(host, _)| host == peer) {
        let why = state.journal.farewell(&peer);
        cut.cut(&why);
    }
    number
}
