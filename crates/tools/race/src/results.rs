//! The types of `results.json`, schema `regatta-race/1`.
//!
//! Contract: a file written by one version of the race can be read by every later version with the same schema number.
//! Fields may be added, with a default. No field changes its meaning.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::spreadsheet;
use crate::stats::{self, Verdict};

/// Name of Regatta's own interface. The names of its other environments begin with it.
pub const OURS: &str = "regatta";

/// Name of the file with all results.
pub const JSON: &str = "results.json";

/// The name and number of the schema this version reads and writes.
pub const SCHEMA: &str = "regatta-race/1";

/// One race: the machine, the environments that took part, and the measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The machine, and the conditions of the race.
    pub machine: Machine,
    /// The environments that took part, and their settings.
    pub environments: Vec<Environment>,
    /// The measured points.
    pub rows: Vec<Row>,
    /// Ratios of environments that took turns (see `duet`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// Ratios of two points of one environment, from the same launches (see `guidelines`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paired: Vec<Paired>,
    /// Notes on the whole race, such as missing environments and repeated launches.
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
    /// Hardware threads that share one core; 1 if cores are not shared.
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
    /// Time of reading the clock once, in ns, which is subtracted from every batch.
    pub clock_ns: f64,
    /// One-way time of a cache line between two cores, in ns: the median of measurements by the driver before and after
    /// every launch.
    pub line_ns: f64,
    /// 5 % and 95 % quantiles of `line_ns`, which show how steady the machine was.
    pub line_ns_range: [f64; 2],
}

/// A message-passing environment that took part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Short name, such as `regatta`, `openmpi`, `mpich`, `mpich-debian`, `pvm`, `limit`.
    pub name: String,
    /// Version that the library itself states.
    pub version: String,
    /// The library file that the programs were linked with, or a text if there is none.
    pub library: String,
    /// The settings that differ from the library's defaults.
    pub settings: Vec<Setting>,
}

/// A setting of an environment, and its reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setting {
    /// The setting as a user would type it: `--mca pml ob1`, `MPIR_CVAR_X=1`.
    pub setting: String,
    /// When it applies: `always`, `tasks <= cores`, `tasks > cores`.
    pub when: String,
    /// The measured reason.
    pub reason: String,
}

/// The quantity of `median` and the other values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Half of a round trip, us.
    OneWay,
    /// From the first task's start to the last task's end, us.
    Time,
    /// The part of an application's time in communications, as the program reports it, us.
    Communication,
    /// Bytes that all tasks of an application send to others, in messages and collectives.
    Volume,
    /// Messages of all tasks of an application; a task's part in a collective counts as one.
    Messages,
    /// The longest time that a task of an application spends in calls that wait for others, us.
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
    /// Returns whether a smaller value is better, which is true of all metrics except rates.
    pub fn smaller_is_better(self) -> bool {
        self != Metric::Rate
    }

    /// Returns the unit of values of this metric, as in the file.
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

    /// Returns the name in the file.
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
    /// Name of the suite, such as `primitives`, `oversubscribed`, `start` or `memory`.
    pub suite: String,
    /// Name of the operation: `one-to-one`, `broadcast`, ...
    pub operation: String,
    /// Name of an environment in [`Results::environments`].
    pub environment: String,
    /// The network that messages crossed: `local` is one host.
    pub network: String,
    /// Number of tasks.
    pub tasks: u32,
    /// Bytes of one message. For collectives, bytes that each task contributes per receiver.
    pub bytes: u64,
    /// The measured quantity.
    pub metric: Metric,
    /// Unit of the values, [`Metric::unit`].
    pub unit: String,
    /// Median over launches of each launch's median.
    pub median: f64,
    /// 95 % confidence interval of that median: `[low, high]`.
    pub ci95: [f64; 2],
    /// 99 % quantile of all samples (a sample is the mean of a batch). For rates the 1 % quantile, which is their bad
    /// end.
    pub p99: f64,
    /// The smallest sample.
    pub minimum: f64,
    /// Number of samples in all launches.
    pub samples: u64,
    /// Number of launches that gave this point.
    pub launches: u32,
    /// Path of the messages, if the environment reports it.
    #[serde(default)]
    pub path: String,
    /// Warnings about this point: `time-out`, `few-launches`, `unsteady-machine`, `not-pinned`, ... A row that failed
    /// altogether has 0 `launches` and a flag with the reason.
    #[serde(default)]
    pub flags: Vec<String>,
}

impl Row {
    /// Returns the part that is equal in two rows that can be compared: everything but the environment.
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

    /// Returns whether anything was measured.
    pub fn measured(&self) -> bool {
        self.launches > 0
    }
}

/// The ratio of one environment's time to another's, from slices that were milliseconds apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// See [`Row::suite`].
    pub suite: String,
    /// See [`Row::operation`].
    pub operation: String,
    /// See [`Row::network`].
    pub network: String,
    /// See [`Row::tasks`].
    pub tasks: u32,
    /// See [`Row::bytes`].
    pub bytes: u64,
    /// The environment whose time is the numerator.
    pub environment: String,
    /// The environment whose time is the denominator.
    pub against: String,
    /// Median over all rounds. Below 1 the first environment is ahead, for rates too.
    pub median: f64,
    /// 95 % interval of the median, at all looks together: `[low, high]`.
    pub ci95: [f64; 2],
    /// Rounds in which both had a turn.
    pub rounds: u32,
    /// Launches of both environments that the rounds are from.
    pub launches: u32,
    /// The verdict of the interval.
    pub verdict: Verdict,
    /// Approximate additional time in seconds to decide the verdict; 0 if it is decided.
    pub more_seconds: f64,
}

/// The ratio of the times of two points of one environment, from turns of the same launches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// The environment of both points.
    pub environment: String,
    /// The number of tasks of both points.
    pub tasks: u32,
    /// The operation whose time is the numerator.
    pub operation: String,
    /// The size of that operation.
    pub bytes: u64,
    /// The operation whose time is the denominator.
    pub by: String,
    /// The size of that operation.
    pub by_bytes: u64,
    /// Median over all rounds.
    pub median: f64,
    /// 95 % interval of the median, at all looks together: `[low, high]`.
    pub ci95: [f64; 2],
    /// Rounds in which both had a turn.
    pub rounds: u32,
    /// Launches that the rounds are from.
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
    /// Returns the ratio of these two rows' environments if they took turns, and whether its sides are `b` and `a`
    /// instead of `a` and `b`.
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

    /// Returns the verdict for `a` against `b`: from their turns if they took any, else from the intervals of the rows.
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

    /// Returns the time of `a` divided by that of `b`, which is below 1 if `a` is better, for rates too. It is the
    /// median of their turns, or else the ratio of their medians.
    pub fn ratio(&self, a: &Row, b: &Row) -> f64 {
        match self.ratio_of(a, b) {
            Some((ratio, false)) => ratio.median,
            Some((ratio, true)) => 1.0 / ratio.median,
            None => stats::ratio(a, b),
        }
    }

    /// Returns the 95 % interval of [`Results::ratio`].
    pub fn ratio_interval(&self, a: &Row, b: &Row) -> [f64; 2] {
        match self.ratio_of(a, b) {
            Some((ratio, false)) => ratio.ci95,
            Some((ratio, true)) => [1.0 / ratio.ci95[1], 1.0 / ratio.ci95[0]],
            None => stats::ratio_interval(a, b),
        }
    }

    /// Reads a result file, or the one in a directory: `results.json`, or `results.csv` if that is the only one.
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

    /// Parses the text of a result file. Fails if the schema differs.
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

    /// Returns the text of a result file.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("these types have no keys or numbers JSON lacks")
    }

    /// Returns the environment that the verdicts are about: Regatta's own interface, or else the first environment on
    /// Regatta's libraries.
    pub fn ours(&self) -> &str {
        let named = || self.environments.iter().map(|one| one.name.as_str());
        named()
            .find(|name| *name == OURS)
            .or_else(|| named().find(|name| name.starts_with(OURS)))
            .unwrap_or(OURS)
    }

    /// Returns the rows of one environment.
    pub fn rows_of<'a>(&'a self, environment: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows
            .iter()
            .filter(move |row| row.environment == environment)
    }
}
