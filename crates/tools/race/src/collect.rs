//! Computes rows from launches.
//!
//! Every launch gives one median per point; a row is the median of those. Launches during which the machine was faster
//! or slower than in the rest of the race are left out if enough other launches remain. That choice depends only on the
//! driver's own measurement of the machine, never on results.

use std::collections::BTreeMap;

use crate::discover::Competitor;
use crate::network::Network;
use crate::operations::{self, Kind};
use crate::plan::{Group, Work};
use crate::results::{Metric, Row};
use crate::run::{Measured, Outcome};
use crate::stats;
use crate::suites::PRIMITIVES;

/// Largest relative deviation from the race's median speed at which the machine counts as unchanged.
pub const UNSTEADY: f64 = 0.25;
/// Minimum number of launches of a point that must remain when unsteady ones are left out.
pub const MIN_STEADY_LAUNCHES: usize = 3;

/// Key of a point: index of the group (environment, suite, tasks), operation, bytes, metric.
type Key = (usize, String, u64, Metric);

/// The contribution of one launch to a point.
struct Share {
    steady: bool,
    samples: Vec<f64>,
}

/// Returns the median of the machine's speed over all launches in ns, or 0 where it cannot be measured.
pub fn usual_line_ns(outcomes: &[Outcome]) -> f64 {
    usual(outcomes.iter().map(|outcome| outcome.line_ns))
}

/// Returns the median of measurements of the machine's speed, or 0 if there are none.
pub fn usual(line_ns: impl Iterator<Item = [f64; 2]>) -> f64 {
    let all: Vec<f64> = line_ns.flatten().filter(|ns| *ns > 0.0).collect();
    match all.is_empty() {
        true => 0.0,
        false => stats::median(&all),
    }
}

/// Returns whether the machine's speed before and after the launch was that of the whole race.
pub fn steady(outcome: &Outcome, usual: f64) -> bool {
    is_usual(outcome.line_ns, usual)
}

/// Returns whether these two measurements of the machine's speed are near the usual one.
pub fn is_usual(line_ns: [f64; 2], usual: f64) -> bool {
    let near = |ns: &f64| (ns / usual - 1.0).abs() <= UNSTEADY;
    usual == 0.0 || line_ns.iter().all(near)
}

/// Returns all rows of a race, in the order of groups and operations.
pub fn rows(
    groups: &[Group],
    competitors: &[Competitor],
    outcomes: &[Outcome],
    network: Network,
) -> Vec<Row> {
    let usual = usual_line_ns(outcomes);
    let mut shares: BTreeMap<Key, Vec<Share>> = BTreeMap::new();
    for outcome in outcomes {
        let group = outcome.launch.group;
        for (operation, bytes, metric, samples) in samples(&groups[group].work, outcome) {
            let share = Share {
                // Memory and start-up do not depend on the distance of two cores.
                steady: steady(outcome, usual) || !matches!(groups[group].work, Work::Points(_)),
                samples,
            };
            shares
                .entry((group, operation, bytes, metric))
                .or_default()
                .push(share);
        }
    }
    let mut rows = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let context = Context {
            group,
            competitors,
            network,
            outcomes: of_group(outcomes, index),
        };
        for (operation, bytes, metric) in points(&group.work) {
            let key = (index, operation, bytes, metric);
            let shares = shares.remove(&key).unwrap_or_default();
            rows.push(context.row(&key, &shares));
        }
    }
    rows
}

/// Beginning of the flag of a point that its environment cannot run. The reason follows.
pub const CANNOT: &str = "cannot run: ";

/// Flags of planned points without a figure or a known reason.
const NO_FIGURE: &str = "no figure: its program ended without printing one";
const NOT_LAUNCHED: &str = "not launched before time ran out";

/// Flag of a point that was not yet measured when the race was interrupted.
pub const INTERRUPTED: &str = "interrupted";

/// Flags the points of an interrupted race that were not reached. They do not count as failed.
pub fn flag_interrupted(rows: &mut [Row]) {
    let failed = |row: &Row| {
        let is_failure = |flag: &String| flag.contains("launches:") || flag.starts_with(CANNOT);
        row.flags.iter().any(is_failure)
    };
    for row in rows {
        if !row.measured() && !failed(row) {
            row.flags = vec![INTERRUPTED.to_owned()];
        }
    }
}

fn of_group(outcomes: &[Outcome], group: usize) -> Vec<&Outcome> {
    outcomes
        .iter()
        .filter(|o| o.launch.group == group)
        .collect()
}

/// Returns the points that a group is planned to measure.
fn points(work: &Work) -> Vec<(String, u64, Metric)> {
    let name = work.operation().to_owned();
    match work {
        Work::Points(points) => {
            let each = |(operation, sizes): &(String, Vec<u64>)| {
                let metric = operations::metric(operation);
                sizes
                    .iter()
                    .map(|bytes| (operation.clone(), *bytes, metric))
                    .collect::<Vec<_>>()
            };
            points.iter().flat_map(each).collect()
        }
        Work::Own(Kind::IdleMemory) => vec![
            (name.clone(), 0, Metric::Resident),
            (name, 0, Metric::Share),
        ],
        Work::Own(_) => {
            let metric = operations::metric(&name);
            vec![(name, 0, metric)]
        }
        Work::Application(_, size) => vec![
            (name.clone(), *size, Metric::Time),
            (name, *size, Metric::Communication),
        ],
        Work::Counted(_, size) => vec![
            (name.clone(), *size, Metric::Volume),
            (name.clone(), *size, Metric::Messages),
            (name, *size, Metric::Waiting),
        ],
    }
}

/// Returns the samples of each point.
fn of_points(points: &[crate::output::Point]) -> Vec<(String, u64, Metric, Vec<f64>)> {
    let each = |point: &crate::output::Point| {
        let metric = operations::metric(&point.operation);
        let convert = |us: f64| match metric {
            Metric::Rate => 1e6 / us,
            _ => us,
        };
        let positive = point.us.iter().copied().filter(|us| *us > 0.0);
        let values: Vec<f64> = positive.map(convert).collect();
        (point.operation.clone(), point.bytes, metric, values)
    };
    let all = points.iter().map(each);
    all.filter(|point| !point.3.is_empty()).collect()
}

/// Returns the values of an application's launch.
fn of_application(work: &Work, measured: &Measured) -> Vec<(Metric, f64)> {
    let output = &measured.output;
    match work {
        Work::Counted(..) => output.counts.map_or(vec![], |counts| {
            vec![
                (Metric::Volume, counts.volume),
                (Metric::Messages, counts.messages),
                (Metric::Waiting, counts.waiting * 1e6),
            ]
        }),
        _ => output.answer.map_or(vec![], |answer| {
            let share = answer.communicating.filter(|seconds| *seconds > 0.0);
            let share = share.map(|seconds| (Metric::Communication, seconds * 1e6));
            let time = (Metric::Time, answer.seconds * 1e6);
            std::iter::once(time).chain(share).collect()
        }),
    }
}

/// Returns the samples of one launch for each point, in the metric's unit.
pub(crate) fn samples(work: &Work, outcome: &Outcome) -> Vec<(String, u64, Metric, Vec<f64>)> {
    let name = work.operation().to_owned();
    let measured = &outcome.measured;
    match work {
        Work::Points(_)
        | Work::Own(Kind::Points | Kind::Spawn | Kind::Notify | Kind::Application) => {
            of_points(&measured.output.points)
        }
        // The time of a failed job is meaningless.
        Work::Own(Kind::JoinLeave) if outcome.failure.is_some() => vec![],
        Work::Own(Kind::JoinLeave) => measured
            .job
            .map(|s| (name, 0, Metric::Time, vec![s * 1e6]))
            .into_iter()
            .collect(),
        Work::Own(Kind::IdleMemory) => match measured.memory {
            Some((resident, share)) => {
                vec![
                    (name.clone(), 0, Metric::Resident, vec![resident]),
                    (name, 0, Metric::Share, vec![share]),
                ]
            }
            None => vec![],
        },
        // The time of a wrong answer is meaningless too.
        Work::Application(..) | Work::Counted(..) if outcome.failure.is_some() => vec![],
        Work::Application(_, size) | Work::Counted(_, size) => of_application(work, measured)
            .into_iter()
            .map(|(metric, value)| (name.clone(), *size, metric, vec![value]))
            .collect(),
        Work::Own(Kind::IdleProcessor) => measured
            .processor
            .map(|p| (name, 0, Metric::Cpu, vec![p]))
            .into_iter()
            .collect(),
    }
}

/// The fields that all rows of a group have in common.
struct Context<'a> {
    group: &'a Group,
    competitors: &'a [Competitor],
    network: Network,
    outcomes: Vec<&'a Outcome>,
}

impl Context<'_> {
    fn row(&self, (_, operation, bytes, metric): &Key, shares: &[Share]) -> Row {
        let calm: Vec<&Share> = shares.iter().filter(|share| share.steady).collect();
        let used: Vec<&Share> = if calm.len() >= MIN_STEADY_LAUNCHES {
            calm
        } else {
            shares.iter().collect()
        };
        let medians: Vec<f64> = used
            .iter()
            .map(|share| stats::median(&share.samples))
            .collect();
        let all: Vec<f64> = used
            .iter()
            .flat_map(|share| share.samples.iter().copied())
            .collect();
        let bad_end = if metric.smaller_is_better() {
            0.99
        } else {
            0.01
        };
        let measured = !medians.is_empty();
        Row {
            suite: self.group.suite.to_owned(),
            operation: operation.clone(),
            environment: self.competitors[self.group.competitor].name.clone(),
            network: self.network.name().to_owned(),
            tasks: self.group.tasks,
            bytes: *bytes,
            metric: *metric,
            unit: metric.unit().to_owned(),
            median: if measured {
                stats::median(&medians)
            } else {
                0.0
            },
            ci95: if measured {
                stats::interval(&medians)
            } else {
                [0.0; 2]
            },
            p99: if measured {
                stats::quantile(&all, bad_end)
            } else {
                0.0
            },
            minimum: all.iter().copied().reduce(f64::min).unwrap_or(0.0),
            samples: all.len() as u64,
            launches: used.len() as u32,
            path: self.path(),
            flags: self.flags((operation, *metric), &used, shares.len() - used.len()),
        }
    }

    fn path(&self) -> String {
        let told = self
            .outcomes
            .iter()
            .map(|o| o.measured.output.path.as_str())
            .find(|path| !path.is_empty());
        let peer = self.competitors[self.group.competitor].peer;
        let known = || peer.path(self.network, &self.group.settings);
        told.unwrap_or_else(known).to_owned()
    }

    fn flags(
        &self,
        (operation, metric): (&str, Metric),
        used: &[&Share],
        left_out: usize,
    ) -> Vec<String> {
        let mut flags = Vec::new();
        let refusals = self.outcomes.iter().flat_map(|o| &o.measured.output.cannot);
        if let Some((_, why)) = refusals.rev().find(|(name, _)| name == operation) {
            flags.push(format!("{CANNOT}{why}"));
        }
        let failures: Vec<&str> = self
            .outcomes
            .iter()
            .filter_map(|o| o.failure.as_deref())
            .collect();
        let silent = used.is_empty() && failures.is_empty() && !self.outcomes.is_empty();
        if metric == Metric::Communication && silent {
            flags.push(format!("{CANNOT}it spends no time in communications"));
        }
        if let Some(last) = failures.last() {
            flags.push(format!(
                "{} of {} launches: {last}",
                failures.len(),
                self.outcomes.len()
            ));
        }
        if used.is_empty() && flags.is_empty() {
            let why = match self.outcomes.is_empty() {
                true => NOT_LAUNCHED,
                false => NO_FIGURE,
            };
            flags.push(why.to_owned());
        }
        if used.len() < stats::MIN_LAUNCHES_FOR_RANKS {
            flags.push("few-launches".to_owned());
        }
        if used.iter().any(|share| !share.steady) {
            flags.push("unsteady-machine".to_owned());
        }
        if left_out > 0 {
            flags.push(format!("unsteady-launches-left-out: {left_out}"));
        }
        if self.group.suite == PRIMITIVES.name && self.outcomes.iter().any(|o| not_pinned(o)) {
            flags.push("not-pinned".to_owned());
        }
        flags
    }
}

fn not_pinned(outcome: &Outcome) -> bool {
    let output = &outcome.measured.output;
    !output.processors.is_empty() && !output.pinned_apart()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Output, Point};
    use crate::plan::Launch;
    use crate::settings::Resolved;

    fn group(operation: &str) -> Group {
        Group {
            competitor: 0,
            suite: "primitives",
            tasks: 2,
            work: Work::Points(vec![(operation.to_owned(), vec![8])]),
            settings: Resolved::default(),
            launches: 5,
        }
    }

    fn outcome(round: u32, operation: &str, us: &[f64], line_ns: f64) -> Outcome {
        let point = Point {
            operation: operation.to_owned(),
            bytes: 8,
            batch: 1,
            us: us.to_vec(),
        };
        let output = Output {
            points: vec![point],
            done: true,
            ..Output::default()
        };
        Outcome {
            launch: Launch {
                group: 0,
                round,
                seed: 0,
            },
            line_ns: [line_ns; 2],
            measured: Measured {
                output,
                ..Measured::default()
            },
            failure: None,
            seconds: 1.0,
        }
    }

    fn limit() -> Vec<Competitor> {
        crate::discover::discover(std::path::Path::new("/nonexistent")).competitors
    }

    #[test]
    fn a_row_is_the_median_of_the_launches_medians() {
        let outcomes: Vec<_> = (1..6)
            .map(|i| outcome(i, "ring", &[f64::from(i), f64::from(i) + 0.1, 100.0], 50.0))
            .collect();
        let rows = rows(&[group("ring")], &limit(), &outcomes, Network::Local);
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (rows[0].median, rows[0].launches, rows[0].samples),
            (3.1, 5, 15)
        );
        assert!(rows[0].flags.is_empty(), "{:?}", rows[0].flags);
    }

    #[test]
    fn launches_on_a_changed_machine_are_left_out() {
        let mut outcomes: Vec<_> = (0..5).map(|i| outcome(i, "ring", &[1.0], 50.0)).collect();
        outcomes.push(outcome(5, "ring", &[4.0], 200.0));
        let rows = rows(&[group("ring")], &limit(), &outcomes, Network::Local);
        assert_eq!((rows[0].launches, rows[0].p99), (5, 1.0));
        assert_eq!(rows[0].flags, ["unsteady-launches-left-out: 1"]);
    }

    #[test]
    fn rates_are_per_second_and_their_bad_end_is_low() {
        let outcomes: Vec<_> = (0..5)
            .map(|i| outcome(i, "message-rate", &[0.1, 0.2], 50.0))
            .collect();
        let row = rows(
            &[group("message-rate")],
            &limit(),
            &outcomes,
            Network::Local,
        )
        .remove(0);
        assert_eq!((row.metric, row.unit.as_str()), (Metric::Rate, "1/s"));
        assert!(row.p99 < row.median && row.minimum == 5e6, "{row:?}");
    }

    #[test]
    fn a_point_that_an_interrupted_race_did_not_reach_has_not_failed() {
        let mut failed = outcome(0, "ring", &[1.0], 50.0);
        failed.measured.output.points.clear();
        failed.failure = Some("time-out after 60 s".to_owned());
        let groups = [group("ring"), group("barrier")];
        let mut rows = rows(&groups, &limit(), &[failed], Network::Local);
        flag_interrupted(&mut rows);
        assert!(rows[0].flags[0].contains("time-out"), "{rows:?}");
        assert_eq!(rows[1].flags, [INTERRUPTED]);
    }

    #[test]
    fn a_point_that_an_environment_cannot_run_is_a_row_with_the_reason_and_the_others_have_theirs()
    {
        let mut outcomes: Vec<_> = (0..5).map(|i| outcome(i, "ring", &[1.0], 50.0)).collect();
        for one in &mut outcomes {
            let refusal = ("barrier".to_owned(), "it has none".to_owned());
            one.measured.output.cannot.push(refusal);
        }
        let mut both = group("ring");
        both.work = Work::Points(vec![
            ("ring".to_owned(), vec![8]),
            ("barrier".to_owned(), vec![0]),
        ]);
        let mut rows = rows(&[both], &limit(), &outcomes, Network::Local);
        flag_interrupted(&mut rows);
        assert!(rows[0].measured() && rows[0].flags.is_empty(), "{rows:?}");
        assert!(!rows[1].measured());
        assert_eq!(rows[1].flags[0], "cannot run: it has none");
    }

    #[test]
    fn a_point_that_was_planned_is_a_row_with_a_figure_or_a_reason() {
        let mut three = group("ring");
        three.work = Work::Points(vec![
            ("ring".to_owned(), vec![8, 64]),
            ("barrier".to_owned(), vec![0]),
        ]);
        let other = group("exchange");
        let outcomes = [outcome(0, "ring", &[1.0], 50.0)];
        let rows = rows(&[three, other], &limit(), &outcomes, Network::Local);
        let told: Vec<(&str, u64, bool)> = rows
            .iter()
            .map(|row| (row.operation.as_str(), row.bytes, row.measured()))
            .collect();
        let expected = [
            ("ring", 8, true),
            ("ring", 64, false),
            ("barrier", 0, false),
            ("exchange", 8, false),
        ];
        assert_eq!(told, expected);
        assert_eq!([&rows[1].flags[0], &rows[2].flags[0]], [NO_FIGURE; 2]);
        assert_eq!(rows[3].flags[0], NOT_LAUNCHED);
    }

    #[test]
    fn a_point_that_never_came_is_a_row_that_says_why() {
        let mut failed = outcome(0, "ring", &[1.0], 50.0);
        failed.measured.output.points.clear();
        failed.failure = Some("time-out after 60 s".to_owned());
        let row = rows(&[group("ring")], &limit(), &[failed], Network::Local).remove(0);
        assert!(!row.measured());
        assert!(row.flags[0].contains("time-out"), "{:?}", row.flags);
    }
}
