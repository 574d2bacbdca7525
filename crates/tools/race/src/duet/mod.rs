//! Environments that take turns within milliseconds.
//!
//! The speed of a machine with neighbours changes from second to second, so launches one after the other differ more by
//! the machine's speed than by the libraries. Therefore the jobs of all environments run at the same time (a *heat*),
//! and take turns of some milliseconds (*slices*) in an order that is drawn anew for each *round*. A job without its
//! turn sleeps outside its library. The sample is the ratio of two slices of one round (duet benchmarking: Bulej and
//! others, 2020). Heats are repeated, because the placement of a job's memory is part of the noise.
//!
//! *A turn's time* is the median of its parts ([`Player::slice`](player::Player::slice)). A neighbour on a core only
//! adds time, a few milliseconds at once, so it lengthens some parts of a turn and not the others.
//!
//! *Order of spending.* Every heat is run as often as intervals need at least. Then open points continue: first the
//! points that readers ask for first ([`headline`]), against the fastest peers there; then all points, until none is
//! open or the time is up. A point is open while the verdict against some peer is undecided ([`ratio::judge`]). The
//! intervals allow for the repeated judging after each heat.
//!
//! *Environments that take part* run on one host, and their tasks can wait outside their library without using a
//! processor. The others (PVM's daemons route messages) are launched one after the other, and compared by their own
//! intervals.

mod beaten;
mod heat;
pub mod player;
pub mod ratio;
mod task;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::discover::Competitor;
use crate::network::Network;
use crate::peers::Peer;
use crate::plan::{Effort, Group, Wishes, Work};
use crate::portability::targets;
use crate::progress::Progress;
use crate::report::headline;
use crate::results::{Paired, Ratio};
use crate::run::{Outcome, Runner};
use crate::stats::Verdict;
use crate::{cliffs, collect, guidelines, suites, table};
use heat::Heat;
use player::Point;
use ratio::Looks;

/// The time that a duet spends.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Duration of a slice, in seconds.
    slice: f64,
    /// Rounds of a point in one heat: of most points, of points with more than two tasks, and of points asked for
    /// first.
    rounds: [u32; 3],
    /// Minimum and maximum number of times that each heat is run.
    heats: [u32; 2],
    /// Time for all heats.
    budget: Duration,
}

impl Pace {
    fn of(wishes: &Wishes) -> Pace {
        let (slice, rounds, heats, seconds) = match wishes.effort {
            Effort::Quick => (0.002, [4, 2, 6], [3, 12], 165),
            Effort::Normal => (0.006, [8; 3], [4, 15], 600),
            Effort::Full => (0.008, [10; 3], [6, 30], 3600),
        };
        Pace {
            slice: wishes
                .budget
                .map_or(slice, |ms| ms * 1e-3 / f64::from(rounds[0])),
            rounds,
            heats: wishes.launches.map_or(heats, |number| [number; 2]),
            budget: Duration::from_secs(seconds),
        }
    }
}

/// Returns the longest duration of the turns of a race. The minimum number of heats may take longer.
pub fn longest(wishes: &Wishes) -> Duration {
    Pace::of(wishes).budget
}

/// The points of a heat that continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// All points, since none has been measured often enough to be judged.
    All,
    /// The open points among those that readers ask for first.
    AskedFirst,
    /// All open points.
    Open,
}

/// Minimum number of operations in a turn of a point that is asked for first: enough parts for a median that ignores
/// outliers.
const MIN_OPERATIONS: u64 = 5;
/// Share of the fastest peer's speed from which another peer may turn out to be the fastest.
const NEAR: f64 = 0.9;

/// Returns whether this group's environment can take turns with others.
pub fn takes_part(group: &Group, peer: &dyn Peer, network: Network) -> bool {
    let points = matches!(group.work, Work::Points(_));
    let launched = suites::find(group.suite).is_some_and(|suite| suite.launched);
    network.is_local() && points && peer.facts().takes_turns && !launched
}

/// The times of one point in one heat: for each round, the microseconds of each environment that had its turn.
type Rounds = Vec<BTreeMap<usize, f64>>;

/// A point with its number of tasks and its suite.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct HeatPoint {
    suite: &'static str,
    tasks: u32,
    point: Point,
}

/// All measurements of a point.
#[derive(Debug, Default)]
struct Record {
    /// The rounds of each heat, with the heat's index in `Duet::speeds`.
    heats: Vec<(usize, Rounds)>,
    seconds: f64,
}

impl Record {
    /// Returns the heats during which the machine had its usual speed if there are enough of them, else all heats. A
    /// larger distance between cores slows some libraries more than others, so heats at different speeds have no common
    /// ratio. The choice never depends on times of libraries.
    fn calm(&self, speeds: &[[f64; 2]]) -> Vec<&(usize, Rounds)> {
        let usual = collect::usual(speeds.iter().copied());
        let is_calm = |number: usize| {
            let speed = speeds.get(number);
            speed.is_none_or(|speed| collect::is_usual(*speed, usual))
        };
        let calm = self.heats.iter().filter(|(number, _)| is_calm(*number));
        let calm: Vec<&(usize, Rounds)> = calm.collect();
        match calm.len() >= collect::MIN_STEADY_LAUNCHES {
            true => calm,
            false => self.heats.iter().collect(),
        }
    }
}

/// The results of a duet.
#[derive(Default)]
pub struct Played {
    /// A launch of each environment for each heat.
    pub outcomes: Vec<Outcome>,
    /// The ratios of the first environment to the others, at each point.
    pub ratios: Vec<Ratio>,
    /// The ratios of two points of one environment, in the suite `guidelines`.
    pub paired: Vec<Paired>,
    /// Sentences for readers about the duet.
    pub notes: Vec<String>,
}

/// A running duet.
pub struct Duet<'a> {
    runner: &'a Runner,
    groups: &'a [Group],
    /// Index of the environment that is compared with all others.
    ours: usize,
    pace: Pace,
    random: fastrand::Rng,
    records: BTreeMap<HeatPoint, Record>,
    /// Number of operations in a slice of a point, by environment.
    lengths: BTreeMap<(usize, HeatPoint), u64>,
    failures: BTreeMap<usize, u32>,
    /// Number of times that each heat has been run.
    launches: BTreeMap<usize, u32>,
    /// The machine's speed before and after each heat, as in [`Outcome::line_ns`].
    speeds: Vec<[f64; 2]>,
    /// The points that readers ask for first.
    asked_first: BTreeSet<HeatPoint>,
}

/// Returns whether the ratio is undecided: against its bound, if it has one, else whether one side is ahead.
fn is_open(ratio: &Ratio) -> bool {
    let bound = targets::is_open(ratio).or_else(|| cliffs::is_open(ratio));
    let bound = bound.or_else(|| guidelines::is_open(ratio));
    bound.unwrap_or(ratio.verdict == Verdict::Undecided)
}

/// Returns the points of these heats that readers ask for first.
fn asked_first(heats: &[Heat]) -> BTreeSet<HeatPoint> {
    let places = || heats.iter().flat_map(Heat::places);
    let most = places().map(|place| place.tasks).max().unwrap_or(0);
    let smallest = |place: &HeatPoint| {
        let alike = |other: &HeatPoint| {
            (other.tasks, &other.point.operation) == (place.tasks, &place.point.operation)
        };
        let sizes = places().filter(alike).map(|other| other.point.bytes);
        sizes.min() == Some(place.point.bytes)
    };
    let is_first = |place: &HeatPoint| {
        let Point { operation, bytes } = &place.point;
        headline::is_of_a_whole_suite(place.suite)
            || (place.tasks == 2 && headline::is_of_a_pair(operation, *bytes))
            || (place.tasks == most && headline::is_of_a_crowd(operation) && smallest(place))
    };
    places().filter(is_first).collect()
}

/// Number of failures after which an environment no longer takes part.
const FAILURES_BEFORE_EXCLUSION: u32 = 2;

impl<'a> Duet<'a> {
    /// Creates a duet of these groups.
    pub fn new(runner: &'a Runner, groups: &'a [Group], wishes: &Wishes, seed: u64) -> Duet<'a> {
        let ours = runner
            .competitors
            .iter()
            .position(|one| one.name == "regatta");
        Duet {
            runner,
            groups,
            ours: ours.unwrap_or(0),
            pace: Pace::of(wishes),
            random: fastrand::Rng::with_seed(seed),
            records: BTreeMap::new(),
            lengths: BTreeMap::new(),
            failures: BTreeMap::new(),
            launches: BTreeMap::new(),
            speeds: Vec::new(),
            asked_first: BTreeSet::new(),
        }
    }

    /// Plays all heats of the groups with the indices `playing`. Begins no heat after `no_later`.
    pub fn play(mut self, playing: &[usize], no_later: Instant, progress: &mut Progress) -> Played {
        let heats = Heat::all(self.groups, playing);
        self.asked_first = asked_first(&heats);
        let mut played = Played::default();
        let began = Instant::now();
        let [fewest, _] = self.pace.heats;
        progress.more(heats.len() * fewest as usize);
        for _ in 0..fewest {
            self.pass(&heats, Wanted::All, no_later, &mut played, progress);
        }
        let end = no_later.min(began + self.pace.budget);
        for wanted in [Wanted::AskedFirst, Wanted::Open] {
            while self.pass(&heats, wanted, end, &mut played, progress) {}
        }
        played.ratios = self.ratios();
        played.paired = self.paired(|_| true);
        played.notes.extend(self.open_note(&played.ratios));
        let beaten = beaten::note(&played.ratios, |name| self.is_limit(name));
        played.notes.extend(beaten);
        played
    }

    /// Runs each heat that has wanted points once, until `end`. Returns true if a heat was run and the time is not up.
    fn pass(
        &mut self,
        heats: &[Heat],
        wanted: Wanted,
        end: Instant,
        played: &mut Played,
        progress: &mut Progress,
    ) -> bool {
        let mut ran = false;
        let open = match wanted {
            Wanted::Open => self.open_sides(),
            Wanted::All | Wanted::AskedFirst => BTreeSet::new(),
        };
        for heat in heats {
            let late = Instant::now() > end;
            if late || self.runner.stop().is_asked() {
                return false;
            }
            let points = self.wanted_points(heat, wanted, &open);
            if !points.is_empty() {
                ran = true;
                let number = self.launches.entry(heat.number()).or_default();
                *number += 1;
                let round = *number - 1;
                played
                    .outcomes
                    .extend(self.run(heat, &points, round, progress));
            }
        }
        ran
    }

    /// Returns the points of a heat that are still to be measured.
    fn wanted_points(&self, heat: &Heat, wanted: Wanted, open: &BTreeSet<HeatPoint>) -> Vec<Point> {
        let [_, most] = self.pace.heats;
        let goes_on = |point: &&Point| {
            let place = heat.place(point);
            let times = self
                .records
                .get(&place)
                .map_or(0, |record| record.heats.len());
            match wanted {
                Wanted::All => true,
                _ if times >= most as usize => false,
                Wanted::AskedFirst => {
                    self.asked_first.contains(&place) && self.is_headline_open(&place)
                }
                Wanted::Open if open.contains(&place) => true,
                Wanted::Open => self
                    .ratios_of(&place)
                    .iter()
                    .any(|ratio| is_open(ratio) && !self.is_limit(&ratio.against)),
            }
        };
        heat.points().iter().filter(goes_on).cloned().collect()
    }

    /// Returns whether the verdict is open against the fastest peer, or against a peer that may be the fastest.
    fn is_headline_open(&self, place: &HeatPoint) -> bool {
        let mut ratios = self.ratios_of(place);
        ratios.retain(|ratio| table::is_peer(&ratio.against));
        let fastest = ratios.iter().map(|ratio| ratio.median).fold(0.0, f64::max);
        ratios
            .iter()
            .any(|ratio| ratio.median >= NEAR * fastest && is_open(ratio))
    }

    fn is_limit(&self, name: &str) -> bool {
        let mut all = self.runner.competitors.iter();
        all.any(|one| one.name == name && one.peer.facts().limit)
    }

    fn ratios(&self) -> Vec<Ratio> {
        let of = |place| self.ratios_of(place);
        self.records.keys().flat_map(of).collect()
    }

    /// Returns the ratios of the first environment to each other one that was measured at this point.
    fn ratios_of(&self, place: &HeatPoint) -> Vec<Ratio> {
        let Some(record) = self.records.get(place) else {
            return Vec::new();
        };
        let others = (0..self.runner.competitors.len()).filter(|&other| other != self.ours);
        let heats = record.calm(&self.speeds);
        let of = |other| {
            let pair =
                |times: &BTreeMap<usize, f64>| Some(times.get(&self.ours)? / times.get(&other)?);
            let launches: Vec<Vec<f64>> = heats
                .iter()
                .map(|(_, rounds)| rounds.iter().filter_map(pair).collect())
                .collect();
            let estimate = self.estimate(&launches, place)?;
            let verdict = ratio::judge(estimate.ci95);
            let more = match verdict {
                Verdict::Undecided => record.seconds * (ratio::effort_to_decide(&estimate) - 1.0),
                _ => 0.0,
            };
            Some(Ratio {
                suite: place.suite.to_owned(),
                operation: place.point.operation.clone(),
                network: Network::Local.name().to_owned(),
                tasks: place.tasks,
                bytes: place.point.bytes,
                environment: self.runner.competitors[self.ours].name.clone(),
                against: self.runner.competitors[other].name.clone(),
                median: estimate.median,
                ci95: estimate.ci95,
                rounds: launches.iter().map(|rounds| rounds.len() as u32).sum(),
                launches: launches.iter().filter(|rounds| !rounds.is_empty()).count() as u32,
                verdict,
                more_seconds: more,
            })
        };
        others.filter_map(of).collect()
    }

    /// Returns the ratios of the points that guidelines compare within one environment, for the environments that
    /// `chosen` accepts.
    fn paired(&self, chosen: impl Fn(&Competitor) -> bool) -> Vec<Paired> {
        let mut all = Vec::new();
        for place in self
            .records
            .keys()
            .filter(|place| place.suite == suites::GUIDELINES.name)
        {
            for other in self.partners(place) {
                for (index, competitor) in self.runner.competitors.iter().enumerate() {
                    if chosen(competitor) {
                        all.extend(self.pair(place, &other, index));
                    }
                }
            }
        }
        all
    }

    /// Returns the points that this point may not take longer than.
    fn partners(&self, place: &HeatPoint) -> Vec<HeatPoint> {
        let same_job =
            |other: &&HeatPoint| (other.suite, other.tasks) == (place.suite, place.tasks);
        let raced = self.records.keys().filter(same_job);
        let raced: Vec<(&str, u64)> = raced
            .map(|other| (other.point.operation.as_str(), other.point.bytes))
            .collect();
        let others = guidelines::others((&place.point.operation, place.point.bytes), &raced);
        let at = |(operation, bytes): (&str, u64)| HeatPoint {
            point: Point {
                operation: operation.to_owned(),
                bytes,
            },
            ..place.clone()
        };
        others.into_iter().map(|(_, point)| at(point)).collect()
    }

    fn estimate(&self, launches: &[Vec<f64>], place: &HeatPoint) -> Option<ratio::Estimate> {
        let looks = Looks::between(self.pace.heats);
        ratio::estimate(launches, looks, place.point.bytes)
    }

    /// Returns the ratio of two points in one environment, from the rounds of the heats that have both.
    fn pair(&self, place: &HeatPoint, by: &HeatPoint, competitor: usize) -> Option<Paired> {
        let (record, other) = (self.records.get(place)?, self.records.get(by)?);
        let heats = record.calm(&self.speeds);
        let launches: Vec<Vec<f64>> = heats
            .iter()
            .filter_map(|(number, rounds)| {
                let (_, others) = other.heats.iter().find(|(same, _)| same == number)?;
                let both = rounds.iter().zip(others);
                Some(
                    both.filter_map(|(a, b)| Some(a.get(&competitor)? / b.get(&competitor)?))
                        .collect(),
                )
            })
            .collect();
        let estimate = self.estimate(&launches, place)?;
        Some(Paired {
            environment: self.runner.competitors[competitor].name.clone(),
            tasks: place.tasks,
            operation: place.point.operation.clone(),
            bytes: place.point.bytes,
            by: by.point.operation.clone(),
            by_bytes: by.point.bytes,
            median: estimate.median,
            ci95: estimate.ci95,
            rounds: launches.iter().map(|rounds| rounds.len() as u32).sum(),
            launches: launches.iter().filter(|rounds| !rounds.is_empty()).count() as u32,
        })
    }

    /// Returns the points on either side of guidelines that are undecided for one of Regatta's environments.
    fn open_sides(&self) -> BTreeSet<HeatPoint> {
        let mut open = self.paired(|competitor| competitor.peer.facts().ours);
        open.retain(guidelines::is_paired_open);
        let is_side = |place: &HeatPoint, one: &Paired| {
            let point = (place.point.operation.as_str(), place.point.bytes);
            place.tasks == one.tasks
                && [
                    (one.operation.as_str(), one.bytes),
                    (one.by.as_str(), one.by_bytes),
                ]
                .contains(&point)
        };
        let places = self
            .records
            .keys()
            .filter(|place| place.suite == suites::GUIDELINES.name);
        places
            .filter(|place| open.iter().any(|one| is_side(place, one)))
            .cloned()
            .collect()
    }

    fn open_note(&self, ratios: &[Ratio]) -> Option<String> {
        let open: Vec<&Ratio> = ratios
            .iter()
            .filter(|ratio| is_open(ratio) && !self.is_limit(&ratio.against))
            .collect();
        let seconds: f64 = open.iter().map(|ratio| ratio.more_seconds).sum();
        (!open.is_empty()).then(|| {
            format!(
                "{} of {} comparisons in turns are not decided; at this noise, deciding them would take about {:.0} more minutes",
                open.len(),
                ratios.len(),
                (seconds / 60.0).ceil()
            )
        })
    }

    /// Runs one heat: starts the jobs of all environments, which then take turns. Begins no further point if the race
    /// is to stop.
    fn run(
        &mut self,
        heat: &Heat,
        points: &[Point],
        round: u32,
        progress: &mut Progress,
    ) -> Vec<Outcome> {
        let name = heat.name();
        progress.begin(&name);
        let began = Instant::now();
        let members: Vec<usize> = heat
            .members()
            .iter()
            .copied()
            .filter(|group| {
                self.failures.get(group).copied().unwrap_or(0) < FAILURES_BEFORE_EXCLUSION
            })
            .collect();
        let mut stage = heat::Stage::start(
            self.runner,
            self.groups,
            &members,
            points,
            self.random.u64(..),
        );
        for point in points {
            if self.runner.stop().is_asked() {
                break;
            }
            self.take_turns(&mut stage, &heat.place(point), round == 0);
        }
        let outcomes = stage.finish(round);
        let speed = outcomes.first().map(|outcome| outcome.line_ns);
        self.speeds.push(speed.unwrap_or_default());
        for outcome in &outcomes {
            if let Some(failure) = &outcome.failure {
                *self.failures.entry(outcome.launch.group).or_default() += 1;
                progress.print(&format!("{name}: {failure}"));
            }
        }
        let [fewest, _] = self.pace.heats;
        progress.end(heat.number(), &name, fewest, began.elapsed().as_secs_f64());
        outcomes
    }

    /// Runs all rounds of one point.
    fn take_turns(&mut self, stage: &mut heat::Stage<'_>, place: &HeatPoint, first: bool) {
        let point = &place.point;
        let started = Instant::now();
        let [usual, of_many, asked] = self.pace.rounds;
        let (number, fewest) = match self.asked_first.contains(place) {
            true => (asked, MIN_OPERATIONS),
            false if place.tasks > 2 => (of_many, 1),
            false => (usual, 1),
        };
        stage.prepare(
            point,
            self.pace.slice,
            |competitor, length| {
                let known = self
                    .lengths
                    .entry((competitor, place.clone()))
                    .or_insert(length);
                if length > 0 {
                    *known = length.max(fewest);
                }
                *known
            },
            first,
        );
        let rounds: Rounds = (0..number)
            .take_while(|_| !self.runner.stop().is_asked())
            .map(|_| stage.round(point, &mut self.random))
            .collect();
        let record = self.records.entry(place.clone()).or_default();
        record.heats.push((self.speeds.len(), rounds));
        record.seconds += started.elapsed().as_secs_f64();
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::discover::tests::competitor;
    use crate::peers::limit::Limit;
    use crate::process::Supervisor;
    use crate::programs::Programs;
    use crate::settings::Resolved;
    use crate::stop::Stop;

    fn wishes() -> Wishes {
        Wishes {
            suites: Vec::new(),
            operations: Vec::new(),
            tasks: Vec::new(),
            bytes: Vec::new(),
            effort: Effort::Quick,
            launches: None,
            budget: None,
        }
    }

    fn runner(stop: bool) -> Runner {
        let request = Stop::new().expect("a pair of sockets");
        if stop {
            request.ask(2);
        }
        Runner {
            work: PathBuf::from("/"),
            competitors: vec![competitor("limit", &Limit)],
            programs: Programs::of_points(vec![None]),
            hosts: None,
            pair: None,
            budget: 5.0,
            limit: Duration::from_secs(1),
            supervisor: Supervisor::new(&request),
        }
    }

    #[test]
    fn heats_on_a_changed_machine_do_not_count_when_enough_others_are_left() {
        let heat = |number: usize, us: f64| (number, vec![BTreeMap::from([(0, us)])]);
        let times = |number: usize, speeds: &[[f64; 2]]| {
            let record = Record {
                heats: (0..number)
                    .map(|heat_of| heat(heat_of, heat_of as f64))
                    .collect(),
                seconds: 0.0,
            };
            let calm = record.calm(speeds);
            calm.iter()
                .map(|(_, rounds)| rounds[0][&0])
                .collect::<Vec<_>>()
        };
        let (usual, slow, between) = ([57.0; 2], [250.0; 2], [57.0, 250.0]);
        let speeds = [usual, slow, usual, between, usual];
        assert_eq!(times(5, &speeds), [0.0, 2.0, 4.0]);
        assert_eq!(
            times(4, &speeds),
            [0.0, 1.0, 2.0, 3.0],
            "two are not enough"
        );
        assert_eq!(times(3, &[[0.0; 2]; 3]), [0.0, 1.0, 2.0], "nobody knows");
    }

    /// A sum takes 1.3 times as long as its expression in each round of the heats that have both. A heat that has only
    /// one side does not count.
    #[test]
    fn two_points_of_one_environment_are_held_against_each_other_round_by_round() {
        let runner = runner(false);
        let wishes = wishes();
        let mut duet = Duet::new(&runner, &[], &wishes, 1);
        let place = |operation: &str, bytes| HeatPoint {
            suite: suites::GUIDELINES.name,
            tasks: 2,
            point: Point {
                operation: operation.to_owned(),
                bytes,
            },
        };
        let rounds = |us: f64| {
            (1..4)
                .map(|k| BTreeMap::from([(0, us * f64::from(k))]))
                .collect()
        };
        let record = |us: f64, heats: &[usize]| Record {
            heats: heats.iter().map(|heat| (*heat, rounds(us))).collect(),
            seconds: 0.0,
        };
        let mut add =
            |operation: &str, bytes, record| duet.records.insert(place(operation, bytes), record);
        add("global-sum", 8, record(1.3, &[0, 1, 2]));
        add("global-sum-by-reduce", 8, record(1.0, &[0, 2, 3]));
        add("global-sum", 1024, record(2.6, &[0, 1]));
        let paired = duet.paired(|_| true);
        let found: Vec<(&str, &str, u64, u32)> = paired
            .iter()
            .map(|one| {
                (
                    one.operation.as_str(),
                    one.by.as_str(),
                    one.by_bytes,
                    one.launches,
                )
            })
            .collect();
        let expected = [
            ("global-sum", "global-sum-by-reduce", 8, 2),
            ("global-sum", "global-sum", 1024, 2),
        ];
        assert_eq!(found, expected);
        assert!((paired[0].median - 1.3).abs() < 1e-9 && (paired[1].median - 0.5).abs() < 1e-9);
        assert!(duet.open_sides().is_empty(), "limit is none of ours");
    }

    #[test]
    fn a_heat_begins_no_point_when_the_race_is_to_stop() {
        let groups = [Group {
            competitor: 0,
            suite: "primitives",
            tasks: 2,
            work: Work::Points(vec![("one-to-one".to_owned(), vec![0, 8, 64])]),
            settings: Resolved::default(),
            launches: 1,
        }];
        let wishes = wishes();
        let heats = Heat::all(&groups, &[0]);
        let [heat] = &heats[..] else {
            panic!("one heat");
        };
        let measured = |stop: bool| {
            let runner = runner(stop);
            let mut duet = Duet::new(&runner, &groups, &wishes, 1);
            // The program would not start, so no turns are taken.
            duet.failures.insert(0, FAILURES_BEFORE_EXCLUSION);
            let mut progress = Progress::new(0, true);
            duet.run(heat, heat.points(), 0, &mut progress);
            duet.records.len()
        };
        assert_eq!((measured(false), measured(true)), (3, 0));
    }
}
