//! The launcher's part in failover. The succession order and the replicas are sent to the other hosts. If this host is
//! cut off from a majority, or its daemon has ended, the others may go on without it, so the job ends here.
//! `regatta_job::failover` decides.

use std::collections::BTreeMap;

use regatta_job::failover::{Leadership, PIECE_BYTES, Replication};
use regatta_program::STATUS_REFUSED;
use regatta_wire::fields::Message;
use rustix::event::PollFd;

use super::Supervisor;
use crate::channel::Link;
use crate::channel::membership_feed::Report;
use crate::channel::messages::Order;
use crate::channel::remote::Remote;
use crate::plan::{Growth, Plan};
use crate::succession::rally::daemon_has_ended;

/// The reason to leave the job to others if this host's daemon reports another run than the one on which the job began.
const ANOTHER_RUN: &str = "the other hosts declared this host dead, and it rejoins as a new host";

/// The reason to leave the job to others if this host's daemon has closed the channel to the agent that has become a
/// launcher.
const LET_GO: &str = "the daemon of this host has ended, or has released the job";

/// The hosts that may lead if this one is lost, and their replicas.
#[derive(Default)]
pub(super) struct Failover {
    /// `None` if the job ends with this host.
    leadership: Option<Leadership>,
    /// Messages to tasks that wait until a replica has the changes that they depend on.
    replication: Replication,
    /// The channel to the previous launcher, if there was one. When it ends, the job ends here.
    tether: Option<Link>,
}

impl Failover {
    pub(super) fn new(leadership: Option<Leadership>, tether: Option<Link>) -> Self {
        Self {
            leadership,
            replication: Replication::default(),
            tether,
        }
    }

    /// Returns whether the job can go on without this host.
    pub(super) fn is_possible(&self) -> bool {
        self.leadership.is_some()
    }

    /// Returns whether the job was left to other hosts.
    pub(super) fn has_given_up(&self) -> bool {
        let leadership = self.leadership.as_ref();
        leadership.is_some_and(Leadership::has_given_up)
    }

    /// Adds a host that has joined and may lead.
    pub(super) fn add(&mut self, number: u32, run: &str) {
        let leadership = self.leadership.iter_mut();
        leadership.for_each(|leadership| leadership.add(number, run));
    }

    /// Records that a host is lost, which may hold a replica.
    pub(super) fn host_lost(&mut self, number: u32) {
        self.replication.host_lost(number);
    }

    /// Records that a replica has applied this many changes. Returns the messages that have waited for that.
    pub(super) fn confirm(&mut self, changes: u64) -> Vec<(u32, Vec<u8>)> {
        self.replication.confirm(changes)
    }

    /// Keeps a message to a task until a replica has applied this many changes.
    pub(super) fn keep(&mut self, changes: u64, task: u32, bytes: Vec<u8>) {
        self.replication.keep(changes, task, bytes);
    }

    /// Returns whether the tether has ended. True at most once.
    pub(super) fn has_lost_tether(&mut self) -> bool {
        self.tether.take_if(daemon_has_ended).is_some()
    }

    /// Returns the descriptors to poll.
    pub(super) fn polls(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.tether.iter().flat_map(Link::polls)
    }
}

/// Returns the leadership of a job in a virtual machine. `runs` are those of its hosts, by number.
pub(super) fn of(growth: Option<&Growth>, runs: BTreeMap<u32, String>) -> Option<Leadership> {
    let growth = growth.filter(|growth| growth.machine.is_some())?;
    Some(Leadership::new(&growth.host, &growth.run, runs))
}

/// Returns the leadership of a job that begins with these hosts and this one.
pub(super) fn at_first(plan: &Plan, remotes: &[Remote]) -> Option<Leadership> {
    let growth = plan.across.as_ref()?.growth.as_ref()?;
    let numbers = remotes.iter().map(|remote| remote.number);
    let run = |number: u32| Some((number, growth.known.get(number as usize)?.clone()));
    of(Some(growth), numbers.filter_map(run).collect())
}

impl Supervisor<'_> {
    /// Sends the new succession order to all hosts after the job's hosts have changed, and replicas of the registry to
    /// the first candidates.
    pub(super) fn hosts_changed(&mut self) {
        let Some(leadership) = &self.failover.leadership else {
            return;
        };
        let left = self.peers.living();
        let order = leadership.order(left.map(|remote| (remote.number, remote.name.as_str())));
        // A snapshot must not be followed by changes that it already has, so send those to the older replicas first.
        self.spread();
        let count = Replication::count(order.candidates.len() + 1);
        let first = order.candidates.iter().take(count);
        let new = self
            .failover
            .replication
            .add_holders(first.map(|host| host.number));
        let snapshot = (!new.is_empty()).then(|| self.registry.snapshot());
        for remote in self.peers.living_mut() {
            let snapshot = snapshot.as_ref().filter(|_| new.contains(&remote.number));
            if let Some(bytes) = snapshot {
                send_copy(remote, false, bytes);
            }
            let order = order.clone();
            let _ = remote.send(&Order::Succession { order });
        }
        let registry = &self.registry;
        let host_of = |task: u32| registry.host_of(task);
        let messages = self.failover.replication.holders_changed(host_of);
        self.pass_on(messages);
    }

    /// Returns whether messages to tasks on a host wait until a replica has the changes that they depend on. Tasks on
    /// this host are lost with it, so their messages do not wait.
    pub(super) fn must_wait(&self, host: u32) -> bool {
        let elsewhere = |leadership: &Leadership| !leadership.is_here(host);
        let changes = self.registry.last_change();
        let remote = self.peers.get(host);
        self.failover.leadership.as_ref().is_some_and(elsewhere)
            && self.failover.replication.must_wait(host, changes)
            && remote.is_some_and(|remote| !remote.lost)
    }

    /// Asks the hosts with replicas how many changes they have applied, if messages wait for that.
    pub(super) fn ask_copies(&mut self) {
        if self.failover.replication.is_to_be_asked() {
            self.send_to_holders(|remote| drop(remote.send(&Order::Confirm {})));
        }
    }

    fn send_to_holders(&mut self, send: impl Fn(&mut Remote)) {
        let replication = &self.failover.replication;
        self.peers
            .living_mut()
            .filter(|remote| replication.holds(remote.number))
            .for_each(send);
    }

    /// Sends messages that have waited to their tasks.
    pub(super) fn pass_on(&mut self, messages: Vec<(u32, Vec<u8>)>) {
        for (task, bytes) in messages {
            self.order_for(task, Order::Tell { task, bytes });
        }
    }

    /// Sends the changes of the registry to all replicas, before any task reads messages that depend on them.
    pub(super) fn spread(&mut self) {
        let decision = self.lifecycle.decision();
        decision
            .into_iter()
            .for_each(|decision| self.registry.set_decision(decision));
        for change in self.registry.take_changes() {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            self.send_to_holders(|remote| send_copy(remote, true, &bytes));
        }
    }

    /// Ends the job here because this host's daemon has ended, or goes on as another host. Then all channels end and
    /// the others consider this host lost, so that one of them may go on with the job.
    pub(super) fn handle_own_daemon(&mut self, cause: &str) {
        if self.leads_others() && !self.lifecycle.is_ending() {
            self.leave_to_others(cause);
        }
    }

    fn leads_others(&self) -> bool {
        let left = self.peers.living();
        let left = left.map(|remote| (remote.number, remote.name.as_str()));
        let leadership = self.failover.leadership.as_ref();
        leadership.is_some_and(|leadership| !leadership.order(left).candidates.is_empty())
    }

    /// Ends the job here because the channel to the previous launcher has ended: this host's daemon has ended or
    /// abandons the job. Returns true if other hosts may go on with it.
    pub(super) fn handle_end_of_tether(&mut self) -> bool {
        let leaves = self.leads_others() && !self.lifecycle.is_ending();
        if leaves {
            self.leave_to_others(LET_GO);
        }
        leaves
    }

    /// Ends the job here without deciding its outcome, which the next leader decides.
    fn leave_to_others(&mut self, why: &str) {
        if let Some(leadership) = &mut self.failover.leadership {
            leadership.give_up();
        }
        self.streams.report(&format!(
            "{why}. The job ends on this host, because it may continue there: `regatta ps` on one of those hosts shows whether it does"
        ));
        let mut actions = Vec::new();
        let now = self.started.elapsed();
        self.lifecycle.give_up(now, STATUS_REFUSED, &mut actions);
        self.perform(actions);
    }

    /// Ends the job here if this host is cut off from hosts of the job that may go on without it, or was declared dead
    /// by them.
    pub(super) fn handle_standing(&mut self, report: &Report) {
        let view = &report.view;
        let other_run = |leadership: &Leadership| leadership.is_another_run(view);
        if self.failover.leadership.as_ref().is_some_and(other_run) {
            self.handle_own_daemon(ANOTHER_RUN);
        }
        let (Some(leadership), Some(why)) = (&self.failover.leadership, &view.hindrance) else {
            return;
        };
        let cut_off = leadership.cut_off(view);
        if leadership.has_given_up() || cut_off.is_empty() || self.lifecycle.is_ending() {
            return;
        }
        self.leave_to_others(why);
        for index in 0..self.peers.others().len() {
            let remote = &self.peers.others()[index];
            if cut_off.contains(&remote.number) && !remote.lost {
                self.host_lost(index, "it does not answer");
            }
        }
    }
}

/// Sends a snapshot of the registry, or a change to it, in pieces.
fn send_copy(remote: &mut Remote, change: bool, bytes: &[u8]) {
    let mut pieces = bytes.chunks(PIECE_BYTES).peekable();
    while let Some(piece) = pieces.next() {
        let last = pieces.peek().is_none();
        let bytes = piece.to_vec();
        let _ = remote.send(&Order::Copy {
            change,
            bytes,
            last,
        });
    }
}
