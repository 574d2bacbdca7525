//! The types of `results.json`, schema `regatta-race/1`.
//!
//! Contract: a file written by one version of the race is read by every later one of the same
//! schema number. Fields may be added, with a default; none changes its meaning.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::spreadsheet;
use crate::stats::{self, Verdict};

/// Regatta's own interface; its other environments begin with this name.
pub const OURS: &str = "regatta";

/// Name of the file with everything.
pub const JSON: &str = "results.json";

/// The name and number of the schema this version reads and writes.
pub const SCHEMA: &str = "regatta-race/1";

/// One race: the machine, who took part, and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Where and when the race was run.
    pub machine: Machine,
    /// The environments that took part, and their settings.
    pub environments: Vec<Environment>,
    /// One measured point each.
    pub rows: Vec<Row>,
    /// Ratios of environments that took turns; see `duet`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// Ratios of two points of one environment, of the same launches; see `guidelines`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paired: Vec<Paired>,
    /// Notes about the whole race: missing parts, repeated launches.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The machine, and the conditions of the race.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Model name of the processor.
    pub cpu: String,
    /// Processors this race was allowed to use.
    pub cores: u32,
    /// Hardware threads that share one core; 1 when there is no such sharing.
    pub threads_per_core: u32,
    /// Caches, as text: `L1d 48 KiB, L2 1 MiB, L3 32 MiB`.
    pub caches: String,
    /// Memory in bytes.
    pub memory: u64,
    /// Operating system, as it names itself.
    pub system: String,
    /// Kernel release.
    pub kernel: String,
    /// The hypervisor's name, or empty on bare metal.
    pub virtual_machine: String,
    /// Frequency governor, or empty where the kernel does not say.
    pub governor: String,
    /// C compiler that built the programs.
    pub compiler: String,
    /// Start of the race, seconds since 1970, UTC.
    pub started: u64,
    /// Duration of the race in seconds.
    pub seconds: f64,
    /// The command line, from `race` on.
    pub command: String,
    /// Seed of the order of launches.
    pub seed: u64,
    /// Cost of reading the clock once, in ns; taken off every batch.
    pub clock_ns: f64,
    /// One way of a cache line between two cores, in ns: median over the race, measured by the
    /// driver before and after every launch.
    pub line_ns: f64,
    /// Its 5 % and 95 % quantiles: how steady the machine was.
    pub line_ns_range: [f64; 2],
}

/// A message-passing environment that took part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Short name: `regatta`, `openmpi`, `mpich`, `mpich-debian`, `pvm`, `limit`.
    pub name: String,
    /// Version as the library itself states it.
    pub version: String,
    /// The library file the programs were linked with, or what stands in its place.
    pub library: String,
    /// Every setting that differs from the library's default, one each.
    pub settings: Vec<Setting>,
}

/// A setting of an environment, and why it was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setting {
    /// As one would type it: `--mca pml ob1`, `MPIR_CVAR_X=1`.
    pub setting: String,
    /// When it applies: `always`, `tasks <= cores`, `tasks > cores`.
    pub when: String,
    /// The measured reason.
    pub reason: String,
}

/// The quantity of `median` and its companions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Half of a round trip, us.
    OneWay,
    /// From the first task's start to the last task's end, us.
    Time,
    /// The part of an application's time in communications, as the program tells it, us.
    Communication,
    /// Bytes that all tasks of an application give to others, in messages and collectives.
    Volume,
    /// Messages of all tasks of an application; a task's part in a collective counts as one.
    Messages,
    /// The longest time of a task of an application in calls that wait for others, us.
    Waiting,
    /// Messages per second.
    Rate,
    /// Resident memory per task, KiB.
    Resident,
    /// Proportional share of memory per task, KiB.
    Share,
    /// Processor time used, in per cent of one core.
    Cpu,
}

impl Metric {
    /// Is a smaller value the better one? True of all but rates.
    pub fn smaller_is_better(self) -> bool {
        self != Metric::Rate
    }

    /// The unit of values of this metric, as it stands in the file.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::OneWay | Metric::Time | Metric::Communication | Metric::Waiting => "us",
            Metric::Volume => "B",
            Metric::Messages => "1",
            Metric::Rate => "1/s",
            Metric::Resident | Metric::Share => "KiB",
            Metric::Cpu => "%",
        }
    }

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Metric::OneWay => "one_way",
            Metric::Time => "time",
            Metric::Communication => "communication",
            Metric::Volume => "volume",
            Metric::Messages => "messages",
            Metric::Waiting => "waiting",
            Metric::Rate => "rate",
            Metric::Resident => "resident",
            Metric::Share => "share",
            Metric::Cpu => "cpu",
        }
    }
}

/// One measured point: one operation of one environment with this many tasks and bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// `primitives`, `oversubscribed`, `start` or `memory`.
    pub suite: String,
    /// Name of the operation: `one-to-one`, `broadcast`, ...
    pub operation: String,
    /// Name of an entry of [`Results::environments`].
    pub environment: String,
    /// The network that messages crossed: `local` is one host.
    pub network: String,
    /// Number of tasks.
    pub tasks: u32,
    /// Bytes of one message; for collectives, what each task contributes per receiver.
    pub bytes: u64,
    /// The measured quantity.
    pub metric: Metric,
    /// Unit of the values, [`Metric::unit`].
    pub unit: String,
    /// Median over launches of each launch's median.
    pub median: f64,
    /// 95 % confidence interval of that median: `[low, high]`.
    pub ci95: [f64; 2],
    /// 99 % quantile of all samples (a sample is the mean of a batch); the bad end for rates too.
    pub p99: f64,
    /// The smallest sample.
    pub minimum: f64,
    /// Number of samples in all launches.
    pub samples: u64,
    /// Number of launches that gave this point.
    pub launches: u32,
    /// Which way the messages went, as far as the environment tells.
    #[serde(default)]
    pub path: String,
    /// Warnings about this point: `time-out`, `few-launches`, `unsteady-machine`,
    /// `not-pinned`, ... A row that failed altogether has `launches` 0 and a flag that says why.
    #[serde(default)]
    pub flags: Vec<String>,
}

impl Row {
    /// The common part of two rows that can be compared: everything but the environment.
    pub fn point(&self) -> Point<'_> {
        Point {
            suite: &self.suite,
            operation: &self.operation,
            network: &self.network,
            tasks: self.tasks,
            bytes: self.bytes,
            metric: self.metric,
        }
    }

    /// Was anything measured?
    pub fn measured(&self) -> bool {
        self.launches > 0
    }
}

/// How much of another environment's time one takes, from slices that were milliseconds apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// As of [`Row`].
    pub suite: String,
    /// As of [`Row`].
    pub operation: String,
    /// As of [`Row`].
    pub network: String,
    /// As of [`Row`].
    pub tasks: u32,
    /// As of [`Row`].
    pub bytes: u64,
    /// The one whose time is divided,
    pub environment: String,
    /// by the time of this one.
    pub against: String,
    /// Median over all rounds; below 1, the first one is ahead. Of rates as well.
    pub median: f64,
    /// 95 % interval of it, at all looks at it together: `[low, high]`.
    pub ci95: [f64; 2],
    /// Rounds in which both had a turn.
    pub rounds: u32,
    /// Launches of both that these are of.
    pub launches: u32,
    /// The verdict of the interval.
    pub verdict: Verdict,
    /// About how many more seconds it would take to decide; 0 where it is decided.
    pub more_seconds: f64,
}

/// How much of another point's time one takes in the same environment, from turns of the same launches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Both are of this environment,
    pub environment: String,
    /// with as many tasks.
    pub tasks: u32,
    /// The operation whose time is divided,
    pub operation: String,
    /// and its size,
    pub bytes: u64,
    /// by the time of this one,
    pub by: String,
    /// of this size.
    pub by_bytes: u64,
    /// Median over all rounds.
    pub median: f64,
    /// 95 % interval of it, at all looks at it together: `[low, high]`.
    pub ci95: [f64; 2],
    /// Rounds in which both had a turn.
    pub rounds: u32,
    /// Launches that these are of.
    pub launches: u32,
}

/// A point of the race, without the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point<'a> {
    /// See [`Row::suite`].
    pub suite: &'a str,
    /// See [`Row::operation`].
    pub operation: &'a str,
    /// See [`Row::network`].
    pub network: &'a str,
    /// See [`Row::tasks`].
    pub tasks: u32,
    /// See [`Row::bytes`].
    pub bytes: u64,
    /// See [`Row::metric`].
    pub metric: Metric,
}

impl Results {
    /// The ratio of these two rows' environments, if they took turns; `true`: the other way round.
    fn ratio_of(&self, a: &Row, b: &Row) -> Option<(&Ratio, bool)> {
        let at = |ratio: &&Ratio| {
            (ratio.operation.as_str(), ratio.tasks, ratio.bytes)
                == (a.operation.as_str(), a.tasks, a.bytes)
                && ratio.suite == a.suite
                && ratio.network == a.network
        };
        let found = self.ratios.iter().filter(at).find_map(|ratio| {
            let names = (ratio.environment.as_str(), ratio.against.as_str());
            match names == (a.environment.as_str(), b.environment.as_str()) {
                true => Some((ratio, false)),
                false if names == (b.environment.as_str(), a.environment.as_str()) => {
                    Some((ratio, true))
                }
                false => None,
            }
        });
        found.filter(|_| a.point() == b.point())
    }

    /// `a` against `b`: by their turns, if they took any; else by their own intervals.
    pub fn verdict(&self, a: &Row, b: &Row) -> Verdict {
        match self.ratio_of(a, b) {
            Some((ratio, false)) => ratio.verdict,
            Some((ratio, true)) => match ratio.verdict {
                Verdict::Ahead => Verdict::Behind,
                Verdict::Behind => Verdict::Ahead,
                same => same,
            },
            None => stats::verdict(a, b),
        }
    }

    /// Time of `a` in units of the time of `b`, below 1 when `a` is better, for rates too: the median of their turns, or the ratio of
    /// their medians.
    pub fn ratio(&self, a: &Row, b: &Row) -> f64 {
        match self.ratio_of(a, b) {
            Some((ratio, false)) => ratio.median,
            Some((ratio, true)) => 1.0 / ratio.median,
            None => stats::ratio(a, b),
        }
    }

    /// The 95 % interval of [`Results::ratio`].
    pub fn ratio_interval(&self, a: &Row, b: &Row) -> [f64; 2] {
        match self.ratio_of(a, b) {
            Some((ratio, false)) => ratio.ci95,
            Some((ratio, true)) => [1.0 / ratio.ci95[1], 1.0 / ratio.ci95[0]],
            None => stats::ratio_interval(a, b),
        }
    }

    /// Reads a result file, or the one in a directory: `results.json`, or `results.csv` where that is all there is.
    pub fn read(path: &Path) -> Result<Results> {
        let file = match path.is_dir() {
            true => {
                let names = [JSON, spreadsheet::ROWS].map(|name| path.join(name));
                let there = names.iter().find(|file| file.exists());
                there.unwrap_or(&names[0]).clone()
            }
            false => path.to_owned(),
        };
        if file.extension().is_some_and(|kind| kind == "csv") {
            return Results::read_csv(&file);
        }
        let text = std::fs::read_to_string(&file).with_context(|| {
            format!("cannot read {}: give a directory written by `regatta race --out`, or its {JSON} or {}", file.display(), spreadsheet::ROWS)
        })?;
        Results::parse(&text)
            .with_context(|| format!("{} is not a result of the race", file.display()))
    }

    /// Parse the text of a result file.
    pub fn parse(text: &str) -> Result<Results> {
        let results: Results = serde_json::from_str(text)?;
        if results.schema != SCHEMA {
            bail!(
                "its schema is {:?}, this version reads {SCHEMA:?}",
                results.schema
            );
        }
        Ok(results)
    }

    /// The text of a result file.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("these types have no keys or numbers JSON lacks")
    }

    /// The environment whose standing is stated: Regatta's own interface, or in a race without it the first one on Regatta's libraries.
    pub fn ours(&self) -> &str {
        let named = || self.environments.iter().map(|one| one.name.as_str());
        named()
            .find(|name| *name == OURS)
            .or_else(|| named().find(|name| name.starts_with(OURS)))
            .unwrap_or(OURS)
    }

    /// The rows of one environment.
    pub fn rows_of<'a>(&'a self, environment: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows
            .iter()
            .filter(move |row| row.environment == environment)
    }
}
