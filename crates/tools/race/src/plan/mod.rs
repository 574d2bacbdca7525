//! The plan: all groups, their launches and their number.
//!
//! A *group* is one environment with one number of tasks, the same settings and one list of
//! operations. Each of its launches is one process tree. Groups whose environments can take turns are given to [`duet`](crate::duet), which has
//! several of them up at once and draws the order of turns itself; of the others a launch is one sample of every point in it, and the
//! order is by rounds: each round launches every group once, shuffled, so that slow changes of the
//! machine hit all environments alike; within a launch the operations are shuffled too.

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

/// Sizes with more than two tasks, bytes.
pub const SMALL_SIZES: [u64; 2] = [8, 1024];
/// At most this many points larger than all of [`SIZES`] share a launch, and no smaller ones with them: a launch has a time limit.
const MAX_LARGE_POINTS: usize = 4;
/// Numbers of tasks beyond two.
pub const MANY_TASKS: [u32; 4] = [4, 8, 16, 32];

/// How much time to spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// One host with this many processors.
    pub fn local(cores: u32) -> Ground {
        Ground {
            network: Network::Local,
            hosts: 1,
            cores,
        }
    }

    /// Whether every host gets as many of these tasks as the others.
    pub fn deals(&self, tasks: u32) -> bool {
        tasks.is_multiple_of(self.hosts)
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
    /// One operation that has launches of its own.
    Own(Kind),
    /// Solve the problem of this size of an application.
    Application(&'static Operation, u64),
    /// Solve it once more, profiled: its messages are counted.
    Counted(&'static Operation, u64),
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
            Work::Own(Kind::Spawn | Kind::Notify) => 1,
            _ => self.tasks,
        }
    }

    /// Are its tasks the nodes of a host program?
    pub fn has_host(&self) -> bool {
        match &self.work {
            Work::Points(points) => points.iter().any(|(name, _)| operations::has_host(name)),
            Work::Own(_) | Work::Application(..) | Work::Counted(..) => false,
        }
    }

    /// How many processes take part in its points: the tasks, and the host.
    pub fn processes(&self) -> u32 {
        self.tasks + u32::from(self.has_host())
    }
}

/// Milliseconds a point may take in one launch, once it is warm.
pub fn budget(wishes: &Wishes) -> f64 {
    wishes.budget.unwrap_or(match wishes.effort {
        Effort::Quick => 5.0,
        Effort::Normal => 20.0,
        Effort::Full => 30.0,
    })
}

/// About how long a launch takes until its tasks have joined, s.
const START_SECONDS: f64 = 0.3;
/// About how long an application takes; those of papers are between a hundredth of that and ten times as much, s.
const APPLICATION_SECONDS: f64 = 1.5;
/// Times that a point takes its budget for: to warm up, and to be measured.
const BUDGETS_OF_A_POINT: f64 = 2.0;

/// Returns about how long all launches of a group take, s.
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

/// Nine launches are the fewest whose interval leaves out one stray launch at either end, fifteen leave out three. A launch of `notify`
/// takes no time to speak of. Memory and idleness hardly vary.
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
        // Bare sockets have no way but the network, so tasks of one host would be a poor limit.
        let network = self.ground.network;
        let bare = self.competitor.peer.adapter(network) == SOCKETS && !network.is_local();
        numbers.retain(|&tasks| !bare || tasks == self.ground.hosts);
        numbers
            .retain(|&tasks| !self.crowded(tasks) || self.competitor.peer.facts().crowded.is_ok());
        numbers
    }

    /// Can the environment run it?
    fn can(&self, operation: &Operation) -> bool {
        self.competitor.peer.lacks(operation.need).is_none()
    }

    fn primitives(&self, tasks: u32, groups: &mut Vec<Group>) {
        let limit = self.competitor.peer.facts().limit && self.ground.network.is_local();
        let wanted = |operation: &&Operation| {
            // A copy is no message: only the environment that shows limits needs it unasked.
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

    /// The sizes asked for, or else these, as far as they fit the operation.
    fn fitting(&self, operation: &Operation, tasks: u32, usual: &[u64]) -> Vec<u64> {
        let sizes: &[u64] = match self.wishes.bytes.as_slice() {
            [] => usual,
            asked => asked,
        };
        operation.fitting(sizes, tasks, self.ground.network.largest())
    }

    /// A suite with a list of places: with its numbers of tasks, or those asked for.
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

    /// The numbers of tasks of these places, or those asked for, each with and without a host.
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

    /// Is the operation of this place raced with so many tasks? Its sizes are those of the nearest number that the suite has.
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

    /// Whether a suite of messages is raced on this network.
    fn is_ground(&self, suite: &Suite) -> bool {
        match suite.between_hosts {
            true if suite.on_many_hosts => self.ground.hosts > 1,
            true => self.ground.hosts <= 2,
            false => self.ground.network.is_local(),
        }
    }

    /// A suite of operations between two tasks.
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

    /// Operations that race with the same settings share launches, except in a full race.
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
            // A launch that does not end in time costs no others anything.
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

    /// Operations that have launches of their own.
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

    /// As [`OnePlan::settings`], in a suite whose operations may share one job.
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
    /// Is this suite wanted by those who have not asked for any?
    pub fn want_suite(&self, suite: &Suite) -> bool {
        self.suites.is_empty() || self.suites.iter().any(|name| name == suite.name)
    }

    /// Is this operation wanted, if its suite is?
    pub fn want_operation(&self, operation: &Operation) -> bool {
        self.operations.is_empty() || self.operations.iter().any(|name| name == operation.name)
    }

    /// Is this operation asked for, in a suite that is raced on request? By the suite's name, or by its own if it is in no other suite.
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

/// The number of sizes beyond all usual ones.
fn large_points(sizes: &[u64]) -> usize {
    let usual = SIZES.iter().max().copied().unwrap_or_default();
    sizes.iter().filter(|bytes| **bytes > usual).count()
}

impl Work {
    /// The number of points that are larger than all of [`SIZES`].
    fn large_points(&self) -> usize {
        match self {
            Work::Points(points) => points.iter().map(|(_, sizes)| large_points(sizes)).sum(),
            Work::Own(_) | Work::Application(..) | Work::Counted(..) => 0,
        }
    }

    /// The operation's name in results; points carry their own.
    pub fn operation(&self) -> &'static str {
        match self {
            Work::Points(_) => "points",
            Work::Own(kind) => jobs::of(*kind).map_or("", |operation| operation.name),
            Work::Application(operation, _) | Work::Counted(operation, _) => operation.name,
        }
    }
}
