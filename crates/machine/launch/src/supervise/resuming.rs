//! A supervisor that resumes a job whose previous supervisor was on a host that is lost.
//!
//! The agents have been claimed (`succession`). Their states are compared with the copy of the registry, and the events
//! that it does not have are handled. Then the loop runs as in any supervisor.

use std::collections::HashSet;

use regatta_job::failover::{Absence, Candidate, Successor, Takeover, living_tasks, take_over};
use regatta_job::{Ended, HostRecord, Registry, ReplicatedRegistry};
use regatta_program::Refusal;
use regatta_wire::life::Cause;
use regatta_wire::world::World;

use super::growing::Growing;
use super::guests::Gate;
use super::history::History;
use super::leadership::{self, Failover};
use super::outputs::UserStreams;
use super::peers::Peers;
use super::{Parts, Supervisor};
use crate::channel::Link;
use crate::channel::messages::Order;
use crate::channel::remote::Remote;
use crate::hosts::fleet::Ground;
use crate::plan::Plan;
use crate::streams::output::Output;
use crate::supervise::owner::Owner;
use crate::system::signals::Signals;
use crate::tasks::Tasks;
use crate::tasks::worker::Worker;

/// Everything that is known of the job.
pub(crate) struct Stock {
    /// The channel to the old launcher. Its end is the end of the job here.
    pub tether: Link,
    pub signals: Signals,
    pub owner: Owner,
    pub tasks: Tasks,
    /// The worker of this host, without the tasks.
    pub worker: Worker,
    /// The latest replica.
    pub registry: Registry,
    pub takeover: Takeover,
    pub ground: Ground,
    /// The hosts that were candidates to lead next.
    pub candidates: Vec<Candidate>,
    /// The hosts whose agents have been claimed.
    pub remotes: Vec<Remote>,
    pub here: Candidate,
}

/// The outcome of a launcher that has resumed a job.
pub(crate) enum Outcome {
    /// The job has ended: the status that its command would exit with.
    Ended(u8),
    /// Other hosts may go on with the job without this launcher, which has reported why.
    LeftToOthers,
}

/// Resumes a job and runs it to its end, or until it is left to others.
pub(crate) fn resume(plan: &Plan, output: Output, stock: Stock) -> Result<Outcome, Refusal> {
    let (mut supervisor, takeover) = Supervisor::resumed(plan, output, stock)?;
    supervisor.catch_up(takeover);
    let status = supervisor.run();
    Ok(match supervisor.failover.has_given_up() {
        true => Outcome::LeftToOthers,
        false => Outcome::Ended(status),
    })
}

/// Returns a host that is lost, with the tasks that were there according to the registry.
fn absentee(registry: &Registry, host: &HostRecord) -> Result<Remote, Refusal> {
    let mut remote = Remote::absent(host.number, &host.name)?;
    let (running, unstarted) = living_tasks(registry, host.number);
    remote.running = running.into_iter().collect();
    remote.unstarted = unstarted;
    Ok(remote)
}

impl<'p> Supervisor<'p> {
    /// Returns the supervisor, and the state that it takes over.
    fn resumed(plan: &'p Plan, output: Output, stock: Stock) -> Result<(Self, Takeover), Refusal> {
        let (registry, here, takeover) = (&stock.registry, &stock.here, stock.takeover);
        let first_tasks = stock.tasks.job().first();
        let across = plan.across.as_ref();
        let hosts = across.iter().flat_map(|across| &across.hosts);
        let names = hosts.map(|host| host.name.clone()).collect();
        let lifecycle = takeover.lifecycle(plan.policy(), names, registry, first_tasks);
        let mut remotes = stock.remotes;
        for host in takeover.absent(registry) {
            remotes.push(absentee(registry, host)?);
        }
        for remote in &mut remotes {
            remote.ranks = tasks_on(registry, remote.number);
            // No host may get a succession order with a lost host in it.
            remote.lost = takeover.lost.contains_key(&remote.number);
        }
        let mut worker = stock.worker;
        worker.tasks = Some(stock.tasks);
        let mut growing = Growing::begin(across, Some(stock.ground), plan.stays);
        growing.iter_mut().for_each(Growing::stop_gathering);
        let mut history = History::new(growing.is_some(), plan.stays);
        let worlds = takeover.worlds.iter();
        worlds.for_each(|world| history.note_world(world));
        let candidates = stock.candidates.into_iter();
        let runs = candidates.map(|candidate| (candidate.number, candidate.run));
        let growth = across.and_then(|across| across.growth.as_ref());
        let leadership = leadership::of(growth, runs.collect());
        let own = (here.number, Some(here.name.clone()));
        let supervisor = Parts {
            plan,
            signals: stock.signals,
            owner: stock.owner,
            size: first_tasks,
            worker,
            peers: Peers::new(own, remotes, history),
            growing,
            failover: Failover::new(leadership, Some(stock.tether)),
            gate: Gate::new(None),
            streams: UserStreams::new(output, None),
            lifecycle,
            registry: ReplicatedRegistry::new(stock.registry, true),
        }
        .assemble();
        Ok((supervisor, takeover))
    }

    /// Applies everything that is known of the job.
    fn catch_up(&mut self, takeover: Takeover) {
        // Decisions caused by the take-over are made after this one, and replace it in the registry.
        let mut actions = Vec::new();
        let (now, decision) = (self.started.elapsed(), self.registry.decision());
        self.lifecycle.adopt(now, decision, &mut actions);
        take_over(&mut TakingOver { supervisor: self }, takeover);
        for task in self.registry.killed_at_once() {
            self.signal(task, libc::SIGKILL);
        }
        self.perform(actions);
        self.hosts_changed();
        self.speak();
        self.worker.report_waiting();
    }
}

/// The supervisor as a [`Successor`].
struct TakingOver<'t, 'p> {
    supervisor: &'t mut Supervisor<'p>,
}

impl Successor for TakingOver<'_, '_> {
    fn registry(&mut self) -> &mut ReplicatedRegistry {
        &mut self.supervisor.registry
    }

    fn enter(&mut self, host: u32, world: &World) {
        if let Some(remote) = self.supervisor.peers.get_mut(host) {
            let world = world.clone();
            let _ = remote.send(&Order::Enter { world });
        }
    }

    fn notify_gone(&mut self, rank: u32, cause: Option<Cause>) {
        self.supervisor.notify_gone(rank, cause);
    }

    fn replicate(&mut self) {
        self.supervisor.hosts_changed();
    }

    fn send_again(&mut self, host: u32, task: u32, bytes: Vec<u8>) {
        self.supervisor.send_to(Some(host), task, bytes);
    }

    fn task_ended(&mut self, ended: Ended) {
        // Its last output was not received.
        self.supervisor.registry.close_streams(ended.rank);
        self.supervisor.task_ended(ended);
    }

    fn host_lost(&mut self, host: u32, why: &Absence) {
        let mut remotes = self.supervisor.peers.others().iter();
        if let Some(index) = remotes.position(|remote| remote.number == host) {
            self.supervisor.host_lost(index, &why.to_string());
        }
    }

    fn not_started(&mut self, task: u32) {
        self.supervisor.never_started(task);
    }

    fn request(&mut self, task: u32, bytes: &[u8]) {
        self.supervisor.asked(task, bytes);
    }
}

fn tasks_on(registry: &Registry, host: u32) -> HashSet<u32> {
    let here = |task: &u32| registry.host_of(*task) == Some(host);
    (0..registry.task_count()).filter(here).collect()
}
