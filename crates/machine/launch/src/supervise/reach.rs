//! Tasks that cannot reach each other. [`Reachability`](regatta_job::Reachability) decides. Here the results are passed
//! on to the user, the tasks and the daemon.

use std::net::SocketAddr;
use std::time::Duration;

use regatta_job::ReachabilityEffect;
use regatta_wire::control::Tell;
use regatta_wire::session::UnreachablePair;
use serde_json::json;

use super::Supervisor;

impl Supervisor<'_> {
    /// Handles a task's report that another one, which listens at `address`, has not answered for this many
    /// milliseconds, or answers again (`None`).
    pub(super) fn handle_reach(
        &mut self,
        tasks: (u32, u32),
        address: Option<SocketAddr>,
        silent: Option<u32>,
    ) {
        let silent = silent.map(|millis| Duration::from_millis(u64::from(millis)));
        let now = self.started.elapsed();
        self.reachability
            .report(now, &self.registry, tasks, address, silent);
    }

    /// Carries out the effects of the reports and of the passing of time.
    pub(super) fn watch_reaches(&mut self) {
        if self.reachability.is_empty() {
            return;
        }
        let now = self.started.elapsed();
        let peers = &self.peers;
        let heard = |number: u32, within: Duration| {
            let remote = peers.get(number).filter(|remote| !remote.lost);
            number == peers.number() || remote.is_some_and(|it| it.heard.elapsed() < within)
        };
        for effect in self.reachability.look(now, &self.lifecycle, heard) {
            match effect {
                ReachabilityEffect::Report(sentence) => self.streams.report(&sentence),
                ReachabilityEffect::Event {
                    event,
                    by,
                    peer,
                    lasted,
                } => self.streams.event(&json!({
                    "event": event.name(), "task": by, "peer": peer, "seconds": lasted.as_secs_f64(),
                    "host": self.lifecycle.host(by), "peer_host": self.lifecycle.host(peer),
                })),
                ReachabilityEffect::GiveUp { to, task, sentence } => {
                    self.registry.send(to, Tell::GiveUp { task, sentence });
                }
            }
        }
        self.notify_machine(now);
    }

    /// Reports the pairs to the daemon of the virtual machine, which shows them in its list of hosts.
    fn notify_machine(&mut self, now: Duration) {
        let Some(pairs) = self.reachability.take_changed(now) else {
            return;
        };
        let pairs = pairs.into_iter().filter_map(|pair| {
            Some(UnreachablePair {
                host: self.lifecycle.host(pair.task)?.to_owned(),
                peer: self.lifecycle.host(pair.peer)?.to_owned(),
                task: pair.task,
                peer_task: pair.peer,
                since_ms: u64::try_from(pair.lasted.as_millis()).unwrap_or(u64::MAX),
                given_up: pair.given_up,
            })
        });
        let pairs = pairs.collect();
        let growing = self.growing.as_mut();
        if growing.is_some_and(|growing| !growing.send_unreachable(pairs)) {
            self.reachability.tell_again();
        }
    }

    /// Returns the time until a pair must be reported.
    pub(super) fn until_reaches(&self) -> Option<Duration> {
        let now = self.started.elapsed();
        let deadline = self.reachability.deadline(now)?;
        Some(deadline.saturating_sub(now))
    }

    /// Forgets the pairs of a task that has ended.
    pub(super) fn forget_reach(&mut self, task: u32) {
        self.reachability.task_ended(self.started.elapsed(), task);
    }

    /// Has all pairs reported again, because the connection to the daemon has ended.
    pub(super) fn resend_reaches(&mut self) {
        self.reachability.tell_again();
    }
}
