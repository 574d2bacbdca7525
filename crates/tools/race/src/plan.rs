//! The plan: all groups and their launches, their number, and their order.
//!
//! A *group* is one environment with one number of tasks, the same settings and one list of
//! operations. Each of its launches is one process tree. Groups whose environments can take turns are given to [`duet`](crate::duet), which has
//! several of them up at once and draws the order of turns itself; of the others a launch is one sample of every point in it, and the
//! order is by rounds: each round launches every group once, shuffled, so that slow changes of the
//! machine hit all environments alike; within a launch the operations are shuffled too.

use crate::discover::Competitor;
use crate::family;
use crate::network::{Network, settings as network_settings};
use crate::settings::{self, Family, Resolved};
use crate::{mpi_operations, ping_pong, portability};

/// Sizes of messages, bytes.
pub const SIZES: [u64; 12] = [
    0,
    8,
    64,
    256,
    1 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
    16 << 20,
];
/// Sizes with more than two tasks, bytes.
pub const SMALL_SIZES: [u64; 2] = [8, 1024];
/// Numbers of tasks beyond two.
pub const MANY_TASKS: [u32; 4] = [4, 8, 16, 32];
/// All operations, in the order they are shown.
pub const OPERATIONS: [&str; 11] = [
    "one-to-one",
    "exchange",
    "ring",
    "message-rate",
    "barrier",
    "broadcast",
    "global-sum",
    "global-max",
    "concatenation",
    "complete-exchange",
    "copy",
];
/// Operations that are raced with more than two tasks.
const MANY_OPERATIONS: [&str; 7] = [
    "ring",
    "barrier",
    "broadcast",
    "global-sum",
    "global-max",
    "concatenation",
    "complete-exchange",
];
/// All suites.
pub const SUITES: [&str; 8] = [
    "primitives",
    "oversubscribed",
    "start",
    "memory",
    ping_pong::SUITE,
    mpi_operations::SUITE,
    portability::paper::SUITE,
    portability::targets::SUITE,
];
/// Blocks for all tasks together may not be larger than this in one task.
const LARGEST_BUFFER: u64 = 64 << 20;

/// How much time to spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Four and a half minutes.
    Quick,
    /// In between.
    Normal,
    /// At least ten launches per point, each operation in launches of its own.
    Full,
}

/// The ground of a race.
#[derive(Debug, Clone, Copy)]
pub struct Ground {
    /// The network that messages cross.
    pub network: Network,
    /// Hosts.
    pub hosts: u32,
    /// Processors of each.
    pub cores: u32,
}

impl Ground {
    /// One host with so many processors.
    pub fn local(cores: u32) -> Ground {
        Ground {
            network: Network::Local,
            hosts: 1,
            cores,
        }
    }
}

/// The user's wishes; empty lists ask for everything.
#[derive(Debug, Clone)]
pub struct Wishes {
    /// Names of suites.
    pub suites: Vec<String>,
    /// Names of operations.
    pub operations: Vec<String>,
    /// Numbers of tasks.
    pub tasks: Vec<u32>,
    /// Sizes.
    pub bytes: Vec<u64>,
    /// How much time to spend.
    pub effort: Effort,
    /// Launches per group, instead of what the effort says.
    pub launches: Option<u32>,
    /// Milliseconds per point and launch, instead of what the effort says.
    pub budget: Option<f64>,
}

/// The work of a launch's tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Measure operations, each with its sizes.
    Points(Vec<(String, Vec<u64>)>),
    /// Join and leave; the launcher's time is measured.
    JoinLeave,
    /// One task starts the others.
    Spawn,
    /// One task starts the others, and hears of their deaths.
    Notify,
    /// Be idle; memory is measured.
    IdleMemory,
    /// Be blocked in a receive; processor time is measured.
    IdleProcessor,
}

/// Launches that differ only in time and luck.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Index of the environment.
    pub competitor: usize,
    /// Suite its rows belong to.
    pub suite: &'static str,
    /// Number of tasks; for `spawn`, how many are started; of nodes, where there is a host program.
    pub tasks: u32,
    /// Their work.
    pub work: Work,
    /// With which settings.
    pub settings: Resolved,
    /// How many launches.
    pub launches: u32,
}

impl Group {
    /// How many tasks the launcher is asked for: of a family, the first.
    pub fn launched(&self) -> u32 {
        match self.work {
            Work::Spawn | Work::Notify => 1,
            _ => self.tasks,
        }
    }

    /// Are its tasks the nodes of a host program?
    pub fn has_host(&self) -> bool {
        match &self.work {
            Work::Points(points) => points.iter().any(|(name, _)| portability::has_host(name)),
            _ => false,
        }
    }

    /// How many processes take part in its points: the tasks, and the host.
    pub fn processes(&self) -> u32 {
        self.tasks + u32::from(self.has_host())
    }
}

/// One launch to come: a group, and the order of its operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Index of the group.
    pub group: usize,
    /// Number of the launch within its group, from 0.
    pub round: u32,
    /// Seed of the order of operations.
    pub seed: u64,
}

/// Milliseconds a point may take in one launch, once it is warm.
pub fn budget(wishes: &Wishes) -> f64 {
    wishes.budget.unwrap_or(match wishes.effort {
        Effort::Quick => 5.0,
        Effort::Normal => 20.0,
        Effort::Full => 30.0,
    })
}

/// Nine launches are the fewest whose interval leaves out one stray launch at either end, fifteen leave out three. A launch of `notify`
/// takes no time to speak of. Memory and idleness hardly vary.
fn launches(wishes: &Wishes, suite: &str, work: &Work) -> u32 {
    wishes.launches.unwrap_or(match (wishes.effort, suite) {
        (Effort::Quick, _) if *work == Work::Notify => 15,
        (Effort::Quick, "memory") => 2,
        (Effort::Normal, "memory") => 3,
        (Effort::Full, "memory") => 5,
        (Effort::Quick | Effort::Normal, _) => 9,
        (Effort::Full, _) => 15,
    })
}

/// Without what has come before: a point that is raced twice in one launch would look like a point of two.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

/// All groups of a race.
pub fn groups(wishes: &Wishes, competitors: &[Competitor], ground: Ground) -> Vec<Group> {
    let mut groups = Vec::new();
    for (index, competitor) in competitors.iter().enumerate() {
        let plan = OnePlan {
            wishes,
            competitor,
            index,
            ground,
        };
        for tasks in plan.task_numbers() {
            plan.primitives(tasks, &mut groups);
        }
        plan.ping_pong(&mut groups);
        plan.of_mpi(&mut groups);
        for suite in [portability::paper::SUITE, portability::targets::SUITE] {
            plan.portability(suite, &mut groups);
        }
        plan.idle_and_start(&mut groups);
    }
    groups
}

/// The plan of one environment.
struct OnePlan<'a> {
    wishes: &'a Wishes,
    competitor: &'a Competitor,
    index: usize,
    ground: Ground,
}

impl OnePlan<'_> {
    fn crowded(&self, tasks: u32) -> bool {
        tasks.div_ceil(self.ground.hosts) > self.ground.cores
    }

    fn wants_suite(&self, suite: &str) -> bool {
        self.wishes.suites.is_empty() || self.wishes.suites.iter().any(|s| s == suite)
    }

    fn task_numbers(&self) -> Vec<u32> {
        let mut numbers = distinct(self.wishes.tasks.iter().copied());
        if numbers.is_empty() {
            numbers = match self.ground.network {
                Network::Local => std::iter::once(2).chain(MANY_TASKS).collect(),
                Network::Loopback => vec![2],
                _ => vec![self.ground.hosts, 4 * self.ground.hosts],
            };
        }
        numbers.retain(|&tasks| self.wants_suite(suite_of(self.crowded(tasks))));
        // Bare sockets have no way but the network, so tasks of one host would be a poor limit.
        let bare = self.competitor.family == Family::Limit && !self.ground.network.is_local();
        numbers.retain(|&tasks| !bare || tasks == self.ground.hosts);
        numbers.retain(|&tasks| {
            !self.crowded(tasks) || settings::takes_part_crowded(self.competitor.family).is_ok()
        });
        numbers
    }

    fn operations(&self, tasks: u32) -> Vec<&'static str> {
        let all: &[&'static str] = if tasks == 2 {
            &OPERATIONS
        } else {
            &MANY_OPERATIONS
        };
        let wanted = |name: &&str| match self.wishes.operations.as_slice() {
            // A copy is no message: only the environment that shows limits needs it unasked.
            [] => {
                *name != "copy"
                    || (self.competitor.name == "limit" && self.ground.network.is_local())
            }
            asked => asked.iter().any(|operation| operation == name),
        };
        all.iter().copied().filter(wanted).collect()
    }

    fn sizes(&self, operation: &str, tasks: u32) -> Vec<u64> {
        let usual: &[u64] = if tasks == 2 { &SIZES } else { &SMALL_SIZES };
        self.fitting(operation, tasks, usual)
    }

    /// The sizes asked for, or else these, as far as they fit the operation.
    fn fitting(&self, operation: &str, tasks: u32, usual: &[u64]) -> Vec<u64> {
        let sizes: &[u64] = match self.wishes.bytes.as_slice() {
            [] => usual,
            asked => asked,
        };
        let blocks = match operation {
            "concatenation" | "complete-exchange" => u64::from(tasks),
            "vector-send-recv" | mpi_operations::BLOCKS => 2,
            mpi_operations::THREADS => 2 * 64 * 64,
            "message-rate" => 64 * 64,
            _ => 1,
        };
        let blocks_in_flight = match operation {
            "message-rate" => 64,
            mpi_operations::THREADS => 2 * 64,
            _ => blocks,
        };
        let most = LARGEST_BUFFER
            .min(self.ground.network.largest().saturating_mul(blocks) / blocks_in_flight);
        let smallest = match operation {
            "barrier" => return vec![0],
            // An empty message still has to arrive; an empty collective is nothing at all.
            "one-to-one" | "exchange" | "ring" => 0,
            name if ping_pong::is_one(name) => ping_pong::smallest(name),
            _ => 8,
        };
        // Sums and maxima are of whole numbers of 8 bytes.
        let unit = match operation {
            "global-sum" | "global-product" | "global-max" => 8,
            "vector-send-recv" | "vector-exchange" => 4,
            "accumulate-flush" | mpi_operations::BLOCKS => 8,
            name => ping_pong::unit(name),
        };
        let fitting = sizes
            .iter()
            .map(|bytes| bytes / unit * unit)
            .filter(|bytes| *bytes >= smallest && bytes.saturating_mul(blocks) <= most);
        distinct(fitting)
    }

    fn primitives(&self, tasks: u32, groups: &mut Vec<Group>) {
        let suite = suite_of(self.crowded(tasks));
        let each = |name: &'static str| (name, self.sizes(name, tasks));
        let points = self.operations(tasks).into_iter().map(each).collect();
        self.points(suite, tasks, points, groups);
    }

    /// A suite of portable interfaces: for those who ask for it, or for an operation that is in no other.
    fn portability(&self, suite: &'static str, groups: &mut Vec<Group>) {
        let Wishes {
            suites, operations, ..
        } = self.wishes;
        let whole = suites.iter().any(|name| name == suite);
        let by_name = suites.is_empty() && suite == portability::paper::SUITE;
        let asked = |name: &str| match operations.as_slice() {
            [] => whole,
            operations => {
                let own = portability::OPERATIONS.contains(&name);
                (whole || (by_name && own)) && operations.iter().any(|one| one == name)
            }
        };
        if !self.ground.network.is_local()
            || !portability::takes_part(suite, self.competitor.family)
        {
            return;
        }
        let mut places = portability::places(suite);
        places.retain(|place| asked(place.operation));
        for (tasks, host) in self.numbers(&places) {
            let mut points: Vec<(&'static str, Vec<u64>)> = Vec::new();
            for place in &places {
                let here = portability::has_host(place.operation) == host;
                let once = points.iter().all(|point| point.0 != place.operation);
                let at = match suite {
                    portability::targets::SUITE => place.tasks == tasks,
                    _ => self.is_at(place, tasks, &places),
                };
                if here && once && at {
                    let sizes = self.fitting(place.operation, tasks, &place.bytes);
                    points.push((place.operation, sizes));
                }
            }
            let crowded = self.crowded(tasks + u32::from(host));
            if !crowded || settings::takes_part_crowded(self.competitor.family).is_ok() {
                self.points(suite, tasks, points, groups);
            }
        }
    }

    /// The numbers of tasks of these places, or those asked for, each with and without a host.
    fn numbers(&self, places: &[portability::Place]) -> Vec<(u32, bool)> {
        let usual = places.iter().map(|place| place.tasks);
        let asked = self.wishes.tasks.iter().copied();
        let mut numbers = match self.wishes.tasks.is_empty() {
            true => distinct(usual),
            false => distinct(asked),
        };
        numbers.sort_unstable();
        let each = |tasks| [(tasks, false), (tasks, true)];
        numbers.into_iter().flat_map(each).collect()
    }

    /// Is the operation of this place raced with so many tasks? Its sizes are those of the nearest number that the suite has.
    fn is_at(&self, place: &portability::Place, tasks: u32, all: &[portability::Place]) -> bool {
        if self.wishes.tasks.is_empty() || portability::only_tasks(place.operation).is_some() {
            return place.tasks == tasks;
        }
        let alike = all
            .iter()
            .filter(|other| other.operation == place.operation);
        let nearest = alike
            .map(|other| other.tasks)
            .min_by_key(|number| number.abs_diff(tasks));
        let least = if portability::has_host(place.operation) {
            1
        } else {
            2
        };
        tasks >= least && nearest == Some(place.tasks)
    }

    /// The ways of PVM's messages: between two tasks, and only for those who ask for them.
    fn ping_pong(&self, groups: &mut Vec<Group>) {
        let Wishes {
            suites,
            operations,
            tasks,
            ..
        } = self.wishes;
        let suite = suites.iter().any(|suite| suite == ping_pong::SUITE);
        let asked = |name: &&str| match operations.as_slice() {
            [] => suite,
            operations => {
                (suite || suites.is_empty()) && operations.iter().any(|operation| operation == name)
            }
        };
        let hosts = self.ground.hosts;
        if hosts <= 2 && (tasks.is_empty() || tasks.contains(&2)) {
            let takes_part = |name: &&str| ping_pong::takes_part(self.competitor.family, name);
            let operations = ping_pong::OPERATIONS
                .into_iter()
                .filter(asked)
                .filter(takes_part);
            let each = |name: &'static str| (name, self.sizes(name, 2));
            let points = operations.map(each).collect();
            self.points(ping_pong::SUITE, 2, points, groups);
        }
    }

    /// The operations that only MPI has: between two tasks, and only for those who ask for them.
    fn of_mpi(&self, groups: &mut Vec<Group>) {
        let Wishes {
            suites,
            operations,
            tasks,
            ..
        } = self.wishes;
        let whole = suites.iter().any(|suite| suite == mpi_operations::SUITE);
        let asked = |name: &str| match operations.as_slice() {
            [] => whole,
            names => (whole || suites.is_empty()) && names.iter().any(|one| one == name),
        };
        let two = tasks.is_empty() || tasks.contains(&2);
        if !self.ground.network.is_local()
            || !two
            || !mpi_operations::takes_part(self.competitor.family)
        {
            return;
        }
        let each = |name: &'static str| {
            let sizes = self.fitting(name, 2, mpi_operations::sizes(name));
            (name, sizes)
        };
        let (threads, others): (Vec<_>, Vec<_>) = mpi_operations::OPERATIONS
            .into_iter()
            .filter(|name| {
                asked(name) && mpi_operations::gives_right_results(self.competitor.family, name)
            })
            .map(each)
            .partition(|point| point.0 == mpi_operations::THREADS);
        for points in [others, threads] {
            self.points(mpi_operations::SUITE, 2, points, groups);
        }
    }

    /// Operations that race with the same settings share launches, except in a full race.
    fn points(
        &self,
        suite: &'static str,
        tasks: u32,
        points: Vec<(&'static str, Vec<u64>)>,
        groups: &mut Vec<Group>,
    ) {
        let first = groups.len();
        for (operation, sizes) in points {
            let host = u32::from(portability::has_host(operation));
            let crowded = self.crowded(tasks + host);
            if sizes.is_empty() {
                continue;
            }
            let resolved = self.settings(operation, crowded);
            let point = (operation.to_owned(), sizes);
            let alike = groups[first..].iter_mut().find(|g| g.settings == resolved);
            match alike {
                Some(Group {
                    work: Work::Points(points),
                    ..
                }) if self.wishes.effort != Effort::Full => {
                    points.push(point);
                }
                _ => groups.push(self.group(suite, tasks, Work::Points(vec![point]), resolved)),
            }
        }
    }

    fn idle_and_start(&self, groups: &mut Vec<Group>) {
        let asked = |operation: &str| {
            self.wishes.operations.is_empty()
                || self.wishes.operations.iter().any(|o| o == operation)
        };
        let numbers = |usual: &[u32]| match self.wishes.tasks.as_slice() {
            [] => usual.to_vec(),
            tasks => distinct(tasks.iter().copied()),
        };
        let mut add = |suite, work: Work, usual: &[u32]| {
            if !self.wants_suite(suite) || !asked(work.operation()) {
                return;
            }
            for tasks in numbers(usual) {
                let crowded = self.crowded(tasks + u32::from(work == Work::Spawn));
                let resolved = self.settings(work.operation(), crowded);
                groups.push(self.group(suite, tasks, work.clone(), resolved));
            }
        };
        match self.ground.network {
            Network::Local => {
                add("start", Work::JoinLeave, &[2, 32]);
                for work in [Work::Spawn, Work::Notify] {
                    let (family, operation) = (self.competitor.family, work.operation());
                    if family::takes_part(family, operation).is_ok() {
                        let usual = family::usual(family, operation, self.wishes.effort);
                        add("start", work, usual);
                    }
                }
                add("memory", Work::IdleMemory, &[32]);
                add("memory", Work::IdleProcessor, &[2]);
            }
            // The cost of a task to its host has nothing to do with the network.
            _ => add("start", Work::JoinLeave, &[self.ground.hosts]),
        }
    }

    fn settings(&self, operation: &str, crowded: bool) -> Resolved {
        let (family, tuned) = (self.competitor.family, self.competitor.tuned);
        match self.ground.network {
            Network::Local => settings::resolve(family, tuned, operation, crowded),
            network => network_settings::resolve(family, tuned, network, crowded),
        }
    }

    fn group(&self, suite: &'static str, tasks: u32, work: Work, settings: Resolved) -> Group {
        let launches = launches(self.wishes, suite, &work);
        Group {
            competitor: self.index,
            suite,
            tasks,
            work,
            settings,
            launches,
        }
    }
}

impl Work {
    /// The operation's name in results; points carry their own.
    pub fn operation(&self) -> &'static str {
        match self {
            Work::Points(_) => "points",
            Work::JoinLeave => "join-leave",
            Work::Spawn => family::SPAWN,
            Work::Notify => family::NOTIFY,
            Work::IdleMemory => "idle",
            Work::IdleProcessor => "blocked-receive",
        }
    }
}

fn suite_of(crowded: bool) -> &'static str {
    if crowded {
        "oversubscribed"
    } else {
        "primitives"
    }
}

/// The launches of all groups, in rounds, each shuffled.
pub fn order(groups: &[Group], seed: u64) -> Vec<Launch> {
    let mut random = fastrand::Rng::with_seed(seed);
    let rounds = groups.iter().map(|group| group.launches).max().unwrap_or(0);
    let mut launches = Vec::new();
    for round in 0..rounds {
        let mut members: Vec<usize> = (0..groups.len())
            .filter(|&g| round < groups[g].launches)
            .collect();
        random.shuffle(&mut members);
        launches.extend(members.into_iter().map(|group| Launch {
            group,
            round,
            seed: random.u64(..),
        }));
    }
    launches
}

/// The points of a launch as the program's arguments, shuffled.
pub fn arguments(points: &[(String, Vec<u64>)], seed: u64) -> Vec<String> {
    let mut points = points.to_vec();
    fastrand::Rng::with_seed(seed).shuffle(&mut points);
    let text = |sizes: &[u64]| {
        sizes
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(",")
    };
    points
        .iter()
        .map(|(operation, sizes)| format!("{operation}={}", text(sizes)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::discover;
    use std::path::Path;

    fn wishes() -> Wishes {
        Wishes {
            suites: vec![],
            operations: vec![],
            tasks: vec![],
            bytes: vec![],
            effort: Effort::Quick,
            launches: None,
            budget: None,
        }
    }

    fn limit() -> Vec<Competitor> {
        let found = discover(Path::new("/nonexistent")).competitors;
        found.into_iter().filter(|c| c.name == "limit").collect()
    }

    #[test]
    fn what_is_asked_for_twice_is_raced_once() {
        let wishes = Wishes {
            operations: vec!["global-sum".into(), "idle".into()],
            tasks: vec![2, 2],
            bytes: vec![8, 9, 8],
            ..wishes()
        };
        let groups = groups(&wishes, &limit(), Ground::local(2));
        let work: Vec<&Work> = groups.iter().map(|group| &group.work).collect();
        let sums = Work::Points(vec![("global-sum".to_owned(), vec![8])]);
        assert_eq!(work, [&sums, &Work::IdleMemory]);
    }

    #[test]
    fn a_size_that_overflows_is_too_large() {
        let wishes = Wishes {
            operations: vec!["message-rate".into()],
            tasks: vec![2],
            bytes: vec![1 << 52, u64::MAX],
            ..wishes()
        };
        assert!(groups(&wishes, &limit(), Ground::local(2)).is_empty());
    }

    #[test]
    fn a_quick_race_covers_every_operation_and_size() {
        let groups = groups(&wishes(), &limit(), Ground::local(2));
        let Some(Group {
            work: Work::Points(points),
            ..
        }) = groups
            .iter()
            .find(|g| g.tasks == 2 && g.suite == "primitives")
        else {
            panic!("no primitives with two tasks in {groups:?}");
        };
        assert_eq!(points.len(), OPERATIONS.len());
        assert_eq!(points[0], ("one-to-one".to_owned(), SIZES.to_vec()));
        assert!(
            groups
                .iter()
                .any(|g| g.tasks == 32 && g.suite == "oversubscribed")
        );
        assert!(
            groups
                .iter()
                .any(|g| g.work == Work::IdleMemory && g.tasks == 32)
        );
    }

    #[test]
    fn wishes_narrow_the_race() {
        let wishes = Wishes {
            operations: vec!["one-to-one".into()],
            tasks: vec![2],
            bytes: vec![8, 1024],
            ..wishes()
        };
        let groups = groups(&wishes, &limit(), Ground::local(2));
        assert_eq!(groups.len(), 1, "{groups:?}");
        assert_eq!(
            groups[0].work,
            Work::Points(vec![("one-to-one".into(), vec![8, 1024])])
        );
    }

    #[test]
    fn a_task_that_starts_others_is_launched_alone_where_the_library_can() {
        let mut competitors = limit();
        let regatta = Competitor {
            name: "regatta".to_owned(),
            family: Family::Regatta,
            ..competitors[0].clone()
        };
        competitors.push(regatta);
        let wishes = Wishes {
            operations: vec!["spawn".into(), "notify".into()],
            ..wishes()
        };
        let groups = groups(&wishes, &competitors, Ground::local(2));
        let found: Vec<(&str, u32)> = groups
            .iter()
            .map(|group| (group.work.operation(), group.tasks))
            .collect();
        let expected = [("spawn", 1), ("spawn", 10), ("spawn", 100), ("notify", 2)];
        assert_eq!(found, expected);
        assert!(
            groups
                .iter()
                .all(|g| g.competitor == 1 && g.launched() == 1)
        );
    }

    #[test]
    fn a_full_race_gives_each_operation_its_own_launches() {
        let wishes = Wishes {
            effort: Effort::Full,
            tasks: vec![2],
            ..wishes()
        };
        let groups = groups(&wishes, &limit(), Ground::local(2));
        assert!(
            groups
                .iter()
                .all(|g| !matches!(&g.work, Work::Points(points) if points.len() > 1))
        );
        assert!(
            groups
                .iter()
                .filter(|g| g.suite == "primitives")
                .all(|g| g.launches >= 10)
        );
    }

    #[test]
    fn every_round_holds_every_group_once_and_the_seed_gives_the_order() {
        let groups = groups(&wishes(), &limit(), Ground::local(2));
        let launches = order(&groups, 7);
        assert_eq!(launches, order(&groups, 7));
        assert_ne!(launches, order(&groups, 8));
        for (index, group) in groups.iter().enumerate() {
            assert_eq!(
                launches.iter().filter(|l| l.group == index).count() as u32,
                group.launches
            );
        }
        assert!(
            launches
                .windows(2)
                .all(|pair| pair[0].round <= pair[1].round)
        );
    }

    #[test]
    fn buffers_stay_within_bounds() {
        let wishes = Wishes {
            bytes: vec![16 << 20],
            tasks: vec![32],
            ..wishes()
        };
        for group in groups(&wishes, &limit(), Ground::local(2)) {
            if let Work::Points(points) = group.work {
                assert!(
                    points.iter().all(|(name, _)| name != "complete-exchange"),
                    "{points:?}"
                );
            }
        }
    }
}
