//! A supervisor that goes on with a job that had another one, on a host that is lost.
//!
//! The agents have been brought together (`succession`). What they know is compared with the copy of the registry; what it does
//! not know happens now. Then the loop goes on as if it had never been another one.

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use regatta_job::failover::{
    Candidate, HostFacts, Replication, SuccessionOrder, all_gone, is_open,
};
use regatta_job::{Ended, Lifecycle, Registry, ReplicatedRegistry};
use regatta_transport::job::Cause;
use regatta_wire::control::{Ask, Spawn, Tell, Why};
use regatta_wire::fields::Message;
use regatta_wire::world::World;

use super::Supervisor;
use super::gates::Gates;
use super::growing::Growing;
use super::history::History;
use super::leadership;
use super::reach::Reaches;
use super::starters::Awaited;
use crate::agent::note_gone;
use crate::channel::Link;
use crate::channel::messages::{Order, State};
use crate::entrance::{Entrance, Newcomer};
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
use crate::wakes::Wakes;

/// All that is known of the job.
pub(crate) struct Stock {
    /// What this host's agent knows, and what its tasks have asked.
    pub own: State,
    pub asked: Vec<(u32, Vec<u8>)>,
    /// The way on which the old launcher spoke. Its end is the end of the job here.
    pub tether: Link,
    pub signals: Signals,
    pub owner: Owner,
    pub tasks: Tasks,
    pub entrance: Option<Entrance>,
    pub streams: Streams,
    /// The copy.
    pub registry: Registry,
    /// All that have been added.
    pub worlds: Vec<World>,
    pub ground: Ground,
    /// Who led the job before, and why that host is lost.
    pub launcher: (SuccessionOrder, String),
    pub found: Vec<Found>,
    pub lost: Vec<(Candidate, String)>,
    pub here: Candidate,
}

/// What is left to be said to tasks when the loop is about to begin.
struct Unfinished {
    states: Vec<(u32, State)>,
    asked: Vec<(u32, Vec<u8>)>,
    worlds: Vec<World>,
    gone: BTreeMap<u32, Option<Cause>>,
    lost: BTreeMap<u32, String>,
    /// Who has knocked here.
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
    states: &[(u32, State)],
    remotes: &[Remote],
    lost: &BTreeMap<u32, String>,
) -> usize {
    let news = |ended: &&Ended| registry.is_alive(ended.rank);
    let of_state =
        |(_, state): &(u32, State)| state.running.len() + state.ended.iter().filter(news).count();
    let gone = remotes
        .iter()
        .filter(|remote| lost.contains_key(&remote.number));
    let gone: usize = gone.map(|remote| remote.running.len()).sum();
    states.iter().map(of_state).sum::<usize>() + gone
}

/// Which tasks are no more, of all that these hosts and the registry know.
fn gone(registry: &Registry, states: &[(u32, State)]) -> BTreeMap<u32, Option<Cause>> {
    let hosts = states.iter().map(|(_, state)| HostFacts {
        gone: &state.gone,
        ended: &state.ended,
    });
    all_gone(registry, hosts)
}

impl<'p> Supervisor<'p> {
    fn resumed(
        plan: &'p Plan,
        output: Output,
        stock: Stock,
    ) -> Result<(Self, Unfinished), Refusal> {
        let (registry, here) = (&stock.registry, &stock.here);
        let numbers: Vec<(u32, String)> = registry
            .hosts()
            .iter()
            .filter(|host| host.alive && host.number != here.number)
            .map(|host| (host.number, host.name.clone()))
            .collect();
        let host_of: Vec<u32> = (0..registry.task_count())
            .map(|task| registry.host_of(task).unwrap_or_default())
            .collect();
        let names: Vec<String> = plan
            .across
            .iter()
            .flat_map(|across| across.hosts.iter().map(|host| host.name.clone()))
            .collect();
        let mut runs: BTreeMap<u32, String> = BTreeMap::new();
        let heirs = stock.found.iter().map(|found| found.remote.number);
        let present: HashSet<u32> = heirs.chain([here.number]).collect();
        for heir in &stock.launcher.0.candidates {
            runs.insert(heir.number, heir.run.clone());
        }
        let mut lost: BTreeMap<u32, String> = stock
            .lost
            .iter()
            .map(|(heir, why)| (heir.number, why.clone()))
            .collect();
        // What the table of this host says of its own tasks is what the agent would have said.
        let mut states = vec![(here.number, stock.own)];
        let mut asked = stock.asked;
        let mut remotes = Vec::new();
        for found in stock.found {
            let mut remote = found.remote;
            remote.ranks = tasks_on(registry, remote.number);
            remote.unstarted = found.state.unstarted.clone();
            remote.running = found.state.running.iter().copied().collect();
            remote.births = found.state.births;
            states.push((remote.number, found.state));
            asked.extend(found.asked);
            remotes.push(remote);
        }
        for (number, name) in numbers {
            if present.contains(&number) {
                continue;
            }
            let remote = absentee(registry, number, &name)?;
            let why = match name == stock.launcher.0.name {
                true => stock.launcher.1.as_str(),
                false => NO_MORE,
            };
            lost.entry(number).or_insert_with(|| why.to_owned());
            remotes.push(remote);
        }
        let gone = gone(registry, &states);
        for (number, state) in states.iter().filter(|(number, _)| *number != here.number) {
            // Some have heard already that the host is lost: the old launcher had given it up.
            if state
                .running
                .iter()
                .any(|(rank, _)| gone.contains_key(rank))
            {
                let why = "the launcher before this one had given it up";
                lost.entry(*number).or_insert_with(|| why.to_owned());
            }
        }
        let begun = begun(registry, &states, &remotes, &lost);
        let before = (0..registry.task_count())
            .filter(|&task| !registry.is_alive(task))
            .count();
        let lifecycle = Lifecycle::new(plan.policy(), registry.task_count())
            .across(names, host_of)
            .resumed(stock.tasks.job().first(), begun as u32, before as u32);
        let mut growing = Growing::begin(
            plan.across.as_ref(),
            Some(stock.ground),
            plan.stays,
            &stock.signals,
        );
        if let Some(growing) = &mut growing {
            growing.is_gathered();
        }
        let mut history = History::new(growing.is_some(), plan.stays);
        let worlds = stock.worlds.iter();
        worlds.for_each(|world| history.note_world(world));
        let leadership = leadership::of(
            plan.across
                .as_ref()
                .and_then(|across| across.growth.as_ref()),
            runs,
        );
        let mut entrance = stock.entrance;
        let waiting = entrance.as_mut().map(Entrance::take_all);
        let waiting = waiting.unwrap_or_default();
        let door = entrance.map(|entrance| entrance.door);
        let supervisor = Self {
            registry: ReplicatedRegistry::new(stock.registry, true),
            gates: Gates::default(),
            replication: Replication::default(),
            spawning: Vec::new(),
            births: 0,
            clocks: Vec::new(),
            here: Some(here.name.clone()),
            number: here.number,
            growing,
            history,
            leadership,
            tether: Some(stock.tether),
            input: None,
            size: stock.tasks.job().first(),
            tasks: Some(stock.tasks),
            remotes,
            wakes: Wakes::new(),
            reaches: Reaches::default(),
            starter: None,
            awaited: Awaited::default(),
            door,
            ready: None,
            early: Vec::new(),
            late: Vec::new(),
            owed: Vec::new(),
            lifecycle,
            streams: Some(stock.streams),
            output,
            started: Instant::now(),
            childless: false,
            plan,
            signals: stock.signals,
            owner: stock.owner,
        };
        let unfinished = Unfinished {
            states,
            asked,
            worlds: stock.worlds,
            gone,
            lost,
            waiting,
        };
        Ok((supervisor, unfinished))
    }

    /// Lets happen what the registry has not heard of, and says what tasks have not.
    fn catch_up(&mut self, unfinished: Unfinished) {
        let Unfinished {
            states,
            asked,
            worlds,
            gone,
            lost,
            waiting,
        } = unfinished;
        for (number, state) in &states {
            for world in worlds.iter().filter(|world| world.first >= state.tasks) {
                if let Some(remote) = self.remote(*number) {
                    let world = world.clone();
                    let _ = remote.send(&Order::Enter { world });
                }
            }
        }
        // Some hosts may have been told of these and others not.
        for (rank, cause) in gone {
            self.tell_gone_again(rank, cause);
        }
        // Before anything new is said, so that tasks hear things in the order in which they happened.
        let answered = self.say_again(&states);
        for (_, state) in &states {
            for &ended in &state.ended {
                if self.registry.is_alive(ended.rank) {
                    // What it wrote last went nowhere.
                    self.registry.close_streams(ended.rank);
                    self.task_ended(ended);
                }
            }
            for &(rank, pid) in &state.running {
                if self.registry.pid(rank) == 0 {
                    self.registry.task_started(rank, pid);
                }
            }
        }
        for index in 0..self.remotes.len() {
            if let Some(why) = lost.get(&self.remotes[index].number) {
                self.host_lost(index, why);
            }
        }
        self.note_unborn(&states);
        let spawned: Vec<(u32, u32)> = states
            .iter()
            .flat_map(|(_, state)| state.heard.iter().map(|&(task, (_, below))| (task, below)))
            .collect();
        for (task, bytes) in asked {
            self.ask_again(task, &bytes, &answered, &worlds, &spawned);
        }
        self.hosts_changed();
        self.speak();
        waiting
            .into_iter()
            .for_each(|newcomer| self.let_in(newcomer));
    }

    /// Says to every table that a task is gone, also to those that have it so.
    fn tell_gone_again(&mut self, rank: u32, cause: Option<Cause>) {
        self.history.note_gone(rank, cause);
        let job = self.tasks.as_ref().map(Tasks::job);
        if let Some(job) = job.filter(|job| rank < job.tasks()) {
            note_gone(job, rank, cause);
        }
        for remote in self.remotes.iter_mut().filter(|remote| !remote.has(rank)) {
            let _ = remote.send(&Order::Gone { rank, cause });
        }
    }

    /// Numbers that were given and whose tasks no host has, nor had, nor will start.
    fn note_unborn(&mut self, states: &[(u32, State)]) {
        let mut known: HashSet<u32> = HashSet::new();
        for (_, state) in states {
            known.extend(&state.unstarted);
            known.extend(state.running.iter().map(|(rank, _)| rank));
        }
        let unborn: Vec<u32> = (0..self.registry.task_count())
            .filter(|task| self.registry.is_alive(*task) && !known.contains(task))
            .collect();
        for rank in unborn {
            self.note_born(rank, None);
        }
    }

    /// Says to each task what it has been told by the old launcher, as far as we know, and has not heard. The questions
    /// that this answers.
    fn say_again(&mut self, states: &[(u32, State)]) -> HashSet<(u32, u32)> {
        let mut answered = HashSet::new();
        for (number, state) in states {
            let heard: BTreeMap<u32, u32> = state
                .heard
                .iter()
                .map(|&(task, (count, _))| (task, count))
                .collect();
            for &(task, _) in &state.running {
                let heard = heard.get(&task).copied().unwrap_or_default();
                for bytes in self.registry.unacknowledged(task, heard) {
                    if let Ok(tell) = Tell::decode(&bytes) {
                        answered.extend(tell.id().map(|id| (task, id)));
                    }
                    match self.remote(*number) {
                        Some(remote) => drop(remote.send(&Order::Tell { task, bytes })),
                        None => self
                            .tasks
                            .iter_mut()
                            .for_each(|tasks| tasks.tell(task, &bytes)),
                    }
                }
            }
        }
        answered
    }

    /// Hears a question again that the old launcher may have heard.
    fn ask_again(
        &mut self,
        task: u32,
        bytes: &[u8],
        answered: &HashSet<(u32, u32)>,
        worlds: &[World],
        spawned: &[(u32, u32)],
    ) {
        let Ok(ask) = Ask::decode(bytes) else { return };
        let Some(id) = ask.id() else { return };
        if !is_open(&self.registry, answered, task, id) {
            return;
        }
        if let Ask::Spawn { order, .. } = &ask {
            let below = spawned.iter().find(|(by, _)| *by == task);
            let below = below.map_or(0, |(_, below)| *below);
            let mut begun = worlds.iter();
            let begun = begun.find(|world| world.parent == Some(task) && world.first >= below);
            if let Some(world) = begun {
                return self.conclude_spawn(task, id, order, world);
            }
        }
        self.asked(task, bytes);
    }

    /// Tells who asked for tasks which of them there are: the old launcher had given out their numbers.
    fn conclude_spawn(&mut self, by: u32, id: u32, order: &Spawn, world: &World) {
        let numbers = world.first..world.first + world.places.len() as u32;
        let mut tasks: Vec<Result<u32, Why>> = numbers
            .map(
                |task| match self.registry.is_alive(task) || self.registry.pid(task) != 0 {
                    true => Ok(task),
                    false => Err(Why::Host),
                },
            )
            .collect();
        tasks.resize(order.count as usize, Err(Why::Host));
        tasks.sort_by_key(|task| task.unwrap_or(u32::MAX));
        let sentence = match tasks.iter().all(Result::is_ok) {
            true => String::new(),
            false => "the host of the launcher was lost while it started tasks".to_owned(),
        };
        self.registry.send(
            by,
            Tell::Spawned {
                id,
                tasks,
                sentence,
            },
        );
    }
}

fn tasks_on(registry: &Registry, host: u32) -> HashSet<u32> {
    let here = |task: &u32| registry.host_of(*task) == Some(host);
    (0..registry.task_count()).filter(here).collect()
}
