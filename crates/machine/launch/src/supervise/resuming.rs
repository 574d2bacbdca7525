//! A supervisor that goes on with a job that had another one, on a host that is lost.
//!
//! The agents have been brought together (`succession`). Their knowledge is compared with the copy of the registry; what it does
//! not know happens now. Then the loop goes on as if it had never been another one.

use std::collections::{BTreeMap, HashSet};

use regatta_job::failover::{self, Candidate, Handover, SuccessionOrder, Successor, take_over};
use regatta_job::{Ended, Lifecycle, Registry, ReplicatedRegistry};
use regatta_wire::life::Cause;
use regatta_wire::world::World;

use super::growing::Growing;
use super::history::History;
use super::leadership;
use super::{Parts, Supervisor};
use crate::agent::note_gone;
use crate::agent_join_socket::{AgentJoinSocket, Newcomer};
use crate::channel::Link;
use crate::channel::messages::{Order, State};
use crate::fleet::Ground;
use crate::output::Output;
use crate::owner::Owner;
use crate::plan::Plan;
use crate::refusal::Refusal;
use crate::remote::Remote;
use crate::signals::Signals;
use crate::streams::Streams;
use crate::succession::NO_MORE;
use crate::succession::rally::Found;
use crate::tasks::Tasks;

/// All that is known of the job.
pub(crate) struct Stock {
    /// The knowledge of this host's agent, and its tasks' requests.
    pub own: State,
    pub asked: Vec<(u32, Vec<u8>)>,
    /// The way on which the old launcher spoke. Its end is the end of the job here.
    pub tether: Link,
    pub signals: Signals,
    pub owner: Owner,
    pub tasks: Tasks,
    pub join_socket: Option<AgentJoinSocket>,
    pub streams: Streams,
    /// The copy.
    pub registry: Registry,
    /// All that have been added.
    pub worlds: Vec<World>,
    pub ground: Ground,
    /// The order of the launcher before, and the reason why its host is lost.
    pub launcher: (SuccessionOrder, String),
    pub found: Vec<Found>,
    pub lost: Vec<(Candidate, String)>,
    pub here: Candidate,
}

/// Messages that are left for tasks when the loop is about to begin.
struct Unfinished {
    handovers: Vec<Handover>,
    worlds: Vec<World>,
    gone: BTreeMap<u32, Option<Cause>>,
    lost: BTreeMap<u32, String>,
    /// Processes of this host that have asked to join.
    waiting: Vec<Newcomer>,
}

/// How a launcher ends that has gone on with a job.
pub(crate) enum Outcome {
    /// The job has ended. The status that its command would exit with.
    Ended(u8),
    /// Others may go on with the job without this launcher, which has said why.
    LeftToOthers,
}

/// Goes on with a job to its end, or until that is left to others.
pub(crate) fn resume(plan: &Plan, output: Output, stock: Stock) -> Result<Outcome, Refusal> {
    let (mut supervisor, unfinished) = Supervisor::resumed(plan, output, stock)?;
    supervisor.catch_up(unfinished);
    let status = supervisor.run();
    let left = supervisor
        .leadership
        .is_some_and(|leadership| leadership.has_given_up());
    Ok(match left {
        true => Outcome::LeftToOthers,
        false => Outcome::Ended(status),
    })
}

/// A host that is lost, with the tasks that the registry knows to have been there.
fn absentee(registry: &Registry, number: u32, name: &str) -> Result<Remote, Refusal> {
    let mut remote = Remote::absent(number, name)?;
    remote.ranks = tasks_on(registry, number);
    let ranks = remote.ranks.iter().copied();
    let living = ranks.filter(|&task| registry.is_alive(task));
    let (running, unstarted): (Vec<u32>, Vec<u32>) =
        living.partition(|&task| registry.pid(task) != 0);
    let running = running.into_iter().map(|task| (task, registry.pid(task)));
    remote.running = running.collect();
    remote.unstarted = unstarted;
    Ok(remote)
}

/// How many tasks have been started that the registry does not know to have ended: they run, their ends are news, or they
/// are lost with their hosts.
fn begun(
    registry: &Registry,
    handovers: &[Handover],
    remotes: &[Remote],
    lost: &BTreeMap<u32, String>,
) -> usize {
    let news = |ended: &&Ended| registry.is_alive(ended.rank);
    let of_host = |host: &Handover| host.running.len() + host.ended.iter().filter(news).count();
    // A host that answers and was given up has said itself which tasks run there.
    let answers = |number: u32| handovers.iter().any(|one| one.host == number);
    let gone = remotes
        .iter()
        .filter(|remote| lost.contains_key(&remote.number) && !answers(remote.number));
    let gone: usize = gone.map(|remote| remote.running.len()).sum();
    handovers.iter().map(of_host).sum::<usize>() + gone
}

/// The facts of a host, and the requests of its tasks that nobody has answered.
fn handover(host: u32, state: State, requests: Vec<(u32, Vec<u8>)>) -> Handover {
    Handover {
        host,
        tasks: state.tasks,
        unstarted: state.unstarted,
        running: state.running,
        ended: state.ended,
        received: state.heard,
        gone: state.gone,
        requests,
        open_streams: state.open_streams,
        silent: state.silent,
    }
}

/// The hosts of a job that is taken over.
struct Hosts {
    handovers: Vec<Handover>,
    remotes: Vec<Remote>,
    gone: BTreeMap<u32, Option<Cause>>,
    /// The hosts that do not take part any more, and why.
    lost: BTreeMap<u32, String>,
}

impl Hosts {
    /// Compares the hosts that have come with those that the registry knows.
    fn gather(
        registry: &Registry,
        (here, own): (&Candidate, Handover),
        found: Vec<Found>,
        lost: &[(Candidate, String)],
        (order, cause): &(SuccessionOrder, String),
    ) -> Result<Self, Refusal> {
        let mut hosts = Self {
            // The table of this host says of its own tasks all that the agent would have said.
            handovers: vec![own],
            remotes: Vec::new(),
            gone: BTreeMap::new(),
            lost: lost
                .iter()
                .map(|(candidate, why)| (candidate.number, why.clone()))
                .collect(),
        };
        found
            .into_iter()
            .for_each(|found| hosts.add_found(registry, found));
        let known = registry.hosts().iter().filter(|host| host.alive);
        for host in known.filter(|host| host.number != here.number) {
            if hosts.handovers.iter().any(|one| one.host == host.number) {
                continue;
            }
            let remote = absentee(registry, host.number, &host.name)?;
            hosts.remotes.push(remote);
            let why = match host.name == order.name {
                true => cause.as_str(),
                false => NO_MORE,
            };
            let lost = hosts.lost.entry(host.number);
            lost.or_insert_with(|| why.to_owned());
        }
        hosts.gone = failover::gone(registry, &hosts.handovers);
        hosts.note_given_up(here.number);
        Ok(hosts)
    }

    fn add_found(&mut self, registry: &Registry, found: Found) {
        let mut remote = found.remote;
        remote.ranks = tasks_on(registry, remote.number);
        remote.unstarted = found.state.unstarted.clone();
        remote.running = found.state.running.iter().copied().collect();
        remote.starts = found.state.starts;
        let handover = handover(remote.number, found.state, found.asked);
        self.handovers.push(handover);
        self.remotes.push(remote);
    }

    /// Some tables have it already that a host is lost which has come: the old launcher had given it up.
    fn note_given_up(&mut self, here: u32) {
        let is_gone = |(rank, _): &(u32, u32)| self.gone.contains_key(rank);
        let others = self.handovers.iter().filter(|one| one.host != here);
        for other in others.filter(|other| other.running.iter().any(is_gone)) {
            let why = "the launcher before this one had given it up";
            let lost = self.lost.entry(other.host);
            lost.or_insert_with(|| why.to_owned());
        }
    }
}

/// The lifecycle of a job that is taken over.
fn lifecycle(plan: &Plan, registry: &Registry, hosts: &Hosts, first_tasks: u32) -> Lifecycle {
    let tasks = 0..registry.task_count();
    let host_of = |task: u32| registry.host_of(task).unwrap_or_default();
    let all = plan.across.iter().flat_map(|across| &across.hosts);
    let names = all.map(|host| host.name.clone()).collect();
    let begun = begun(registry, &hosts.handovers, &hosts.remotes, &hosts.lost);
    let ended = tasks.clone().filter(|&task| !registry.is_alive(task));
    Lifecycle::new(plan.policy(), registry.task_count())
        .across(names, tasks.map(host_of).collect())
        .resumed(first_tasks, begun as u32, ended.count() as u32)
}

impl<'p> Supervisor<'p> {
    fn resumed(
        plan: &'p Plan,
        output: Output,
        stock: Stock,
    ) -> Result<(Self, Unfinished), Refusal> {
        let (registry, here) = (&stock.registry, &stock.here);
        let own = (here, handover(here.number, stock.own, stock.asked));
        let hosts = Hosts::gather(registry, own, stock.found, &stock.lost, &stock.launcher)?;
        let first_tasks = stock.tasks.job().first();
        let lifecycle = lifecycle(plan, registry, &hosts, first_tasks);
        let across = plan.across.as_ref();
        let mut growing = Growing::begin(across, Some(stock.ground), plan.stays);
        growing.iter_mut().for_each(Growing::is_gathered);
        let mut history = History::new(growing.is_some(), plan.stays);
        let worlds = stock.worlds.iter();
        worlds.for_each(|world| history.note_world(world));
        let candidates = stock.launcher.0.candidates.into_iter();
        let runs = candidates.map(|candidate| (candidate.number, candidate.run));
        let growth = across.and_then(|across| across.growth.as_ref());
        let leadership = leadership::of(growth, runs.collect());
        let mut join_socket = stock.join_socket;
        let waiting = join_socket.as_mut().map(AgentJoinSocket::take_all);
        let supervisor = Self {
            here: Some(here.name.clone()),
            number: here.number,
            growing,
            history,
            leadership,
            tether: Some(stock.tether),
            remotes: hosts.remotes,
            join_socket: join_socket.map(|join_socket| join_socket.socket),
            streams: Some(stock.streams),
            ..Parts {
                plan,
                signals: stock.signals,
                owner: stock.owner,
                output,
                lifecycle,
                registry: ReplicatedRegistry::new(stock.registry, true),
                size: first_tasks,
                tasks: Some(stock.tasks),
            }
            .assemble()
        };
        let unfinished = Unfinished {
            handovers: hosts.handovers,
            worlds: stock.worlds,
            gone: hosts.gone,
            lost: hosts.lost,
            waiting: waiting.unwrap_or_default(),
        };
        Ok((supervisor, unfinished))
    }

    /// Makes one job of all that is known.
    fn catch_up(&mut self, unfinished: Unfinished) {
        let Unfinished {
            handovers,
            worlds,
            gone,
            lost,
            waiting,
        } = unfinished;
        // Decisions that come of the take-over follow this one, and replace it in the registry.
        let mut actions = Vec::new();
        let (now, decision) = (self.started.elapsed(), self.registry.decision());
        self.lifecycle.adopt(now, decision, &mut actions);
        let mut taking = TakingOver {
            supervisor: self,
            why_lost: &lost,
        };
        let numbers: Vec<u32> = lost.keys().copied().collect();
        take_over(&mut taking, &handovers, &worlds, gone, &numbers);
        for task in self.registry.killed_at_once() {
            self.signal(task, libc::SIGKILL);
        }
        self.perform(actions);
        self.hosts_changed();
        self.speak();
        waiting
            .into_iter()
            .for_each(|newcomer| self.let_in(newcomer));
    }
}

/// A supervisor that takes a job over, and why hosts are lost.
struct TakingOver<'t, 'p> {
    supervisor: &'t mut Supervisor<'p>,
    why_lost: &'t BTreeMap<u32, String>,
}

impl Successor for TakingOver<'_, '_> {
    fn registry(&mut self) -> &mut ReplicatedRegistry {
        &mut self.supervisor.registry
    }

    fn enter(&mut self, host: u32, world: &World) {
        if let Some(remote) = self.supervisor.remote(host) {
            let world = world.clone();
            let _ = remote.send(&Order::Enter { world });
        }
    }

    fn notify_gone(&mut self, rank: u32, cause: Option<Cause>) {
        let supervisor = &mut *self.supervisor;
        supervisor.history.note_gone(rank, cause);
        let job = supervisor.tasks.as_ref().map(Tasks::job);
        if let Some(job) = job.filter(|job| rank < job.tasks()) {
            note_gone(job, rank, cause);
        }
        let others = supervisor.remotes.iter_mut();
        for remote in others.filter(|remote| !remote.has(rank)) {
            let _ = remote.send(&Order::Gone { rank, cause });
        }
    }

    fn replicate(&mut self) {
        self.supervisor.hosts_changed();
    }

    fn send_again(&mut self, host: u32, task: u32, bytes: Vec<u8>) {
        self.supervisor.send_to(Some(host), task, bytes);
    }

    fn task_ended(&mut self, ended: Ended) {
        // Its last output went nowhere.
        self.supervisor.registry.close_streams(ended.rank);
        self.supervisor.task_ended(ended);
    }

    fn host_lost(&mut self, host: u32) {
        let mut remotes = self.supervisor.remotes.iter();
        let index = remotes.position(|remote| remote.number == host);
        if let (Some(index), Some(why)) = (index, self.why_lost.get(&host)) {
            self.supervisor.host_lost(index, why);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tasks_of_a_host_that_answers_and_was_given_up_are_counted_once() {
        let registry = Registry::new(Vec::new(), &[1], b"program");
        let handovers = [Handover {
            host: 1,
            running: vec![(0, 100)],
            ..Handover::default()
        }];
        let mut remote = Remote::absent(1, "beta").expect("a remote");
        remote.running.insert(0, 100);
        let lost = BTreeMap::from([(1, "given up".to_owned())]);
        let remotes = [remote];
        assert_eq!(begun(&registry, &handovers, &remotes, &lost), 1);
        assert_eq!(begun(&registry, &[], &remotes, &lost), 1);
    }
}
