//! Two launchers are cut off, one after the other, with any number of their messages delivered.
//!
//! Hosts 0 to 3 have one task each, with the same number. The launcher is on host 0, then on 1, then on 2.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::time::Duration;

use regatta_job::failover::{
    Absence, FailoverPlan, Follower, Handover, Replication, Successor, Takeover, known_runs,
    latest, take_over,
};
use regatta_job::registry::DEFAULT_SPEED;
use regatta_job::{End, Ended, HostRecord, Registry, ReplicatedRegistry};
use regatta_wire::control::{Ask, Event, Tell, WatchKind, flags};
use regatta_wire::fields::Message;
use regatta_wire::life::Cause;
use regatta_wire::world::World;

/// A message in flight from a launcher to an agent.
#[derive(Clone)]
enum Sent {
    Copy { change: bool, bytes: Vec<u8> },
    Confirm,
    Tell { task: u32, bytes: Vec<u8> },
    Gone { rank: u32, cause: Option<Cause> },
}

fn bytes_of(message: &impl Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

/// The hosts that are left, and the launcher.
struct Machine {
    registry: ReplicatedRegistry,
    agents: BTreeMap<u32, Follower>,
    replication: Replication,
    ways: BTreeMap<u32, VecDeque<Sent>>,
    /// Messages received, by task.
    heard: BTreeMap<u32, Vec<Tell>>,
    /// Tasks that are gone in the table of the launcher's host. The agents have the other tables.
    table: BTreeSet<u32>,
}

impl Machine {
    fn new() -> Machine {
        Machine::with_copies(&[1, 2, 3])
    }

    fn with_copies(copies: &[u32]) -> Machine {
        let host = |number| HostRecord {
            number,
            name: format!("h{number}"),
            architecture: "any".to_owned(),
            cores: 1,
            speed: DEFAULT_SPEED,
            alive: true,
        };
        let mut registry = Registry::new((0..4).map(host).collect(), &[0, 1, 2, 3], b"program");
        (0..4).for_each(|task| registry.task_started(task, 100 + task));
        let follower = || Follower::new(FailoverPlan::default(), Duration::ZERO);
        let mut replication = Replication::default();
        replication.add_holders(copies.iter().copied());
        let mut machine = Machine {
            registry: ReplicatedRegistry::new(registry, true),
            agents: (1..4).map(|host| (host, follower())).collect(),
            replication,
            ways: BTreeMap::new(),
            heard: BTreeMap::new(),
            table: BTreeSet::new(),
        };
        machine.send_whole();
        machine.arrive(&[usize::MAX; 4]);
        machine
    }

    /// Returns the hosts with replicas.
    fn holders(&self) -> Vec<u32> {
        let hosts = self.agents.keys().copied();
        hosts.filter(|host| self.replication.holds(*host)).collect()
    }

    fn send_whole(&mut self) {
        let bytes = self.registry.snapshot();
        for host in self.holders() {
            let (change, bytes) = (false, bytes.clone());
            let way = self.ways.entry(host).or_default();
            way.push_back(Sent::Copy { change, bytes });
        }
    }

    /// Sends the changes first, then the messages that depend on them, as the launcher does.
    fn speak(&mut self) {
        for change in self.registry.take_changes() {
            for host in self.holders() {
                let (change, bytes) = (true, bytes_of(&change));
                let way = self.ways.entry(host).or_default();
                way.push_back(Sent::Copy { change, bytes });
            }
        }
        for (task, tell) in self.registry.take_messages() {
            let changes = self.registry.last_change();
            self.send_when_known(changes, task, bytes_of(&tell));
        }
        if self.replication.is_to_be_asked() {
            for host in self.holders() {
                self.ways.entry(host).or_default().push_back(Sent::Confirm);
            }
        }
    }

    /// Sends a message to a task once a replica has this many changes.
    fn send_when_known(&mut self, changes: u64, task: u32, bytes: Vec<u8>) {
        let elsewhere = self.agents.contains_key(&task);
        match elsewhere && self.replication.must_wait(task, changes) {
            true => self.replication.keep(changes, task, bytes),
            false => self.send(task, bytes),
        }
    }

    fn send(&mut self, task: u32, bytes: Vec<u8>) {
        if self.agents.contains_key(&task) {
            let way = self.ways.entry(task).or_default();
            way.push_back(Sent::Tell { task, bytes });
        } else {
            let tell = Tell::decode(&bytes).expect("something to tell");
            self.heard.entry(task).or_default().push(tell);
        }
    }

    /// Makes a request of a task: the agent records it, and the launcher handles it.
    fn ask(&mut self, task: u32, ask: &Ask) {
        let bytes = bytes_of(ask);
        if let Some(agent) = self.agents.get_mut(&task) {
            agent.local.note_request(task, &bytes);
        }
        self.registry.handle_request(task, &bytes);
        self.speak();
    }

    /// Delivers this many messages to each host.
    fn arrive(&mut self, counts: &[usize; 4]) {
        let (mut counts_heard, mut confirmed) = (Vec::new(), None);
        for (host, agent) in &mut self.agents {
            let way = self.ways.entry(*host).or_default();
            for _ in 0..counts[*host as usize].min(way.len()) {
                match way.pop_front() {
                    Some(Sent::Copy { change, bytes }) => {
                        let taken = agent.replica.take_piece(change, &bytes, true);
                        taken.expect("a replica");
                    }
                    Some(Sent::Tell { task, bytes }) => {
                        let due = agent.local.note_message(task, &bytes);
                        counts_heard.extend(due.map(|count| (task, count)));
                        let tell = Tell::decode(&bytes).expect("something to tell");
                        self.heard.entry(task).or_default().push(tell);
                    }
                    Some(Sent::Gone { rank, cause }) => agent.local.gone.push((rank, cause)),
                    Some(Sent::Confirm) => confirmed = confirmed.max(agent.replica.changes()),
                    None => {}
                }
            }
        }
        for (task, bytes) in self.replication.confirm(confirmed.unwrap_or(0)) {
            self.send(task, bytes);
        }
        for (task, count) in counts_heard {
            self.registry.acknowledged(task, count);
        }
    }

    fn notify_gone(&mut self, rank: u32, cause: Option<Cause>) {
        self.table.insert(rank);
        for host in self.agents.keys() {
            let way = self.ways.entry(*host).or_default();
            way.push_back(Sent::Gone { rank, cause });
        }
    }

    /// Loses a host: the tables are updated before the registry is.
    fn lose(&mut self, host: u32) {
        self.agents.remove(&host);
        self.replication.host_lost(host);
        self.ways.remove(&host);
        self.notify_gone(host, Some(Cause::Lost));
        self.registry.task_ended(host, End::Lost);
        self.registry.host_lost(host);
    }

    /// Cuts the launcher off, with the messages still in flight, and lets `next` take over.
    fn cut(&mut self, lost: u32, next: u32) {
        self.ways.clear();
        let mut own = self.agents.remove(&next).expect("the next launcher");
        self.replication = Replication::default();
        self.replication.add_holders(self.agents.keys().copied());
        let registry = own.replica.take().expect("its replica");
        let copies = self
            .agents
            .values()
            .map(|agent| agent.replica.later_snapshot(registry.changes()));
        let later: Vec<Vec<u8>> = copies.flatten().collect();
        let mut registry = latest(registry, later.iter());
        self.table = own.local.gone.iter().map(|(rank, _)| *rank).collect();
        let agents = std::iter::once((next, &own));
        let agents = agents.chain(self.agents.iter().map(|(host, agent)| (*host, agent)));
        let handovers = agents.map(|(host, agent)| handover(host, agent)).collect();
        let launcher = ("", Absence::UnknownRun);
        let none = BTreeMap::new();
        let takeover = Takeover::new(&mut registry, handovers, none, launcher, b"program");
        self.registry = ReplicatedRegistry::new(registry, true);
        take_over(self, takeover);
        assert!(!self.registry.is_alive(lost));
        self.speak();
    }

    /// Returns the number of messages in flight to each host.
    fn under_way(&self) -> [usize; 4] {
        [0, 1, 2, 3].map(|host| self.ways.get(&host).map_or(0, VecDeque::len))
    }
}

/// Returns the handover of a host. Its task has the host's number.
fn handover(host: u32, agent: &Follower) -> Handover {
    Handover {
        host,
        tasks: 4,
        running: vec![(host, 100 + host)],
        ..agent.local.handover()
    }
}

impl Successor for Machine {
    fn registry(&mut self) -> &mut ReplicatedRegistry {
        &mut self.registry
    }

    fn enter(&mut self, _: u32, world: &World) {
        unreachable!("nobody spawns: {world:?}");
    }

    fn notify_gone(&mut self, task: u32, cause: Option<Cause>) {
        Machine::notify_gone(self, task, cause);
    }

    fn replicate(&mut self) {
        self.send_whole();
    }

    fn send_again(&mut self, _: u32, task: u32, bytes: Vec<u8>) {
        let changes = self.registry.last_change();
        self.send_when_known(changes, task, bytes);
    }

    fn task_ended(&mut self, ended: Ended) {
        unreachable!("every task lives as long as its host: {ended:?}");
    }

    fn host_lost(&mut self, host: u32, _: &Absence) {
        self.lose(host);
    }

    fn not_started(&mut self, task: u32) {
        unreachable!("task {task} has started");
    }

    fn request(&mut self, task: u32, bytes: &[u8]) {
        self.registry.handle_request(task, bytes);
    }
}

fn watch(id: u32, what: WatchKind, subject: u32) -> Ask {
    Ask::Watch { id, what, subject }
}

fn put(id: u32, name: &str, flags: u32) -> Ask {
    Ask::Put {
        id,
        name: name.to_owned(),
        index: None,
        flags,
        value: vec![7],
    }
}

fn get(id: u32, name: &str) -> Ask {
    Ask::Get {
        id,
        name: name.to_owned(),
        index: 0,
        flags: flags::WAIT | flags::DELETE,
    }
}

/// Returns every combination of at most these numbers of messages.
fn combinations(most: [usize; 4]) -> impl Iterator<Item = [usize; 4]> {
    (0..=most[1]).flat_map(move |one| {
        (0..=most[2]).flat_map(move |two| (0..=most[3]).map(move |three| [0, one, two, three]))
    })
}

fn under_the_first(machine: &mut Machine) {
    machine.ask(2, &watch(1, WatchKind::TaskEnds, 0));
    machine.ask(3, &watch(1, WatchKind::TaskEnds, 1));
    machine.ask(3, &get(2, "late"));
}

fn under_the_second(machine: &mut Machine) {
    machine.ask(2, &put(2, "late", flags::OVERWRITABLE));
    // A second request of this kind is refused.
    machine.ask(2, &put(3, "once", 0));
    machine.ask(3, &watch(3, WatchKind::HostLost, 1));
}

#[test]
fn whatever_was_on_its_way_when_two_launchers_are_cut_off_is_answered_once_and_happens_once() {
    let mut machine = Machine::new();
    under_the_first(&mut machine);
    for first in combinations(machine.under_way()) {
        let begun = || {
            let mut machine = Machine::new();
            under_the_first(&mut machine);
            machine.arrive(&first);
            machine.cut(0, 1);
            // Up to now all messages are delivered.
            machine.arrive(&[usize::MAX; 4]);
            under_the_second(&mut machine);
            machine
        };
        for second in combinations(begun().under_way()) {
            let mut machine = begun();
            machine.arrive(&second);
            machine.cut(1, 2);
            machine.arrive(&[usize::MAX; 4]);
            check(&machine, first, second);
        }
    }
}

fn check(machine: &Machine, first: [usize; 4], second: [usize; 4]) {
    let story = format!("{first:?} arrived of the first launcher, {second:?} of the second");
    let answers = |task: u32, id: u32| -> Vec<&Tell> {
        let heard = machine.heard[&task].iter();
        heard.filter(|tell| tell.id() == Some(id)).collect()
    };
    for (task, id) in [(2, 1), (3, 1), (3, 2), (2, 2), (2, 3), (3, 3)] {
        let all = answers(task, id);
        assert_eq!(all.len(), 1, "{story}: task {task}, question {id}: {all:?}");
        assert!(
            !matches!(all[0], Tell::Refused { .. }),
            "{story}: question {id} of task {task} was asked twice: {all:?}"
        );
    }
    let events = |task: u32, number: u32| {
        let heard = machine.heard[&task].iter();
        let of = |tell: &&Tell| matches!(tell, Tell::Event { watch, .. } if *watch == number);
        heard.filter(of).count()
    };
    for (task, number) in [(2, 1), (3, 1), (3, 3)] {
        assert_eq!(
            events(task, number),
            1,
            "{story}: task {task}, watch {number}"
        );
    }
    let all = machine.heard.values().flatten();
    let losses = all.filter(|tell| {
        matches!(tell, Tell::Event { event: Event::HostLost { host, .. }, .. } if *host == 1)
    });
    assert_eq!(losses.count(), 1, "{story}");
}

/// A task sends many requests at once and receives some of the answers. Each request is answered and takes effect once,
/// though nothing else was delivered.
#[test]
fn however_much_was_on_its_way_to_a_task_nothing_of_it_is_lost() {
    const QUESTIONS: u32 = 300;
    for heard in [0, 40, 299] {
        let mut machine = Machine::new();
        for id in 0..QUESTIONS {
            machine.ask(3, &watch(id, WatchKind::TaskEnds, 0));
        }
        let arrived = machine.ways[&3].iter().scan(0, |told, sent| {
            *told += usize::from(matches!(sent, Sent::Tell { .. }));
            (*told <= heard).then_some(())
        });
        let arrived = arrived.count();
        machine.arrive(&[0, usize::MAX, 0, arrived]);
        machine.cut(0, 1);
        machine.arrive(&[usize::MAX; 4]);
        let (mut answers, mut events) = (Vec::new(), Vec::new());
        for tell in &machine.heard[&3] {
            answers.extend(tell.id());
            if let Tell::Event { watch, .. } = tell {
                events.push(*watch);
            }
        }
        events.sort_unstable();
        let all: Vec<u32> = (0..QUESTIONS).collect();
        assert_eq!(answers, all, "{heard} answers had been heard");
        assert_eq!(events, all, "{heard} answers had been heard");
    }
}

/// A host is lost, then the launcher's, then the next one's. Every host that is left records all of their tasks as
/// gone, whatever it has received from which launcher.
#[test]
fn every_table_has_the_tasks_as_gone_whose_host_was_lost_before_the_launcher_was_cut_off() {
    let begun = || {
        let mut machine = Machine::new();
        machine.lose(3);
        machine.speak();
        machine
    };
    let has_all = |machine: &Machine, lost: &[u32], story: &str| {
        let lost: BTreeSet<u32> = lost.iter().copied().collect();
        assert_eq!(machine.table, lost, "{story}: the launcher's table");
        for (host, agent) in &machine.agents {
            let gone: BTreeSet<u32> = agent.local.gone.iter().map(|(rank, _)| *rank).collect();
            assert_eq!(gone, lost, "{story}: the table of host {host}");
        }
    };
    for first in combinations(begun().under_way()) {
        let second = || {
            let mut machine = begun();
            machine.arrive(&first);
            machine.cut(0, 1);
            machine
        };
        let mut whole = second();
        whole.arrive(&[usize::MAX; 4]);
        has_all(&whole, &[0, 3], &format!("{first:?} arrived, then all"));
        for last in combinations(second().under_way()) {
            let mut machine = second();
            machine.arrive(&last);
            let story = format!("{first:?} arrived, then {last:?}");
            machine.cut(1, 2);
            has_all(&machine, &[0, 1, 3], &story);
        }
    }
}

/// A host that joined later is given back, and another one could not join. The next launcher does not add them either,
/// once any task may have been told.
#[test]
fn a_host_that_is_given_back_or_refused_is_known_to_the_next_launcher() {
    let begun = || {
        let mut machine = Machine::new();
        machine.registry.add_known_run("r4");
        machine.registry.add_known_run("refused");
        machine.ask(2, &watch(1, WatchKind::TaskEnds, 0));
        machine
    };
    let mut heard_before = HashSet::new();
    for first in combinations(begun().under_way()) {
        let mut machine = begun();
        machine.arrive(&first);
        let heard = machine.heard.contains_key(&2);
        heard_before.insert(heard);
        machine.cut(0, 1);
        let line = ["r1", "r2", "r3"].map(str::to_owned).into_iter();
        let known = known_runs(&machine.registry, line);
        let all = known == ["r1", "r2", "r3", "r4", "refused"];
        assert!(all || !heard, "{first:?} arrived: {known:?}");
    }
    assert_eq!(heard_before.len(), 2, "a task had heard an answer or not");
}

/// A task on a host without a copy joins a group, puts an entry and watches. If it has received any answer by the time
/// of the cut, the next launcher knows of it, and the rest is done once.
#[test]
fn no_task_hears_of_what_the_next_launcher_does_not_know() {
    let begun = || {
        let mut machine = Machine::with_copies(&[1, 2]);
        let group = "crew".to_owned();
        machine.ask(3, &Ask::Join { id: 1, group });
        machine.ask(3, &put(2, "once", 0));
        machine.ask(3, &watch(3, WatchKind::TaskEnds, 0));
        machine
    };
    let mut heard_before = HashSet::new();
    for first in combinations(begun().under_way()) {
        let second = || {
            let mut machine = begun();
            machine.arrive(&first);
            machine
        };
        for last in combinations(second().under_way()) {
            let mut machine = second();
            machine.arrive(&last);
            let before = machine.heard.get(&3).map_or(0, Vec::len);
            heard_before.insert(before);
            machine.cut(0, 1);
            machine.arrive(&[usize::MAX; 4]);
            let story = format!("{first:?} arrived, then {last:?}");
            let group = "crew".to_owned();
            machine.ask(2, &Ask::Members { id: 9, group });
            machine.arrive(&[usize::MAX; 4]);
            let answers: Vec<u32> = machine.heard[&3].iter().filter_map(Tell::id).collect();
            assert_eq!(answers, [1, 2, 3], "{story}");
            let refused = |tell: &Tell| matches!(tell, Tell::Refused { .. });
            assert!(
                !machine.heard[&3].iter().any(refused),
                "{story}: asked twice"
            );
            let events = machine.heard[&3].iter();
            let events = events.filter(|tell| matches!(tell, Tell::Event { .. }));
            assert_eq!(events.count(), 1, "{story}: it watches");
            let members = machine.heard[&2].iter().find(|tell| tell.id() == Some(9));
            let tasks = vec![Some(3)];
            assert_eq!(members, Some(&Tell::Members { id: 9, tasks }), "{story}");
        }
    }
    assert_eq!(
        heard_before.len(),
        4,
        "some of it was heard before: {heard_before:?}"
    );
}
