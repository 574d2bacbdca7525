//! A heat: the groups whose jobs run at the same time, and the stage on which they take turns.

use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;

use anyhow::{Context, Result};

use super::HeatPoint;
use super::player::{Player, Point};
use crate::operations;
use crate::output;
use crate::plan::{Group, Launch, Work};
use crate::process::Finished;
use crate::run::{Measured, Outcome, Runner, failure_of};
use crate::stop::Stop;
use crate::suites;

/// Groups with common points, one group of each environment.
pub(super) struct Heat {
    number: usize,
    suite: &'static str,
    tasks: u32,
    members: Vec<usize>,
    points: Vec<Point>,
}

impl Heat {
    /// Returns all heats of these groups. Operations that the same groups have share a heat.
    pub(super) fn all(groups: &[Group], playing: &[usize]) -> Vec<Heat> {
        let mut owners: BTreeMap<(u32, &str, &str), Vec<usize>> = BTreeMap::new();
        let mut sizes: Vec<(u32, &'static str, &str, &[u64])> = Vec::new();
        for &index in playing {
            let group = &groups[index];
            let Work::Points(points) = &group.work else {
                continue;
            };
            for (operation, bytes) in points {
                let known = owners
                    .entry((group.tasks, group.suite, operation))
                    .or_default();
                if known.is_empty() {
                    sizes.push((group.tasks, group.suite, operation, bytes));
                }
                known.push(index);
            }
        }
        let mut heats: Vec<Heat> = Vec::new();
        for (tasks, suite, operation, bytes) in sizes {
            let members = &owners[&(tasks, suite, operation)];
            let points = bytes.iter().map(|&bytes| Point {
                operation: operation.to_owned(),
                bytes,
            });
            let alike = |heat: &&mut Heat| heat.members == *members;
            match heats.iter_mut().find(alike) {
                Some(heat) => heat.points.extend(points),
                None => heats.push(Heat {
                    number: heats.len(),
                    suite,
                    tasks,
                    members: members.clone(),
                    points: points.collect(),
                }),
            }
        }
        together(heats)
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn members(&self) -> &[usize] {
        &self.members
    }

    pub(super) fn points(&self) -> &[Point] {
        &self.points
    }

    pub(super) fn place(&self, point: &Point) -> HeatPoint {
        HeatPoint {
            suite: self.suite,
            tasks: self.tasks,
            point: point.clone(),
        }
    }

    /// Returns the points of the heat, each with its suite and number of tasks.
    pub(super) fn places(&self) -> impl Iterator<Item = HeatPoint> {
        self.points.iter().map(|point| self.place(point))
    }

    /// Returns a name for progress output.
    pub(super) fn name(&self) -> String {
        let operations = self.points.iter().map(|point| point.operation.as_str());
        let operations = operations::distinct(operations);
        format!("in turns, {} tasks, {}", self.tasks, operations.join(" "))
    }
}

/// Merges the heats of a suite whose environments run one job each (`one_setting`) into one heat for each number of
/// tasks, with points in the order of their sizes. An environment has no turn at a point that its program cannot run.
fn together(heats: Vec<Heat>) -> Vec<Heat> {
    let shares = |heat: &Heat| suites::find(heat.suite).is_some_and(|suite| suite.one_setting);
    let mut all: Vec<Heat> = Vec::new();
    for heat in heats {
        let same = |other: &&mut Heat| (other.suite, other.tasks) == (heat.suite, heat.tasks);
        match all.iter_mut().find(same).filter(|_| shares(&heat)) {
            Some(one) => {
                let fresh = heat
                    .members
                    .iter()
                    .filter(|member| !one.members.contains(member));
                let fresh: Vec<usize> = fresh.copied().collect();
                one.members.extend(fresh);
                one.points.extend(heat.points);
            }
            None => all.push(Heat {
                number: all.len(),
                ..heat
            }),
        }
    }
    for heat in all.iter_mut().filter(|heat| shares(heat)) {
        heat.points.sort_by_key(|point| point.bytes);
    }
    all
}

/// An environment whose job takes part in a heat.
struct Part {
    group: usize,
    competitor: usize,
    /// The job, or `None` if it has failed (see `failure`).
    player: Option<Player>,
    failure: Option<String>,
    /// Number of operations in a slice of the current point, or 0 if the program cannot run that point.
    length: u64,
    points: Vec<output::Point>,
}

/// The environments of a heat, whose jobs all run.
pub(super) struct Stage<'a> {
    runner: &'a Runner,
    parts: Vec<Part>,
    line_ns: f64,
    began: std::time::Instant,
}

impl<'a> Stage<'a> {
    /// Starts the jobs one after the other, until the race is to stop. A job that cannot be started takes no turns.
    pub(super) fn start(
        runner: &'a Runner,
        groups: &[Group],
        members: &[usize],
        points: &[Point],
        seed: u64,
    ) -> Stage<'a> {
        let line_ns = runner.line_ns();
        let began = std::time::Instant::now();
        let mut parts = Vec::new();
        for &index in members {
            if runner.stop().is_asked() {
                break;
            }
            let group = Group {
                work: Work::Points(by_operation(points)),
                ..groups[index].clone()
            };
            let (player, failure) = match enter(runner, &group, index, seed) {
                Ok(player) => (Some(player), None),
                // The job may have failed only because of the request to stop.
                Err(_) if runner.stop().is_asked() => (None, None),
                Err(error) => (None, Some(format!("failed: {error:#}"))),
            };
            parts.push(Part {
                group: index,
                competitor: group.competitor,
                player,
                failure,
                length: 0,
                points: Vec::new(),
            });
        }
        Stage {
            runner,
            parts,
            line_ns,
            began,
        }
    }

    /// Prepares a point in all environments. `known` gets an environment and the number of operations that its program
    /// found for a slice (0 if none was searched for), and returns the number to use.
    pub(super) fn prepare(
        &mut self,
        point: &Point,
        seconds: f64,
        mut known: impl FnMut(usize, u64) -> u64,
        first: bool,
    ) {
        for part in &mut self.parts {
            let Some(player) = &mut part.player else {
                continue;
            };
            let known_length = known(part.competitor, 0);
            let seconds = if first || known_length == 0 {
                seconds
            } else {
                0.0
            };
            match player.prepare(point, seconds) {
                Ok(Some(length)) => part.length = known(part.competitor, length).max(1),
                Ok(None) => part.length = 0,
                Err(_) if self.runner.stop().is_asked() => return,
                Err(error) => part.fail(&error),
            }
        }
    }

    /// Runs a turn of each environment in a newly drawn order. Returns the microseconds of an operation, by
    /// environment. If the race is to stop, the result has only the turns that were completed.
    pub(super) fn round(
        &mut self,
        point: &Point,
        random: &mut fastrand::Rng,
    ) -> BTreeMap<usize, f64> {
        let mut order: Vec<usize> = (0..self.parts.len()).collect();
        random.shuffle(&mut order);
        let mut times = BTreeMap::new();
        for index in order {
            let part = &mut self.parts[index];
            let Some(player) = part.player.as_mut().filter(|_| part.length > 0) else {
                continue;
            };
            match player.slice(point, part.length) {
                Ok(us) => {
                    part.keep(point, us);
                    times.insert(part.competitor, us);
                }
                Err(_) if self.runner.stop().is_asked() => break,
                Err(error) => part.fail(&error),
            }
        }
        times
    }

    /// Ends all jobs, and returns a launch of each. If the race is to stop, all jobs are asked to end at once and get
    /// little time.
    pub(super) fn finish(self, round: u32) -> Vec<Outcome> {
        let (before, began) = (self.line_ns, self.began);
        let stop = self.runner.stop();
        let mut outcomes = Vec::new();
        let mut hasty = Vec::new();
        for mut part in self.parts {
            match part.player.take() {
                Some(player) if stop.is_asked() => hasty.push((part, player)),
                player => {
                    let finished = player.map(Player::finish);
                    outcomes.push(part.outcome(finished, stop, round, before));
                }
            }
        }
        let (parts, players): (Vec<Part>, Vec<Player>) = hasty.into_iter().unzip();
        let all = parts.into_iter().zip(Player::leave_together(players));
        for (part, finished) in all {
            outcomes.push(part.outcome(Some(Ok(finished)), stop, round, before));
        }
        let after = match stop.is_asked() {
            true => before,
            false => self.runner.line_ns(),
        };
        for outcome in &mut outcomes {
            outcome.line_ns[1] = after;
            outcome.seconds = began.elapsed().as_secs_f64();
        }
        // Drops launches that the end of the race cut short before they gave any figure.
        outcomes.retain(|outcome| !(stop.is_asked() && outcome.is_empty()));
        outcomes
    }
}

impl Part {
    fn fail(&mut self, error: &anyhow::Error) {
        self.failure = Some(format!("failed: {error:#}"));
        // Dropping the player ends the job with all its processes.
        self.player = None;
    }

    fn keep(&mut self, point: &Point, us: f64) {
        let same = |kept: &&mut output::Point| {
            kept.operation == point.operation && kept.bytes == point.bytes
        };
        match self.points.iter_mut().find(same) {
            Some(kept) => kept.us.push(us),
            None => self.points.push(output::Point {
                operation: point.operation.clone(),
                bytes: point.bytes,
                batch: self.length,
                us: vec![us],
            }),
        }
    }

    /// Returns the launch of this job. A job that ended because the race is to stop does not count as failed.
    fn outcome(
        self,
        finished: Option<Result<Finished>>,
        stop: &Stop,
        round: u32,
        line_ns: f64,
    ) -> Outcome {
        let mut measured = Measured::default();
        let mut failure = self.failure;
        match finished {
            Some(Ok(finished)) => {
                measured.output = output::parse(&finished.stdout);
                if !stop.is_asked() {
                    let work = Work::Points(Vec::new());
                    failure = failure.or_else(|| failure_of(&finished, &measured.output, &work));
                }
            }
            Some(Err(error)) => failure = Some(format!("failed: {error:#}")),
            None => {}
        }
        measured.output.points = self.points;
        Outcome {
            launch: Launch {
                group: self.group,
                round,
                seed: 0,
            },
            line_ns: [line_ns; 2],
            measured,
            failure,
            seconds: 0.0,
        }
    }
}

/// Returns the points in the form of the plan: operations with their sizes.
fn by_operation(points: &[Point]) -> Vec<(String, Vec<u64>)> {
    let mut all: Vec<(String, Vec<u64>)> = Vec::new();
    for point in points {
        match all
            .iter_mut()
            .find(|(operation, _)| *operation == point.operation)
        {
            Some((_, sizes)) => sizes.push(point.bytes),
            None => all.push((point.operation.clone(), vec![point.bytes])),
        }
    }
    all
}

/// Starts the job of a group, with a socket of its own.
fn enter(runner: &Runner, group: &Group, index: usize, seed: u64) -> Result<Player> {
    let socket = runner.work.join(format!("turns-{index}"));
    let _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket)
        .with_context(|| format!("cannot listen at {}", socket.display()))?;
    let mut command = runner.duet_command(group, seed, &socket)?;
    let (tasks, limit) = (group.processes(), runner.limit);
    Player::start(
        &runner.supervisor,
        &mut command,
        listener,
        &socket,
        tasks,
        limit,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Resolved;

    /// Returns two environments, of which the second lacks the expression.
    fn groups(suite: &'static str) -> [Group; 2] {
        let group = |competitor, operations: &[&str]| Group {
            competitor,
            suite,
            tasks: 2,
            work: Work::Points(
                operations
                    .iter()
                    .map(|name| ((*name).to_owned(), vec![8, 1024]))
                    .collect(),
            ),
            settings: Resolved::default(),
            launches: 1,
        };
        [
            group(0, &["broadcast", "broadcast-started"]),
            group(1, &["broadcast"]),
        ]
    }

    #[test]
    fn guidelines_have_one_heat_for_each_number_of_tasks_and_sizes_in_turn() {
        let all = Heat::all(&groups(suites::GUIDELINES.name), &[0, 1]);
        let [heat] = &all[..] else {
            panic!("{} heats", all.len());
        };
        assert_eq!(heat.members, [0, 1]);
        let points: Vec<(&str, u64)> = heat
            .points
            .iter()
            .map(|point| (point.operation.as_str(), point.bytes))
            .collect();
        let of = |bytes| [("broadcast", bytes), ("broadcast-started", bytes)];
        assert_eq!(points, [of(8), of(1024)].concat());
        assert!(
            heat.name()
                .ends_with("2 tasks, broadcast broadcast-started")
        );
    }

    #[test]
    fn other_suites_have_a_heat_for_each_set_of_environments() {
        let all = Heat::all(&groups(suites::PRIMITIVES.name), &[0, 1]);
        let members: Vec<&[usize]> = all.iter().map(Heat::members).collect();
        assert_eq!(members, [&[0, 1][..], &[0][..]]);
        assert_eq!([all[0].number(), all[1].number()], [0, 1]);
    }
}
