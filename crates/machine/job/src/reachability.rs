//! Tasks that cannot reach each other although the launcher reaches both. They are reported to the user, and give each
//! other up if the user wants that.
//!
//! *Decision.* A task whose messages are not acknowledged reports that ([`regatta_wire::control::Ask::Reach`]),
//! repeatedly while it lasts, so that the next launcher receives it too. The other task may only wait for messages, and
//! does not notice. So the launcher decides for both, once for each pair of tasks, and tells both the same. The
//! decision is final. The launcher decides nothing about a host from which it has received nothing since the silence
//! began: such a host may be lost, which `--host-timeout` handles. And it decides only when a report has just arrived:
//! a task that is stopped, or gets no processor, reports neither that the silence lasts nor that it is over.
//!
//! *Reports.* The user gets one line for all pairs of tasks on the same two hosts, and one when the last of them is
//! reached again. Two hosts that are cut off again and again are reported at most once in [`REPEAT_INTERVAL`]. Of many
//! pairs of hosts only the first [`MAX_NAMED_PAIRS`] are named. The others are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use crate::{Lifecycle, Registry};

#[cfg(test)]
mod tests;

/// Minimum time before two hosts are named again after their last report.
const REPEAT_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of pairs of hosts that are named at a time.
const MAX_NAMED_PAIRS: usize = 8;
/// Time for which unnamed pairs of hosts are counted before their number is reported.
const COUNTING_TIME: Duration = Duration::from_secs(1);
/// Maximum number of pairs of hosts that are reported to the daemon.
const MAX_LISTED_PAIRS: usize = 64;

/// Numbers of two tasks or two hosts, the lower one first.
type Two = (u32, u32);

fn two(one: u32, other: u32) -> Two {
    (one.min(other), one.max(other))
}

/// A step for the launcher. Effects are carried out in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReachabilityEffect {
    /// Print this sentence for the user.
    Report(String),
    /// Write an event about two tasks, for programs that read events.
    Event {
        /// The event.
        event: ReachabilityEvent,
        /// The task that has reported it.
        by: u32,
        /// The task that it cannot reach.
        peer: u32,
        /// How long the silence has lasted.
        lasted: Duration,
    },
    /// Tell a task that it must treat another one as dead, and why.
    GiveUp {
        /// The task to tell.
        to: u32,
        /// The task to be treated as dead.
        task: u32,
        /// The reason.
        sentence: String,
    },
}

/// A change between two tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReachabilityEvent {
    /// The tasks cannot reach each other.
    Unreachable,
    /// The tasks reach each other again.
    Reachable,
    /// The tasks have given each other up.
    GivenUp,
}

impl ReachabilityEvent {
    /// Returns the event's name for programs.
    pub fn name(self) -> &'static str {
        match self {
            ReachabilityEvent::Unreachable => "unreachable",
            ReachabilityEvent::Reachable => "reachable",
            ReachabilityEvent::GivenUp => "given-up",
        }
    }
}

/// The first pair of tasks on two hosts that cannot reach each other, for the list of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreachablePair {
    /// The task that has reported it.
    pub task: u32,
    /// The task that it cannot reach.
    pub peer: u32,
    /// How long the silence has lasted.
    pub lasted: Duration,
    /// Whether all pairs of tasks on these hosts have given each other up.
    pub given_up: bool,
}

/// Two tasks of which at least one does not reach the other.
#[derive(Debug)]
struct Pair {
    /// The time of the first report, and how long the silence had lasted by then.
    reported: Duration,
    silent: Duration,
    /// The one or two of the tasks that have reported it.
    by: BTreeSet<u32>,
    /// The task that reported it first, and the address at which the other one listens.
    first: u32,
    address: Option<SocketAddr>,
    /// Whether a report has arrived since the last `look`, which means that the silence lasts.
    renewed: bool,
    given_up: bool,
}

impl Pair {
    fn lasted(&self, now: Duration) -> Duration {
        self.silent + now.saturating_sub(self.reported)
    }

    /// Returns the task that reported it first, then the other one.
    fn ordered(&self, tasks: Two) -> Two {
        match self.first == tasks.0 {
            true => tasks,
            false => (tasks.1, tasks.0),
        }
    }

    /// Returns the names of the task that cannot reach the other one, and of that other one with its address, for
    /// sentences.
    fn named(&self, tasks: Two, lifecycle: &Lifecycle) -> (String, String) {
        let (one, other) = self.ordered(tasks);
        let other = named(other, lifecycle);
        let other = match self.address {
            Some(address) => format!("{other} ({})", address.ip()),
            None => other,
        };
        (named(one, lifecycle), other)
    }
}

fn named(task: u32, lifecycle: &Lifecycle) -> String {
    match lifecycle.host(task) {
        Some(host) => format!("task {task} on {host}"),
        None => format!("task {task}"),
    }
}

/// What the user has been told about two hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Told {
    #[default]
    Nothing,
    Named,
    /// Counted among others, without their names.
    Counted,
}

/// All pairs of tasks on the same two hosts that cannot reach each other.
#[derive(Debug, Default)]
struct Between {
    pairs: BTreeMap<Two, Pair>,
    told: Told,
    /// Whether the user has been told that tasks of these hosts have given each other up.
    given_up: bool,
    /// The last pair, which has reached each other again, and how long the silence lasted.
    healed: Option<(Two, Duration)>,
    /// Nothing more is reported about these hosts before this time.
    quiet: Option<Duration>,
}

impl Between {
    /// Returns whether these hosts are still to be reported, now or later.
    fn waits(&self) -> bool {
        self.told == Told::Nothing && !self.pairs.is_empty()
    }

    fn is_quiet(&self, now: Duration) -> bool {
        self.quiet.is_some_and(|until| now < until)
    }
}

/// Pairs of tasks that cannot reach each other, by their hosts. Times are since the start of the job.
#[derive(Debug, Default)]
pub struct Reachability {
    /// Time after which tasks that cannot reach each other give up, or `None` if they wait without a limit.
    patience: Option<Duration>,
    hosts: BTreeMap<Two, Between>,
    /// The number of pairs of hosts that are not named, and the time at which that number is reported.
    counted: usize,
    count_due: Option<Duration>,
    /// Whether the daemon of the virtual machine, if there is one, has not been told the latest state.
    changed: bool,
}

impl Reachability {
    /// Returns the state without pairs. Tasks give each other up after `patience`, or never for `None`.
    pub fn new(patience: Option<Duration>) -> Self {
        Self {
            patience,
            ..Self::default()
        }
    }

    /// Handles a report of task `by`: `task`, which listens at `address`, has not answered for the time `silent`, or
    /// answers again if that is `None`.
    pub fn report(
        &mut self,
        now: Duration,
        registry: &Registry,
        (by, task): (u32, u32),
        address: Option<SocketAddr>,
        silent: Option<Duration>,
    ) {
        let (Some(one), Some(other)) = (registry.host_of(by), registry.host_of(task)) else {
            return;
        };
        let (hosts, tasks) = (two(one, other), two(by, task));
        let Some(silent) = silent else {
            return self.reached(now, by, hosts, tasks);
        };
        if by == task || !registry.is_alive(by) || !registry.is_alive(task) {
            return;
        }
        let between = self.hosts.entry(hosts).or_default();
        between.healed = None;
        let pair = between.pairs.entry(tasks).or_insert_with(|| Pair {
            reported: now,
            silent,
            by: BTreeSet::new(),
            first: by,
            address,
            renewed: true,
            given_up: false,
        });
        pair.by.insert(by);
        pair.renewed = true;
    }

    fn reached(&mut self, now: Duration, by: u32, hosts: Two, tasks: Two) {
        let Some(between) = self.hosts.get_mut(&hosts) else {
            return;
        };
        let Some(pair) = between.pairs.get_mut(&tasks) else {
            return;
        };
        pair.by.remove(&by);
        if !pair.by.is_empty() || pair.given_up {
            return;
        }
        let lasted = pair.lasted(now);
        between.pairs.remove(&tasks);
        if between.pairs.is_empty() {
            between.healed = Some((tasks, lasted));
        }
    }

    /// Drops the pairs of a task that has ended. This does not mean that its hosts reach each other again.
    pub fn task_ended(&mut self, now: Duration, task: u32) {
        for between in self.hosts.values_mut() {
            let before = between.pairs.len();
            between
                .pairs
                .retain(|pair, _| pair.0 != task && pair.1 != task);
            let emptied = between.pairs.is_empty() && before > 0;
            if emptied && std::mem::take(&mut between.told) != Told::Nothing {
                between.quiet = Some(now + REPEAT_INTERVAL);
                self.changed = true;
            }
        }
    }

    /// Reports new pairs and those that reach each other again, and gives up pairs whose time is over. `heard` returns
    /// whether something was received from a host during the given time up to now.
    pub fn look(
        &mut self,
        now: Duration,
        lifecycle: &Lifecycle,
        heard: impl Fn(u32, Duration) -> bool,
    ) -> Vec<ReachabilityEffect> {
        let mut effects = Vec::new();
        let (patience, mut named) = (self.patience, self.named());
        for (&hosts, between) in &mut self.hosts {
            let is_sure = |pair: &Pair| {
                let lasted = pair.lasted(now);
                heard(hosts.0, lasted) && heard(hosts.1, lasted)
            };
            let told = between.told;
            between.report_healed(now, lifecycle, &mut effects);
            if between.told != told {
                self.changed = true;
                named -= usize::from(told == Told::Named);
            }
            if between.waits() && !between.is_quiet(now) {
                let is_named = named < MAX_NAMED_PAIRS;
                if between.report_cut(now, (lifecycle, patience), is_named, is_sure, &mut effects) {
                    self.changed = true;
                    named += usize::from(is_named);
                    if !is_named {
                        self.counted += 1;
                        self.count_due.get_or_insert(now + COUNTING_TIME);
                    }
                }
            }
            if let Some(limit) = patience {
                self.changed |= between.give_up(now, (lifecycle, limit), is_sure, &mut effects);
            }
        }
        self.report_count(now, &mut effects);
        effects
    }

    fn named(&self) -> usize {
        let named = |between: &&Between| between.told == Told::Named;
        self.hosts.values().filter(named).count()
    }

    fn report_count(&mut self, now: Duration, effects: &mut Vec<ReachabilityEffect>) {
        if self.count_due.is_none_or(|due| now < due) {
            return;
        }
        self.count_due = None;
        let pairs = match std::mem::take(&mut self.counted) {
            1 => "1 more pair of hosts has".to_owned(),
            counted => format!("{counted} more pairs of hosts have"),
        };
        effects.push(ReachabilityEffect::Report(format!(
            "{pairs} tasks that cannot reach each other (--json names one pair of tasks for each)"
        )));
    }

    /// Returns the pairs for the daemon of the virtual machine if they have changed since the last call, one for each
    /// two hosts. Forgets hosts about which nothing is left to be reported.
    pub fn take_changed(&mut self, now: Duration) -> Option<Vec<UnreachablePair>> {
        let changed = std::mem::take(&mut self.changed).then(|| self.unreachable(now));
        self.hosts
            .retain(|_, between| !between.pairs.is_empty() || between.is_quiet(now));
        changed
    }

    fn unreachable(&self, now: Duration) -> Vec<UnreachablePair> {
        let told = self.hosts.values();
        let told = told.filter(|between| between.told != Told::Nothing);
        let first = |between: &Between| {
            let (&tasks, pair) = between.pairs.first_key_value()?;
            let (task, peer) = pair.ordered(tasks);
            Some(UnreachablePair {
                task,
                peer,
                lasted: pair.lasted(now),
                given_up: between.pairs.values().all(|pair| pair.given_up),
            })
        };
        told.filter_map(first).take(MAX_LISTED_PAIRS).collect()
    }

    /// Makes `take_changed` return all pairs again, because the daemon was not told or has ended.
    pub fn tell_again(&mut self) {
        self.changed = true;
    }

    /// Returns whether no pairs are known.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Returns when [`Reachability::look`] must be called next. Giving up needs no deadline: it happens at the next
    /// report of the pair.
    pub fn deadline(&self, now: Duration) -> Option<Duration> {
        let waiting = self.hosts.values().filter(|between| between.waits());
        let quiet = waiting.filter_map(|between| between.quiet.filter(|until| now < *until));
        quiet.chain(self.count_due).min()
    }
}

impl Between {
    fn report_healed(
        &mut self,
        now: Duration,
        lifecycle: &Lifecycle,
        effects: &mut Vec<ReachabilityEffect>,
    ) {
        let Some((tasks, lasted)) = self.healed.take() else {
            return;
        };
        let told = std::mem::take(&mut self.told);
        if told == Told::Nothing {
            return;
        }
        self.quiet = Some(now + REPEAT_INTERVAL);
        effects.push(event(ReachabilityEvent::Reachable, tasks, lasted));
        if told == Told::Named {
            let (one, other) = (named(tasks.0, lifecycle), named(tasks.1, lifecycle));
            let seconds = lasted.as_secs_f64();
            effects.push(ReachabilityEffect::Report(format!(
                "{one} and {other} reach each other again, after {seconds:.1} s"
            )));
        }
    }

    /// Reports the first pair for which `is_sure` is true, by name or as one to be counted. Returns false if there is
    /// none.
    fn report_cut(
        &mut self,
        now: Duration,
        (lifecycle, patience): (&Lifecycle, Option<Duration>),
        by_name: bool,
        is_sure: impl Fn(&Pair) -> bool,
        effects: &mut Vec<ReachabilityEffect>,
    ) -> bool {
        let Some((&tasks, pair)) = self.pairs.iter().find(|(_, pair)| is_sure(pair)) else {
            return false;
        };
        let lasted = pair.lasted(now);
        let ordered = pair.ordered(tasks);
        effects.push(event(ReachabilityEvent::Unreachable, ordered, lasted));
        self.told = match by_name {
            true => Told::Named,
            false => Told::Counted,
        };
        if by_name {
            let ((one, other), seconds) = (pair.named(tasks, lifecycle), lasted.as_secs_f64());
            effects.push(ReachabilityEffect::Report(match patience {
                None => format!(
                    "{one} cannot reach {other}: no answer for {seconds:.1} s; waiting (--unreachable=SECONDS gives up)"
                ),
                Some(limit) => format!(
                    "{one} cannot reach {other}: no answer for {seconds:.1} s; giving up after {} s (--unreachable)",
                    limit.as_secs_f64()
                ),
            }));
        }
        true
    }

    /// Gives up each pair whose time is over and whose silence was just reported again: tells both tasks that the other
    /// one is dead to them. Returns false if there is no such pair.
    fn give_up(
        &mut self,
        now: Duration,
        (lifecycle, limit): (&Lifecycle, Duration),
        is_sure: impl Fn(&Pair) -> bool,
        effects: &mut Vec<ReachabilityEffect>,
    ) -> bool {
        let mut over = Vec::new();
        for (&tasks, pair) in &mut self.pairs {
            let renewed = std::mem::take(&mut pair.renewed);
            let lasted = pair.lasted(now);
            if !pair.given_up && renewed && lasted >= limit && is_sure(pair) {
                pair.given_up = true;
                let ((one, other), seconds) = (pair.named(tasks, lifecycle), lasted.as_secs_f64());
                let sentence = format!(
                    "{one} cannot reach {other}: no answer for {seconds:.1} s (--unreachable)"
                );
                over.push((tasks, sentence));
            }
        }
        let Some((_, first)) = over.first() else {
            return false;
        };
        if !std::mem::replace(&mut self.given_up, true) {
            let more = match over.len() - 1 {
                0 => String::new(),
                1 => ", and 1 more pair of tasks on these hosts".to_owned(),
                more => format!(", and {more} more pairs of tasks on these hosts"),
            };
            effects.push(ReachabilityEffect::Report(format!(
                "{first}; both continue, and each treats the other as dead{more}"
            )));
        }
        for ((one, other), sentence) in over {
            effects.push(event(ReachabilityEvent::GivenUp, (one, other), limit));
            for (to, task) in [(one, other), (other, one)] {
                let sentence = sentence.clone();
                effects.push(ReachabilityEffect::GiveUp { to, task, sentence });
            }
        }
        true
    }
}

fn event(event: ReachabilityEvent, (by, peer): Two, lasted: Duration) -> ReachabilityEffect {
    ReachabilityEffect::Event {
        event,
        by,
        peer,
        lasted,
    }
}
