//! Requests that concern several hosts: a command asks one daemon, which asks the others.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use regatta_launch::{Refusal, identity, in_parallel};
use regatta_membership::{HostId, Standing};

use crate::answer::TALK_TIMEOUT;
use crate::ask::{Ask, Opening, Reply, Task, Unreached};
use crate::daemon::Daemon;
use crate::talk::{self, Talk};
use crate::{tasks, unreached};

/// Time that a host may take to end what runs there.
const HOST_END_TIMEOUT: Duration = Duration::from_secs(15);
/// Time that a host may take to list what runs there.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);

/// A reply, and the conversation on which it was received.
type Answer = (Reply, Talk);

fn ask(
    daemon: &Daemon,
    own: HostId,
    to: HostId,
    ask: Ask,
    limit: Duration,
) -> std::io::Result<Answer> {
    let mut talk = Talk::call(to.address(), &daemon.keys, limit)?;
    talk.limit(Some(limit));
    talk.send_line(&Opening {
        identity: identity(),
        from: Some(own.into()),
        to: Some(to.address()),
        ask,
    })?;
    Ok((talk.receive()?, talk))
}

/// Sends a request to another host, and returns its answer.
fn answer_of(
    daemon: &Daemon,
    to: HostId,
    name: &str,
    what: Ask,
    limit: Duration,
) -> Result<Answer, Refusal> {
    let own = daemon.lock().membership.own();
    match ask(daemon, own, to, what, limit) {
        Ok((Reply::Refused(sentence), _)) => Err(Refusal::of_regatta(sentence)),
        Ok(answer) => Ok(answer),
        Err(error) => Err(talk::explain(name, &error)),
    }
}

/// Returns the other hosts, with their names.
fn others(daemon: &Daemon) -> Vec<(HostId, String)> {
    let state = daemon.lock();
    let hosts = state.membership.hosts();
    hosts
        .map(|(host, _)| (host, state.journal.name(&host)))
        .collect()
}

/// Sends a request to all other hosts in parallel.
fn ask_all(daemon: &Daemon, what: &Ask, limit: Duration) -> Vec<(String, Result<Answer, Refusal>)> {
    in_parallel(others(daemon), |(host, name)| {
        let answer = answer_of(daemon, host, &name, what.clone(), limit);
        (name, answer)
    })
}

/// Makes a host leave, and waits until its daemon has ended.
pub(crate) fn remove(daemon: &Arc<Daemon>, host: &str) -> Result<Reply, Refusal> {
    if host == daemon.charge.name || host == daemon.lock().membership.own().address().to_string() {
        return Err(Refusal::usage(format!(
            "{host} is this host: remove it from another host, or end the whole machine with `regatta down`"
        )));
    }
    let found = daemon.lock().find(host).map_err(Refusal::of_regatta)?;
    let (_, talk) = answer_of(daemon, found, host, Ask::Leave, TALK_TIMEOUT)?;
    await_end(host, talk)?;
    await_departure(daemon, found);
    Ok(Reply::Done)
}

/// Waits until this daemon knows that a host has left whose daemon has ended, since the next command may add the host
/// again. If the host's farewell was lost, the machine notices its silence.
fn await_departure(daemon: &Daemon, host: HostId) {
    let until = Instant::now() + TALK_TIMEOUT;
    let mut state = daemon.lock();
    while state.membership.hosts().any(|(one, _)| one == host) {
        match daemon.await_change(state, until) {
            Some(next) => state = next,
            None => return,
        }
    }
}

/// Waits for the end of a daemon that has agreed to end.
fn await_end(host: &str, mut talk: Talk) -> Result<(), Refusal> {
    talk.limit(Some(HOST_END_TIMEOUT));
    match talk.receive::<Reply>() {
        Err(error) if error.kind() == ErrorKind::TimedOut => Err(Refusal::of_regatta(format!(
            "the daemon of {host} has not ended within {} s; processes that its jobs started may still run there",
            HOST_END_TIMEOUT.as_secs()
        ))),
        _ => Ok(()),
    }
}

/// Ends all other daemons, including those that were declared dead because they did not answer: they may live.
pub(crate) fn down(daemon: &Arc<Daemon>) -> Reply {
    let hope = {
        let state = daemon.lock();
        state.channels.let_go("the virtual machine is ending");
        match state.membership.standing() {
            Standing::Majority => {
                "If a daemon of the machine still runs there, it accepts no work, and ends when it reaches the other hosts again; `regatta down` there ends it at once"
            }
            _ => {
                "This host had no majority, so the machine may continue there without it; `regatta down` there ends it"
            }
        }
    };
    let live = others(daemon).into_iter().map(|host| (host, false));
    let lost = daemon.lock().journal.silent();
    let lost = lost.into_iter().map(|host| (host, true));
    // All are told before waiting for any of them to end, even where they can only be told one after the other.
    let told = in_parallel(live.chain(lost), |((host, name), is_lost)| {
        (end(daemon, host, &name, is_lost), name)
    });
    let ends = in_parallel(told, |(told, name)| {
        let ended = told.and_then(|talk| talk.map_or(Ok(()), |talk| await_end(&name, talk)));
        ended.err().map(|refusal| refusal.sentence)
    });
    let mut silent: Vec<String> = ends.into_iter().flatten().collect();
    silent.sort_unstable();
    match silent.is_empty() {
        true => Reply::Done,
        false => Reply::Note(format!("{}. {hope}", silent.join("; "))),
    }
}

/// Tells a daemon to end, and returns the conversation on which its end is noticed, or `None` if no daemon listens
/// there. A host that was declared dead gets a short time limit, as it rarely answers.
fn end(daemon: &Daemon, host: HostId, name: &str, is_lost: bool) -> Result<Option<Talk>, Refusal> {
    if !is_lost {
        return answer_of(daemon, host, name, Ask::End, TALK_TIMEOUT).map(|(_, talk)| Some(talk));
    }
    let own = daemon.lock().membership.own();
    match ask(daemon, own, host, Ask::End, ASK_TIMEOUT) {
        Ok((_, talk)) => Ok(Some(talk)),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(None),
        Err(error) => Err(talk::explain(name, &error)),
    }
}

/// Returns the tasks of all hosts.
pub(crate) fn tasks(daemon: &Arc<Daemon>) -> Reply {
    let mut tasks = tasks::here(daemon);
    let mut leaders = tasks::leaders(daemon);
    let mut silent = Vec::new();
    for (name, answer) in ask_all(daemon, &Ask::TasksHere, ASK_TIMEOUT) {
        match answer {
            Ok((
                Reply::Tasks {
                    tasks: more,
                    leaders: others,
                    ..
                },
                _,
            )) => {
                tasks.extend(more);
                leaders.extend(others);
            }
            _ => silent.push(name),
        }
    }
    tasks.sort_by(|a, b| (&a.job, a.rank).cmp(&(&b.job, b.rank)));
    leaders.sort_by(|a, b| a.job.cmp(&b.job));
    Reply::Tasks {
        tasks,
        leaders,
        silent,
    }
}

/// Sends the reports of this host's launchers about tasks that cannot reach each other to the other daemons.
pub(crate) fn pass_on(daemon: &Daemon, said: Vec<Unreached>) {
    if others(daemon).len() < unreached::MAX_RELAYING_HOSTS {
        // A daemon that is not reached now gets a later report.
        ask_all(daemon, &Ask::UnreachedThere { said }, ASK_TIMEOUT);
    }
}

/// Sends a signal to a job (`alpha:1234`) or to a task of it (`alpha:1234.0`).
pub(crate) fn kill(daemon: &Arc<Daemon>, target: &str, signal: i32) -> Result<Reply, Refusal> {
    let Reply::Tasks { tasks, leaders, .. } = tasks(daemon) else {
        return Err(Refusal::of_regatta("the daemon has failed"));
    };
    let name = |task: &Task| format!("{}.{}", task.job, task.rank);
    let (host, job, rank) = match tasks.iter().find(|task| name(task) == target) {
        Some(task) => (task.host.clone(), task.job.clone(), Some(task.rank)),
        None if tasks.iter().any(|task| task.job == target) => {
            let leader = leaders.iter().find(|leader| leader.job == target);
            let host = match leader {
                Some(leader) => &leader.host,
                None => target.rsplit_once(':').map_or(target, |(host, _)| host),
            };
            (host.to_owned(), target.to_owned(), None)
        }
        None => {
            return Err(Refusal::of_regatta(format!(
                "no job or task of this machine is called {target}: `regatta ps` lists them"
            )));
        }
    };
    if host == daemon.charge.name {
        return tasks::kill(daemon, &job, rank, signal);
    }
    let found = daemon.lock().find(&host).map_err(Refusal::of_regatta)?;
    let what = Ask::KillHere { job, rank, signal };
    answer_of(daemon, found, &host, what, TALK_TIMEOUT).map(|(reply, _)| reply)
}
