//! Resuming an interrupted race: the points that are open, and the merging of old and new results.
//!
//! A point is open if a row of any environment was not reached there, or has fewer launches than were planned. All
//! environments are raced again at an open point, since only values measured at the same time are compared.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use crate::collect::INTERRUPTED;
use crate::plan::{Group, Work};
use crate::race;
use crate::results::{Machine, Paired, Ratio, Results, Row};

/// Key of a point: suite, operation, tasks and size. Environments and metrics of a point share it.
type Key = (String, String, u32, u64);

/// The measured part of an interrupted race: for each point the smallest number of launches of an environment.
/// Environments whose launches have failed do not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress(BTreeMap<Key, u32>);

fn key(row: &Row) -> Key {
    (
        row.suite.clone(),
        row.operation.clone(),
        row.tasks,
        row.bytes,
    )
}

impl Progress {
    /// Returns the progress of an interrupted race, or `None` if the race was completed.
    pub fn of(results: &Results) -> Option<Progress> {
        let is_open = |row: &Row| row.flags.iter().any(|flag| flag == INTERRUPTED);
        let told = results.notes.iter().any(|note| note == race::INTERRUPTED);
        if !told && !results.rows.iter().any(is_open) {
            return None;
        }
        let mut launches = BTreeMap::new();
        for row in &results.rows {
            let done = match (is_open(row), row.flags.is_empty() || row.measured()) {
                (true, _) => 0,
                // A failure, or an operation that the environment cannot run: more launches would not help.
                (false, false) => u32::MAX,
                (false, true) => row.launches,
            };
            let least = launches.entry(key(row)).or_insert(u32::MAX);
            *least = done.min(*least);
        }
        Some(Progress(launches))
    }

    /// Returns the open points of a plan.
    pub fn narrow(&self, groups: Vec<Group>) -> Vec<Group> {
        let narrowed = groups.into_iter().filter_map(|mut group| {
            let (suite, tasks, planned) = (group.suite, group.tasks, group.launches);
            let launches = |operation: &str, size: u64| {
                let point = (suite.to_owned(), operation.to_owned(), tasks, size);
                self.0.get(&point).copied().unwrap_or(0)
            };
            let is_open = match &mut group.work {
                // Rows of points count heats, or launches on a steady machine. Such a point is open only if it has
                // none.
                Work::Points(points) => {
                    for (operation, sizes) in points.iter_mut() {
                        sizes.retain(|size| launches(operation, *size) == 0);
                    }
                    points.retain(|(_, sizes)| !sizes.is_empty());
                    !points.is_empty()
                }
                Work::Own(_) => launches(group.work.operation(), 0) < planned,
                Work::Application(operation, size) | Work::Counted(operation, size) => {
                    launches(operation.name, *size) < planned
                }
            };
            is_open.then_some(group)
        });
        narrowed.collect()
    }
}

/// Fails if the machines differ, since their figures cannot be compared.
pub fn check_machine(then: &Machine, now: &Machine) -> Result<()> {
    let of = |one: &Machine| {
        let (cores, cpu, kernel) = (one.cores, &one.cpu, &one.kernel);
        format!("{cores} x {cpu}, kernel {kernel}")
    };
    if of(then) != of(now) {
        bail!(
            "the race was run on another machine ({}) than this one ({}), so its figures cannot be combined with new ones: run it again",
            of(then),
            of(now)
        );
    }
    Ok(())
}

/// Replaces the ratios of two points of one environment that are in the new results.
fn merge_paired(old: &mut Vec<Paired>, new: Vec<Paired>) {
    let points = |one: &Paired| {
        let sides = (
            one.operation.clone(),
            one.bytes,
            one.by.clone(),
            one.by_bytes,
        );
        (one.environment.clone(), one.tasks, sides)
    };
    let fresh: Vec<_> = new.iter().map(points).collect();
    old.retain(|one| !fresh.contains(&points(one)));
    old.extend(new);
}

/// Replaces points of the old results by the new ones. A row that was measured before is kept if the new race did not
/// measure it.
pub fn merge(old: Results, new: Results) -> Results {
    let mut merged = old;
    for row in new.rows {
        let same =
            |kept: &&mut Row| kept.point() == row.point() && kept.environment == row.environment;
        match merged.rows.iter_mut().find(same) {
            Some(kept) if row.measured() || !kept.measured() => *kept = row,
            Some(_) => {}
            None => merged.rows.push(row),
        }
    }
    let pair = |one: &Ratio| {
        let environments = (one.environment.clone(), one.against.clone());
        let point = (
            one.suite.clone(),
            one.operation.clone(),
            one.tasks,
            one.bytes,
        );
        (environments, point)
    };
    let fresh: Vec<_> = new.ratios.iter().map(pair).collect();
    merged.ratios.retain(|ratio| !fresh.contains(&pair(ratio)));
    merged.ratios.extend(new.ratios);
    merge_paired(&mut merged.paired, new.paired);
    merged.machine.seconds += new.machine.seconds;
    merged.notes.retain(|note| note != race::INTERRUPTED);
    for note in new.notes {
        if !merged.notes.contains(&note) {
            merged.notes.push(note);
        }
    }
    for environment in new.environments {
        let mut known = merged.environments.iter_mut();
        let Some(one) = known.find(|one| one.name == environment.name) else {
            merged.environments.push(environment);
            continue;
        };
        if one.version.starts_with("unknown") {
            *one = environment;
        } else if one.version != environment.version && !environment.version.starts_with("unknown")
        {
            let (name, before, now) = (&one.name, &one.version, &environment.version);
            let note =
                format!("{name} was {before} when the race started, and {now} when it was resumed");
            merged.notes.push(note);
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::Kind;
    use crate::settings::Resolved;
    use crate::stats::Verdict;
    use crate::table::tests::{results, row};

    fn interrupted() -> Results {
        let mut open = row("one-to-one", "regatta", 2, 64, 0.0);
        open.launches = 0;
        open.flags = vec![INTERRUPTED.to_owned()];
        results(vec![
            row("one-to-one", "regatta", 2, 8, 1.0),
            open,
            row("one-to-one", "openmpi", 2, 64, 2.0),
        ])
    }

    fn group(work: Work, launches: u32) -> Group {
        Group {
            competitor: 0,
            suite: "primitives",
            tasks: 2,
            work,
            settings: Resolved::default(),
            launches,
        }
    }

    #[test]
    fn only_what_was_not_reached_is_planned() {
        let progress = Progress::of(&interrupted()).expect("a point is open");
        let points = Work::Points(vec![("one-to-one".to_owned(), vec![8, 64])]);
        let left = progress.narrow(vec![group(points, 1)]);
        assert_eq!(left.len(), 1);
        let open = Work::Points(vec![("one-to-one".to_owned(), vec![64])]);
        assert_eq!(left[0].work, open);
        let whole = results(vec![row("ring", "limit", 2, 8, 1.0)]);
        assert_eq!(Progress::of(&whole), None);
    }

    #[test]
    fn a_point_with_fewer_launches_than_planned_is_open() {
        let mut cut_short = results(vec![
            Row {
                launches: 1,
                ..row("join-leave", "regatta", 2, 0, 1.0)
            },
            Row {
                launches: 9,
                ..row("join-leave", "openmpi", 2, 0, 1.0)
            },
        ]);
        cut_short.notes.push(race::INTERRUPTED.to_owned());
        let progress = Progress::of(&cut_short).expect("it was interrupted");
        let plan = |launches| vec![group(Work::Own(Kind::JoinLeave), launches)];
        assert_eq!(progress.narrow(plan(9)).len(), 1);
        assert!(progress.narrow(plan(1)).is_empty());
    }

    #[test]
    fn what_has_failed_is_not_tried_again() {
        let mut failed = row("join-leave", "pvm", 2, 0, 0.0);
        failed.launches = 0;
        failed.flags = vec!["2 of 2 launches: failed: no".to_owned()];
        let mut race = results(vec![failed]);
        race.notes.push(race::INTERRUPTED.to_owned());
        let progress = Progress::of(&race).expect("it was interrupted");
        let plan = vec![group(Work::Own(Kind::JoinLeave), 9)];
        assert!(progress.narrow(plan).is_empty());
    }

    fn ratio(environment: &str, against: &str) -> Ratio {
        Ratio {
            suite: "primitives".to_owned(),
            operation: "one-to-one".to_owned(),
            network: "local".to_owned(),
            tasks: 2,
            bytes: 64,
            environment: environment.to_owned(),
            against: against.to_owned(),
            median: 0.5,
            ci95: [0.4, 0.6],
            rounds: 9,
            launches: 3,
            verdict: Verdict::Ahead,
            more_seconds: 0.0,
        }
    }

    #[test]
    fn new_rows_take_the_place_of_open_ones_and_what_is_not_measured_now_stays() {
        let mut old = interrupted();
        old.notes.push(race::INTERRUPTED.to_owned());
        old.ratios = vec![ratio("regatta", "openmpi"), ratio("regatta", "gone")];
        let mut new = results(vec![
            row("one-to-one", "regatta", 2, 64, 1.5),
            row("one-to-one", "openmpi", 2, 64, 2.5),
        ]);
        new.ratios = vec![Ratio {
            median: 0.7,
            ..ratio("regatta", "openmpi")
        }];
        new.environments[0].version = "2".to_owned();
        let merged = merge(old, new);
        let medians: Vec<f64> = merged.rows.iter().map(|row| row.median).collect();
        assert_eq!(medians, [1.0, 1.5, 2.5]);
        let ratios: Vec<(&str, f64)> = merged
            .ratios
            .iter()
            .map(|one| (one.against.as_str(), one.median))
            .collect();
        assert_eq!(ratios, [("gone", 0.5), ("openmpi", 0.7)]);
        assert_eq!(Progress::of(&merged), None, "{:?}", merged.notes);
        assert_eq!(merged.notes.len(), 1);
        assert!(
            merged.notes[0].contains("was 1 when the race started, and 2"),
            "{:?}",
            merged.notes
        );
    }

    #[test]
    fn a_pair_that_was_raced_again_takes_the_place_of_the_old_one() {
        let pair = |by: &str, median| Paired {
            environment: "mpich".to_owned(),
            tasks: 2,
            operation: "broadcast".to_owned(),
            bytes: 8,
            by: by.to_owned(),
            by_bytes: 8,
            median,
            ci95: [0.9, 2.1],
            rounds: 9,
            launches: 3,
        };
        let mut all = vec![
            pair("broadcast-started", 1.0),
            pair("broadcast-by-scatter", 1.0),
        ];
        merge_paired(&mut all, vec![pair("broadcast-started", 2.0)]);
        let left: Vec<(&str, f64)> = all
            .iter()
            .map(|one| (one.by.as_str(), one.median))
            .collect();
        assert_eq!(
            left,
            [("broadcast-by-scatter", 1.0), ("broadcast-started", 2.0)]
        );
    }

    #[test]
    fn another_machine_is_refused() {
        let here = Machine {
            cpu: "one".to_owned(),
            ..Machine::default()
        };
        let there = Machine {
            kernel: "2".to_owned(),
            ..here.clone()
        };
        assert!(check_machine(&here, &here).is_ok());
        let error = check_machine(&here, &there).unwrap_err().to_string();
        assert!(error.contains("another machine"), "{error}");
    }
}
