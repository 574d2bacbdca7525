//! The plan: all groups, their launches and the number of launches.
//!
//! A *group* is one environment with one number of tasks, the same settings and one list of operations. Each of its
//! launches is one process tree. Groups whose environments can take turns are given to [`duet`](crate::duet), which
//! runs several of them at once and determines the order of turns. A launch of the other groups is one sample of every
//! point in it. Their order is by rounds: each round launches every group once, in random order, so that slow changes
//! of the machine affect all environments alike. Within a launch the operations are shuffled too.

mod applications;
mod order;
#[cfg(test)]
mod tests;

pub use order::{Launch, arguments, order};

use crate::discover::Competitor;
use crate::network::Network;
use crate::operations::{self, Kind, Operation, SIZES, distinct, jobs};
use crate::peers::limit::SOCKETS;
use crate::places::Place;
use crate::settings::{self, Resolved};
use crate::suites::{self, Points, Suite};

/// Default sizes with more than two tasks, in bytes.
pub const SMALL_SIZES: [u64; 2] = [8, 1024];
/// Maximum number of points larger than all of [`SIZES`] that share a launch. No smaller ones share a launch with them,
/// since a launch has a time limit.
const MAX_LARGE_POINTS: usize = 4;
/// Default numbers of tasks beyond two.
pub const MANY_TASKS: [u32; 4] = [4, 8, 16, 32];

/// How much time to spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// At most four and a half minutes, or a quarter of an hour with applications or papers.
    Quick,
    /// At most an hour.
    Normal,
    /// At least ten launches per point, each operation in launches of its own.
    Full,
}

/// The hosts and the network of a race.
#[derive(Debug, Clone, Copy)]
pub struct Ground {
    /// The network that messages cross.
    pub network: Network,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of processors of each host.
    pub cores: u32,
}

impl Ground {
    /// Returns one host with this many processors.
    pub fn local(cores: u32) -> Ground {
        Ground {
            network: Network::Local,
            hosts: 1,
            cores,
        }
    }

    /// Returns whether these tasks can be split evenly among the hosts.
    pub fn deals(&self, tasks: u32) -> bool {
        tasks.is_multiple_of(self.hosts)
    }
}

/// The user's wishes. An empty list means no restriction.
#[derive(Debug, Clone)]
pub struct Wishes {
    /// Names of suites.
    pub suites: Vec<String>,
    /// Names of operations.
    pub operations: Vec<String>,
    /// Numbers of tasks.
    pub tasks: Vec<u32>,
    /// Sizes, in bytes or as problems of applications count them.
    pub bytes: Vec<u64>,
    /// How much time to spend.
    pub effort: Effort,
    /// Launches per group, instead of the number for the effort.
    pub launches: Option<u32>,
    /// Milliseconds per point and launch, instead of the time for the effort.
    pub budget: Option<f64>,
}

/// The work of a launch's tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Measure operations, each with its sizes.
    Points(Vec<(String, Vec<u64>)>),
    /// One operation that has launches of its own.
    Own(Kind),
    /// Solve the problem of this size of an application.
    Application(&'static Operation, u64),
    /// Solve the problem of this size once more, profiled, to count its messages.
    Counted(&'static Operation, u64),
}

/// Launches that differ only in their time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Index of the environment.
    pub competitor: usize,
    /// Suite its rows belong to.
    pub suite: &'static str,
    /// Number of tasks. For `spawn` the number that is started, for a host program the number of nodes.
    pub tasks: u32,
    /// The work of its tasks.
    pub work: Work,
    /// The settings of its launches.
    pub settings: Resolved,
    /// Number of launches.
    pub launches: u32,
}

impl Group {
    /// Returns the number of tasks that the launcher is asked for: one if that task starts the others.
    pub fn launched(&self) -> u32 {
        match self.work {
            Work::Own(Kind::Spawn | Kind::Notify) => 1,
            _ => self.tasks,
        }
    }

    /// Returns whether its tasks are the nodes of a host program.
    pub fn has_host(&self) -> bool {
        match &self.work {
            Work::Points(points) => points.iter().any(|(name, _)| operations::has_host(name)),
            Work::Own(_) | Work::Application(..) | Work::Counted(..) => false,
        }
    }

    /// Returns the number of processes that take part in its points: the tasks, and the host if there is one.
    pub fn processes(&self) -> u32 {
        self.tasks + u32::from(self.has_host())
    }
}

/// Returns the milliseconds that a point may take in one launch after it is warmed up.
pub fn budget(wishes: &Wishes) -> f64 {
    wishes.budget.unwrap_or(match wishes.effort {
        Effort::Quick => 5.0,
        Effort::Normal => 20.0,
        Effort::Full => 30.0,
    })
}

/// Approximate time of a launch until its tasks have joined, s.
const START_SECONDS: f64 = 0.3;
/// Approximate time of an application, s. Those of papers take between a hundredth and ten times of that.
const APPLICATION_SECONDS: f64 = 1.5;
/// Number of times that a point takes its budget: for warming up, and for measuring.
const BUDGETS_OF_A_POINT: f64 = 2.0;

/// Returns the approximate time of all launches of a group, s.
pub fn seconds(group: &Group, budget: f64) -> f64 {
    let work = match &group.work {
        Work::Points(points) => {
            let number: usize = points.iter().map(|(_, sizes)| sizes.len()).sum();
            number as f64 * BUDGETS_OF_A_POINT * budget * 1e-3
        }
        Work::Own(_) => 0.0,
        Work::Application(..) | Work::Counted(..) => APPLICATION_SECONDS,
    };
    f64::from(group.launches) * (START_SECONDS + work)
}

/// Returns the number of launches of a group. Nine launches are the fewest whose interval leaves out one outlier at
/// either end; fifteen leave out three. A launch of `notify` takes very little time. Memory and the processor time of
/// idle tasks hardly vary.
fn launches(wishes: &Wishes, suite: &Suite, work: &Work) -> u32 {
    let idle = matches!(work, Work::Own(Kind::IdleMemory | Kind::IdleProcessor));
    wishes.launches.unwrap_or(match (wishes.effort, idle) {
        (Effort::Quick, _) if *work == Work::Own(Kind::Notify) => 15,
        (Effort::Quick, _) if matches!(work, Work::Application(..)) => 5,
        (Effort::Quick, true) => 2,
        (Effort::Normal, true) => 3,
        (Effort::Full, true) => 5,
        (Effort::Quick, _) => 9,
        (Effort::Normal, _) => suite.launches,
        (Effort::Full, _) => 15,
    })
}

/// Returns all groups of a race.
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
        for suite in suites::ALL {
            match suite.points {
                Points::OfOperations => {}
                Points::Pairs => plan.pairs(suite, &mut groups),
                Points::Listed(list) => plan.listed(suite, list(), &mut groups),
            }
            plan.applications(suite, &mut groups);
        }
        plan.own_launches(&mut groups);
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

    fn task_numbers(&self) -> Vec<u32> {
        let mut numbers = distinct(self.wishes.tasks.iter().copied());
        if numbers.is_empty() {
            numbers = match self.ground.network {
                Network::Local => std::iter::once(2).chain(MANY_TASKS).collect(),
                Network::Loopback => vec![2],
                _ => vec![self.ground.hosts, 4 * self.ground.hosts],
            };
        }
        numbers.retain(|&tasks| {
            self.wishes
                .want_suite(suites::of_primitives(self.crowded(tasks)))
        });
        numbers.retain(|tasks| self.ground.deals(*tasks));
        // Sockets without a library always use the network, so they are no limit for tasks on one host.
        let network = self.ground.network;
        let bare = self.competitor.peer.adapter(network) == SOCKETS && !network.is_local();
        numbers.retain(|&tasks| !bare || tasks == self.ground.hosts);
        numbers
            .retain(|&tasks| !self.crowded(tasks) || self.competitor.peer.facts().crowded.is_ok());
        numbers
    }

    /// Returns whether the environment can run the operation.
    fn can(&self, operation: &Operation) -> bool {
        self.competitor.peer.lacks(operation.need).is_none()
    }

    fn primitives(&self, tasks: u32, groups: &mut Vec<Group>) {
        let limit = self.competitor.peer.facts().limit && self.ground.network.is_local();
        let wanted = |operation: &&Operation| {
            // A copy is no message, so by default only the environment that shows limits races it.
            let unasked = self.wishes.operations.is_empty() && operation.of_the_limit;
            operation.exactly.is_none_or(|only| only == tasks)
                && self.wishes.want_operation(operation)
                && (!unasked || limit)
                && self.can(operation)
        };
        let usual: &[u64] = if tasks == 2 { SIZES } else { &SMALL_SIZES };
        let points = operations::of(&suites::PRIMITIVES)
            .filter(wanted)
            .map(|operation| (operation, self.fitting(operation, tasks, usual)));
        let suite = suites::of_primitives(self.crowded(tasks));
        self.points(suite, tasks, points.collect(), groups);
    }

    /// Returns the sizes that were asked for, or else `usual`, as far as they fit the operation.
    fn fitting(&self, operation: &Operation, tasks: u32, usual: &[u64]) -> Vec<u64> {
        let sizes: &[u64] = match self.wishes.bytes.as_slice() {
            [] => usual,
            asked => asked,
        };
        operation.fitting(sizes, tasks, self.ground.network.largest())
    }

    /// Adds a suite with a list of places, with its numbers of tasks or those asked for.
    fn listed(&self, suite: &'static Suite, mut places: Vec<Place>, groups: &mut Vec<Group>) {
        places.retain(|place| place.operation.kind != Kind::Application);
        if places.is_empty() || !self.is_ground(suite) || !(suite.takes)(self.competitor.peer) {
            return;
        }
        places.retain(|place| self.wishes.ask(suite, place.operation));
        let hosts = self.ground.hosts;
        if suite.on_many_hosts {
            places.retain(|place| [hosts, 2 * hosts].contains(&place.tasks));
        }
        for (tasks, host) in self.numbers(&places) {
            let mut points: Vec<(&'static Operation, Vec<u64>)> = Vec::new();
            for place in &places {
                let here = place.operation.host == host;
                let once = points
                    .iter()
                    .all(|point| point.0.name != place.operation.name);
                let at = match suite.name == suites::INTERFACES.name {
                    true => place.tasks == tasks,
                    false => self.is_at(place, tasks, &places),
                };
                let apart = !suite.on_many_hosts || place.operation.crosses(tasks, hosts);
                if here && once && at && apart && self.can(place.operation) {
                    let sizes = self.fitting(place.operation, tasks, &place.bytes);
                    points.push((place.operation, sizes));
                }
            }
            let crowded = self.crowded(tasks + u32::from(host));
            if !crowded || self.competitor.peer.facts().crowded.is_ok() {
                self.points(suite, tasks, points, groups);
            }
        }
    }

    /// Returns the numbers of tasks of these places, or those asked for, each without and with a host.
    fn numbers(&self, places: &[Place]) -> Vec<(u32, bool)> {
        let usual = places.iter().map(|place| place.tasks);
        let asked = self.wishes.tasks.iter().copied();
        let mut numbers = match self.wishes.tasks.is_empty() {
            true => distinct(usual),
            false => distinct(asked),
        };
        numbers.retain(|tasks| self.ground.deals(*tasks));
        numbers.sort_unstable();
        let each = |tasks| [(tasks, false), (tasks, true)];
        numbers.into_iter().flat_map(each).collect()
    }

    /// Returns whether the operation of this place is raced with `tasks` tasks. If other numbers were asked for, an
    /// operation takes the sizes of the nearest number that the suite has.
    fn is_at(&self, place: &Place, tasks: u32, all: &[Place]) -> bool {
        if self.wishes.tasks.is_empty() || place.operation.exactly.is_some() {
            return place.tasks == tasks;
        }
        let alike = all
            .iter()
            .filter(|other| other.operation.name == place.operation.name);
        let nearest = alike
            .map(|other| other.tasks)
            .min_by_key(|number| number.abs_diff(tasks));
        tasks >= place.operation.tasks.0 && nearest == Some(place.tasks)
    }

    /// Returns whether a suite of messages is raced on this network.
    fn is_ground(&self, suite: &Suite) -> bool {
        match suite.between_hosts {
            true if suite.on_many_hosts => self.ground.hosts > 1,
            true => self.ground.hosts <= 2,
            false => self.ground.network.is_local(),
        }
    }

    /// Adds a suite of operations between two tasks.
    fn pairs(&self, suite: &'static Suite, groups: &mut Vec<Group>) {
        let two = self.wishes.tasks.is_empty() || self.wishes.tasks.contains(&2);
        let takes = (suite.takes)(self.competitor.peer);
        if !self.is_ground(suite) || !two || !takes {
            return;
        }
        let (alone, together): (Vec<_>, Vec<_>) = operations::of(suite)
            .filter(|operation| self.wishes.ask(suite, operation) && self.can(operation))
            .map(|operation| (operation, self.fitting(operation, 2, operation.bytes)))
            .partition(|point| point.0.alone);
        self.points(suite, 2, together, groups);
        for point in alone {
            self.points(suite, 2, vec![point], groups);
        }
    }

    /// Adds points. Operations that race with the same settings share launches, except in a full race.
    fn points(
        &self,
        suite: &'static Suite,
        tasks: u32,
        points: Vec<(&'static Operation, Vec<u64>)>,
        groups: &mut Vec<Group>,
    ) {
        let first = groups.len();
        for (operation, sizes) in points {
            let crowded = self.crowded(tasks + u32::from(operation.host));
            if sizes.is_empty() {
                continue;
            }
            let resolved = self.settings_in(suite, operation, crowded);
            let more = large_points(&sizes);
            let point = (operation.name.to_owned(), sizes);
            // Large points share few launches, so that a launch that does not end in time costs no other points.
            let fits = |group: &Group| match group.work.large_points() {
                0 => more == 0,
                there => more > 0 && there + more <= MAX_LARGE_POINTS,
            };
            let alike = groups[first..]
                .iter_mut()
                .find(|group| group.settings == resolved && fits(group));
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

    /// Adds the operations that have launches of their own.
    fn own_launches(&self, groups: &mut Vec<Group>) {
        let local = self.ground.network.is_local();
        for operation in jobs::ALL {
            let suite = operation.suites[0];
            let here = local || operation.kind == Kind::JoinLeave;
            let wanted = self.wishes.want_suite(suite) && self.wishes.want_operation(operation);
            if !here || !wanted || !self.can(operation) {
                continue;
            }
            let numbers = match self.wishes.tasks.as_slice() {
                [] if !local => vec![self.ground.hosts],
                [] => {
                    jobs::usual(operation.kind, self.competitor.peer, self.wishes.effort).to_vec()
                }
                tasks => distinct(tasks.iter().copied()),
            };
            let dealt = |tasks: &u32| local || self.ground.deals(*tasks);
            for tasks in numbers.into_iter().filter(dealt) {
                let starter = u32::from(operation.kind == Kind::Spawn);
                let resolved = self.settings(operation, self.crowded(tasks + starter));
                let work = Work::Own(operation.kind);
                groups.push(self.group(suite, tasks, work, resolved));
            }
        }
    }

    fn settings(&self, operation: &Operation, crowded: bool) -> Resolved {
        let (peer, tuned) = (self.competitor.peer, self.competitor.tuned);
        settings::resolve(peer, tuned, self.ground.network, operation, crowded)
    }

    /// Returns the settings of an operation in a suite. If the suite's operations share one job, these are settings
    /// that are meant for no particular operation.
    fn settings_in(&self, suite: &Suite, operation: &Operation, crowded: bool) -> Resolved {
        match suite.one_setting {
            true => self.settings(&operations::OF_NO_PATTERN, crowded),
            false => self.settings(operation, crowded),
        }
    }

    fn group(&self, suite: &'static Suite, tasks: u32, work: Work, settings: Resolved) -> Group {
        let launches = launches(self.wishes, suite, &work);
        Group {
            competitor: self.index,
            suite: suite.name,
            tasks,
            work,
            settings,
            launches,
        }
    }
}

impl Wishes {
    /// Returns whether the user's wishes include this suite, which is not on request.
    pub fn want_suite(&self, suite: &Suite) -> bool {
        self.suites.is_empty() || self.suites.iter().any(|name| name == suite.name)
    }

    /// Returns whether the user's wishes include this operation, if they include its suite.
    pub fn want_operation(&self, operation: &Operation) -> bool {
        self.operations.is_empty() || self.operations.iter().any(|name| name == operation.name)
    }

    /// Returns whether this operation is asked for in a suite that is raced on request: by the suite's name, or by its
    /// own name if it is in no suite that is raced by default.
    pub fn ask(&self, suite: &Suite, operation: &Operation) -> bool {
        let whole = self.suites.iter().any(|name| name == suite.name);
        let first = operation.suites.first().map(|first| first.name);
        let own = operation.is_on_request() && first == Some(suite.name);
        match self.operations.is_empty() {
            true => whole,
            false => (whole || (self.suites.is_empty() && own)) && self.want_operation(operation),
        }
    }
}

/// Returns the number of sizes larger than all of [`SIZES`].
fn large_points(sizes: &[u64]) -> usize {
    let usual = SIZES.iter().max().copied().unwrap_or_default();
    sizes.iter().filter(|bytes| **bytes > usual).count()
}

impl Work {
    /// Returns the number of points that are larger than all of [`SIZES`].
    fn large_points(&self) -> usize {
        match self {
            Work::Points(points) => points.iter().map(|(_, sizes)| large_points(sizes)).sum(),
            Work::Own(_) | Work::Application(..) | Work::Counted(..) => 0,
        }
    }

    /// Returns the operation's name in results, or `points` for points, whose operations have their own names.
    pub fn operation(&self) -> &'static str {
        match self {
            Work::Points(_) => "points",
            Work::Own(kind) => jobs::of(*kind).map_or("", |operation| operation.name),
            Work::Application(operation, _) | Work::Counted(operation, _) => operation.name,
        }
    }
}
