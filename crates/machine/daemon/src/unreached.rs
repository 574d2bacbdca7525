//! Tasks of jobs that cannot reach each other, as the jobs' launchers report it, for commands that list the hosts.
//!
//! A launcher reports to the daemon of its host, which relays the report to the other daemons, so that every host shows
//! it. A report counts until the launcher replaces it or ends, or until the host that has relayed it is lost. In
//! machines of more than [`MAX_RELAYING_HOSTS`] hosts only the launcher's host shows it.
//!
//! A daemon may be unreachable just when the end of a problem is relayed. So a report that persists is relayed again
//! every [`RENEWAL_INTERVAL`], and a report of another daemon that was not repeated for [`REPORT_LIFETIME`] no longer
//! counts.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use regatta_membership::HostId;
use regatta_wire::session::{FromJob, MAX_REQUEST_BYTES, UnreachablePair};

use crate::ask::Unreached;
use crate::daemon::Daemon;
use crate::everybody;
use crate::talk::Talk;

/// Maximum number of hosts of a machine in which launchers' reports are relayed.
pub(crate) const MAX_RELAYING_HOSTS: usize = 256;
/// Interval at which reports are relayed again.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(2);
/// Time for which a report of another daemon counts: relaying to all may take a renewal and the timeout of a daemon
/// that does not answer.
const REPORT_LIFETIME: Duration = Duration::from_secs(8);

/// The source of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// A launcher of this host, by the number of its conversation.
    Launcher(u64),
    Daemon(HostId),
}

/// All current reports.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    said: BTreeMap<Source, (Instant, Vec<Unreached>)>,
    conversations: u64,
    changes: u64,
}

impl Remarks {
    fn put(&mut self, source: Source, said: Vec<Unreached>, now: Instant) {
        self.changes += 1;
        match said.is_empty() {
            true => self.said.remove(&source),
            false => self.said.insert(source, (now, said)),
        };
    }

    /// Drops reports that other daemons have not repeated for too long.
    pub(crate) fn expire(&mut self, now: Instant) {
        let before = self.said.len();
        self.said.retain(|source, (at, _)| {
            matches!(source, Source::Launcher(_))
                || now.saturating_duration_since(*at) < REPORT_LIFETIME
        });
        self.changes += (before - self.said.len()) as u64;
    }

    /// Drops the reports of a host that is gone.
    pub(crate) fn lose(&mut self, host: &HostId) {
        if self.said.remove(&Source::Daemon(*host)).is_some() {
            self.changes += 1;
        }
    }

    /// Returns a count that changes with every report.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns all reports, with their current ages.
    pub(crate) fn all(&self) -> Vec<Unreached> {
        self.of(|_| true)
    }

    fn of(&self, wanted: impl Fn(&Source) -> bool) -> Vec<Unreached> {
        let said = self.said.iter().filter(|(source, _)| wanted(source));
        let now = |(at, said): &(Instant, Vec<Unreached>)| {
            let passed = u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX);
            let later = |unreached: &Unreached| Unreached {
                since_ms: unreached.since_ms.saturating_add(passed),
                ..unreached.clone()
            };
            said.iter().map(later).collect::<Vec<_>>()
        };
        said.flat_map(|(_, said)| now(said)).collect()
    }
}

/// Serves a launcher of this host to its end, beginning with its first report.
pub(crate) fn listen(daemon: &Arc<Daemon>, mut talk: Talk, first: Vec<Unreached>) {
    let source = {
        let mut state = daemon.lock();
        state.remarks.conversations += 1;
        Source::Launcher(state.remarks.conversations)
    };
    let mut lasts = !first.is_empty();
    put(daemon, source, first);
    loop {
        pass_on(daemon);
        talk.limit(lasts.then_some(RENEWAL_INTERVAL));
        match talk.receive_message(MAX_REQUEST_BYTES) {
            Ok(FromJob::Unreachable { job, pairs }) => {
                lasts = !pairs.is_empty();
                put(daemon, source, of_job(&job, pairs));
            }
            Err(error) if error.kind() == ErrorKind::TimedOut && lasts => {}
            Ok(_) | Err(_) => break,
        }
    }
    put(daemon, source, Vec::new());
    pass_on(daemon);
}

/// Adds the name of the job to the pairs that a launcher reports.
pub(crate) fn of_job(job: &str, pairs: Vec<UnreachablePair>) -> Vec<Unreached> {
    let pair = |pair: UnreachablePair| Unreached {
        job: job.to_owned(),
        host: pair.host,
        peer: pair.peer,
        task: pair.task,
        peer_task: pair.peer_task,
        since_ms: pair.since_ms,
        given_up: pair.given_up,
    };
    pairs.into_iter().map(pair).collect()
}

/// Records the reports that another daemon relays from the launchers of its host.
pub(crate) fn receive(daemon: &Arc<Daemon>, from: HostId, said: Vec<Unreached>) {
    put(daemon, Source::Daemon(from), said);
}

fn put(daemon: &Arc<Daemon>, source: Source, said: Vec<Unreached>) {
    let mut state = daemon.lock();
    let own = state.membership.own();
    let is_there = |host: HostId| host != own && state.membership.hosts().any(|(it, _)| it == host);
    if let Source::Daemon(host) = source
        && !is_there(host)
    {
        return;
    }
    state.remarks.put(source, said, Instant::now());
    drop(state);
    daemon.announce();
}

/// Relays all reports of this host's launchers to the other daemons. Only one thread at a time, so that the last one
/// sends the latest reports.
fn pass_on(daemon: &Arc<Daemon>) {
    let turn = daemon.passing.lock();
    let _turn = turn.unwrap_or_else(PoisonError::into_inner);
    let state = daemon.lock();
    let is_own = |source: &Source| matches!(source, Source::Launcher(_));
    let said = state.remarks.of(is_own);
    let over = state.over || state.departed;
    drop(state);
    if !over {
        everybody::pass_on(daemon, said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreached(task: u32) -> Unreached {
        Unreached {
            job: "alpha:1".to_owned(),
            host: "beta".to_owned(),
            peer: "gamma".to_owned(),
            task,
            peer_task: 2,
            since_ms: 1000,
            given_up: false,
        }
    }

    #[test]
    fn what_a_launcher_or_a_host_said_counts_until_it_says_something_else_or_is_lost() {
        let mut remarks = Remarks::default();
        let host = HostId::new("10.0.0.1:9".parse().expect("an address"), 7, 8);
        let now = Instant::now();
        remarks.put(Source::Launcher(1), vec![unreached(1)], now);
        remarks.put(Source::Daemon(host), vec![unreached(2)], now);
        let tasks = |all: Vec<Unreached>| -> Vec<u32> { all.iter().map(|one| one.task).collect() };
        assert_eq!(tasks(remarks.all()), [1, 2]);
        assert!(remarks.all().iter().all(|one| one.since_ms >= 1000));
        remarks.put(Source::Launcher(1), vec![unreached(3), unreached(4)], now);
        assert_eq!(tasks(remarks.all()), [3, 4, 2]);
        let before = remarks.changes();
        remarks.lose(&host);
        assert_ne!(remarks.changes(), before);
        assert_eq!(tasks(remarks.all()), [3, 4]);
        remarks.put(Source::Launcher(1), Vec::new(), now);
        assert!(remarks.all().is_empty());
    }

    #[test]
    fn what_another_host_does_not_tell_again_counts_no_more() {
        let mut remarks = Remarks::default();
        let host = HostId::new("10.0.0.1:9".parse().expect("an address"), 7, 8);
        let now = Instant::now();
        remarks.put(Source::Launcher(1), vec![unreached(1)], now);
        remarks.put(Source::Daemon(host), vec![unreached(2)], now);
        remarks.put(
            Source::Daemon(host),
            vec![unreached(2)],
            now + REPORT_LIFETIME,
        );
        remarks.expire(now + REPORT_LIFETIME);
        assert_eq!(remarks.all().len(), 2);
        let before = remarks.changes();
        remarks.expire(now + REPORT_LIFETIME * 2);
        assert_ne!(remarks.changes(), before);
        let left: Vec<u32> = remarks.all().iter().map(|one| one.task).collect();
        assert_eq!(left, [1]);
    }
}
