//! The papers' tables of whole applications, and the tables of messages that Ahmad (1997) arranges like these.

use std::collections::BTreeSet;

use super::layout::{Layout, Part, enumerated};
use crate::operations::{self, Application, Operation, Program};
use crate::places::Place;
use crate::portability::ahmad_wu;
use crate::reference::{self, Point, Quantity, Run};
use crate::results::{Metric, Results, Row};
use crate::suites::{AHMAD_1997, AHMAD_WU_1991, Suite, WHITE_1994};
use crate::table::{quantity, times};

/// Maximum number of tasks of the papers that is raced by default. Few readers have more processors.
const MAX_TASKS_UNASKED: u32 = 9;

/// Returns the paper's runs of applications in the order of its tables, or nothing if the suite is not named after a
/// paper.
fn runs(suite: &str) -> Vec<Run> {
    let all = reference::runs().into_iter();
    all.filter(|run| run.paper == suite).collect()
}

/// Returns the paper's points of messages as runs.
fn messages(suite: &str) -> Vec<Run> {
    let all = reference::points().into_iter();
    all.filter(|point| point.paper == suite).map(run).collect()
}

fn run(point: Point) -> Run {
    Run {
        paper: point.paper,
        table: point.table,
        operation: point.operation,
        platform: point.platform,
        network: point.network,
        environment: point.environment,
        processors: point.processors,
        size: point.bytes,
        quantity: Quantity::Time,
        value: point.us * 1e-6,
    }
}

/// Returns the applications of a paper's suite with the numbers of tasks and the sizes of its tables, as far as today's
/// programs have these problems.
pub fn places(suite: &Suite) -> Vec<Place> {
    let runs = runs(suite.name);
    let named = operations::distinct(runs.iter().map(|run| run.operation.as_str()));
    let mut places = Vec::new();
    for operation in named.into_iter().filter_map(operations::find) {
        let Program::Application(application) = operation.program else {
            continue;
        };
        let of_it = || runs.iter().filter(|run| run.operation == operation.name);
        let numbers: BTreeSet<u32> = of_it().map(|run| run.processors).collect();
        for tasks in numbers
            .into_iter()
            .filter(|tasks| *tasks <= MAX_TASKS_UNASKED)
        {
            let here = of_it().filter(|run| run.processors == tasks);
            let sizes: BTreeSet<u64> = here.map(|run| run.size).collect();
            let bytes: Vec<u64> = solved(application, sizes);
            if !bytes.is_empty() {
                places.push(Place {
                    operation,
                    tasks,
                    bytes,
                });
            }
        }
    }
    places
}

fn solved(application: &Application, sizes: BTreeSet<u64>) -> Vec<u64> {
    let known = |size: &u64| application.problem(*size).is_some();
    sizes.into_iter().filter(known).collect()
}

/// Returns the tables for which something was raced: those of Ahmad and Wu (1991), of Ahmad (1997), both also of
/// messages, and those of White, Alund and Sunderam (1994).
pub fn layouts(results: &Results) -> Vec<Layout> {
    let (ahmad, white, wu) = (AHMAD_1997.name, WHITE_1994.name, AHMAD_WU_1991.name);
    let of_wu = tables(results, wu, messages(wu));
    let of_wu = of_wu
        .iter()
        .map(|table| table.across_sizes("Ahmad and Wu, 1991"));
    let of_ahmad = tables(results, ahmad, [messages(ahmad), runs(ahmad)].concat());
    let of_white = tables(results, white, runs(white));
    let of_ahmad = of_ahmad.iter().map(|table| table.by_size("Ahmad, 1997"));
    let of_white = of_white
        .iter()
        .map(|table| table.by_machine("White and others, 1994"));
    of_wu.chain(of_ahmad).chain(of_white).collect()
}

/// A table of a paper, with today's rows of its operation in the paper's suite.
struct Table<'a> {
    /// The suite that is named after the paper.
    paper: &'static str,
    /// The table's number in the paper, such as `Table 6`.
    number: String,
    operation: &'static Operation,
    then: Vec<Run>,
    now: Vec<&'a Row>,
    /// The environment that today's ratios are relative to.
    own: &'a str,
}

fn tables<'a>(results: &'a Results, suite: &'static str, runs: Vec<Run>) -> Vec<Table<'a>> {
    let numbers = operations::distinct(runs.iter().map(|run| run.table.clone()));
    let table = |number: String| {
        let then = runs.iter().filter(|run| run.table == number);
        let then: Vec<Run> = then.cloned().collect();
        let operation = operations::find(&then.first()?.operation)?;
        let here = |row: &&Row| {
            (row.suite.as_str(), row.operation.as_str()) == (suite, operation.name)
                && row.measured()
        };
        let now: Vec<&Row> = results.rows.iter().filter(here).collect();
        // A table with one number of processors has only today's rows of that number.
        let numbers: BTreeSet<u32> = then.iter().map(|run| run.processors).collect();
        let alike = |row: &&Row| numbers.len() > 1 || numbers.contains(&row.tasks);
        let now: Vec<&Row> = now.into_iter().filter(alike).collect();
        (!now.is_empty()).then_some(Table {
            paper: suite,
            number,
            operation,
            then,
            now,
            own: results.ours(),
        })
    };
    numbers.into_iter().filter_map(table).collect()
}

impl Table<'_> {
    fn title(&self, paper: &str) -> String {
        let subject = match self.operation.heading {
            "" => self.operation.name,
            heading => heading,
        };
        let platforms = self.then.iter().map(|run| run.platform.as_str());
        let platforms = operations::distinct(platforms).join(", ");
        format!("{} of {paper}: {subject}, on {platforms}", self.number)
    }

    /// Returns the table in the layout of Ahmad: times by size, number of processors and library.
    fn by_size(&self, paper: &str) -> Layout {
        let libraries = operations::distinct(self.then.iter().map(|run| run.environment.as_str()));
        let environments = self.environments();
        let numbers = self.numbers();
        let part = |size: u64| {
            let then = libraries.iter().map(|library| {
                let us = |tasks| Some(self.then(library, tasks, size)? * 1e6);
                (format!("then, {library}"), us_by_tasks(&numbers, us))
            });
            let now = environments.iter().map(|environment| {
                let us = |tasks| self.now(environment, tasks, size, self.operation.metric);
                (format!("today, {environment}"), us_by_tasks(&numbers, us))
            });
            let measured = |line: &(String, Vec<String>)| line.1.iter().any(|cell| cell != NOTHING);
            Part {
                title: self.size(size),
                lines: then.chain(now).filter(measured).collect(),
            }
        };
        let tasks =
            |number: &u32| format!("{number} {}", if *number == 1 { "task" } else { "tasks" });
        Layout {
            paper: self.paper,
            number: self.number.clone(),
            title: self.title(paper),
            columns: numbers.iter().map(tasks).collect(),
            parts: self.sizes().into_iter().map(part).collect(),
            answers: self.answers(&libraries),
        }
    }

    /// Returns the table in the layout of Ahmad and Wu: times by number of processors, size and library.
    fn across_sizes(&self, paper: &str) -> Layout {
        let mut libraries =
            operations::distinct(self.then.iter().map(|run| run.environment.as_str()));
        // The paper asks how much longer the other interfaces take than the machine's own.
        libraries.sort_by_key(|library| *library != ahmad_wu::OWN);
        let (environments, sizes) = (self.environments(), self.sizes());
        let cells = |us: &dyn Fn(u64) -> Option<f64>| -> Vec<String> {
            let cell = |size: &u64| {
                us(*size).map_or_else(|| NOTHING.to_owned(), |us| quantity(Metric::Time, us))
            };
            sizes.iter().map(cell).collect()
        };
        let part = |tasks: u32| {
            let then = libraries.iter().map(|library| {
                let us = |size| Some(self.then(library, tasks, size)? * 1e6);
                (format!("then, {library}"), cells(&us))
            });
            let now = environments.iter().map(|environment| {
                let us = |size| self.now(environment, tasks, size, self.operation.metric);
                (format!("today, {environment}"), cells(&us))
            });
            let measured = |line: &(String, Vec<String>)| line.1.iter().any(|cell| cell != NOTHING);
            let noun = match (self.operation.host, tasks) {
                (true, 1) => "node",
                (true, _) => "nodes",
                (false, 1) => "task",
                (false, _) => "tasks",
            };
            Part {
                title: format!("{tasks} {noun}"),
                lines: then.chain(now).filter(measured).collect(),
            }
        };
        Layout {
            paper: self.paper,
            number: self.number.clone(),
            title: self.title(paper),
            columns: sizes.iter().map(|size| self.size(*size)).collect(),
            parts: self.numbers().into_iter().map(part).collect(),
            answers: self.answers(&libraries),
        }
    }

    /// Returns the table in the layout of White and others: a line for each machine, a column for each quantity.
    fn by_machine(&self, paper: &str) -> Layout {
        let place = |run: &Run| {
            (
                run.platform.clone(),
                run.environment.clone(),
                run.processors,
                run.size,
            )
        };
        let machines = operations::distinct(self.then.iter().map(place));
        let then = machines.into_iter().map(|at| {
            let value = |quantity| {
                let same = |run: &&Run| place(run) == at && run.quantity == quantity;
                self.then.iter().find(same).map(|run| run.value)
            };
            let (platform, library, tasks, size) = &at;
            self.machine(
                &format!("{platform}, {library}"),
                *tasks,
                *size,
                QUANTITIES.map(|(of_paper, ..)| value(of_paper)),
            )
        });
        let mut now = Vec::new();
        for environment in self.environments() {
            for size in self.sizes() {
                for tasks in self.numbers() {
                    let values = QUANTITIES.map(|(_, metric, unit)| {
                        Some(self.now(environment, tasks, size, metric)? / unit)
                    });
                    if values[0].is_some() {
                        now.push(self.machine(environment, tasks, size, values));
                    }
                }
            }
        }
        let part = |title: &str, lines| Part {
            title: title.to_owned(),
            lines,
        };
        Layout {
            paper: self.paper,
            number: self.number.clone(),
            title: self.title(paper),
            columns: MACHINE_HEADS.map(str::to_owned).to_vec(),
            parts: vec![
                part("Then", then.collect()),
                part("Today, on this machine", now),
            ],
            answers: self.answers(&[]),
        }
    }

    fn machine(
        &self,
        name: &str,
        tasks: u32,
        size: u64,
        values: [Option<f64>; 5],
    ) -> (String, Vec<String>) {
        let values = values.map(|value| value.map_or_else(|| NOTHING.to_owned(), significant));
        let first = [tasks.to_string(), self.size(size)];
        (name.to_owned(), first.into_iter().chain(values).collect())
    }

    fn size(&self, size: u64) -> String {
        let described = operations::described_size(self.operation.name, size);
        described.unwrap_or_else(|| format!("{size} bytes"))
    }

    fn environments(&self) -> Vec<&str> {
        operations::distinct(self.now.iter().map(|row| row.environment.as_str()))
    }

    fn sizes(&self) -> BTreeSet<u64> {
        let then = self.then.iter().map(|run| run.size);
        then.chain(self.now.iter().map(|row| row.bytes)).collect()
    }

    fn numbers(&self) -> BTreeSet<u32> {
        let then = self.then.iter().map(|run| run.processors);
        then.chain(self.now.iter().map(|row| row.tasks)).collect()
    }

    /// Returns the paper's time, s.
    fn then(&self, library: &str, processors: u32, size: u64) -> Option<f64> {
        let same = |run: &&Run| {
            (run.environment.as_str(), run.processors, run.size) == (library, processors, size)
                && run.quantity == Quantity::Time
        };
        self.then.iter().find(same).map(|run| run.value)
    }

    /// Returns today's median, in the unit of the metric.
    fn now(&self, environment: &str, tasks: u32, size: u64, metric: Metric) -> Option<f64> {
        let same = |row: &&&Row| {
            (row.environment.as_str(), row.tasks, row.bytes) == (environment, tasks, size)
                && row.metric == metric
        };
        self.now.iter().find(same).map(|row| row.median)
    }

    /// Returns whether messages pass with this many tasks, or nodes of a host.
    fn compares(&self, tasks: u32) -> bool {
        tasks > 1 || self.operation.host
    }

    /// Returns sentences with mean ratios: for the paper, of the times of the other libraries to that of the first one;
    /// for today, of the times of the other environments to that of Regatta's own interface. A ratio is the geometric
    /// mean over the cells with more than one task that both sides have.
    fn answers(&self, libraries: &[&str]) -> Vec<String> {
        let then = libraries.split_first().map(|(first, others)| {
            let ratio = |library: &str| {
                let cells = self
                    .then
                    .iter()
                    .filter(|run| run.environment == library && self.compares(run.processors));
                let ratios = cells.filter_map(|run| {
                    Some(run.value / self.then(first, run.processors, run.size)?)
                });
                mean_ratio(library, "took", first, ratios)
            };
            others.iter().filter_map(|library| ratio(library)).collect()
        });
        let time = self.operation.metric;
        let ratio = |environment: &&str| {
            let here = |row: &&&Row| {
                row.environment == *environment && row.metric == time && self.compares(row.tasks)
            };
            let cells = self.now.iter().filter(here);
            let ratios = cells.filter_map(|row| {
                Some(row.median / self.now(self.own, row.tasks, row.bytes, time)?)
            });
            mean_ratio(environment, "takes", self.own, ratios)
        };
        let others = self
            .environments()
            .into_iter()
            .filter(|name| *name != self.own);
        let now: Vec<String> = others.filter_map(|name| ratio(&name)).collect();
        let sentence = |when: &str, ratios: Vec<String>| {
            let list = enumerated(&ratios);
            (!ratios.is_empty()).then(|| {
                format!("{when}, {list} (geometric mean of the times with more than one task).")
            })
        };
        let both = [
            sentence("Then", then.unwrap_or_default()),
            sentence("Today", now),
        ];
        both.into_iter().flatten().collect()
    }
}

/// The columns of [`Table::by_machine`].
const MACHINE_HEADS: [&str; 7] = [
    "tasks",
    "size",
    "time, s",
    "volume, MB",
    "communication, s",
    "messages",
    "idle, s",
];
/// Text of a cell without a figure.
const NOTHING: &str = "-";

/// The columns of White and others: the paper's quantity, today's metric, and the number of the metric's units in one
/// of the column's.
const QUANTITIES: [(Quantity, Metric, f64); 5] = [
    (Quantity::Time, Metric::Time, 1e6),
    (Quantity::Volume, Metric::Volume, 1e6),
    (Quantity::Communication, Metric::Communication, 1e6),
    (Quantity::Messages, Metric::Messages, 1.0),
    (Quantity::Idle, Metric::Waiting, 1e6),
];

/// Returns the cells of a line.
fn us_by_tasks(numbers: &BTreeSet<u32>, us: impl Fn(u32) -> Option<f64>) -> Vec<String> {
    let cell =
        |us: Option<f64>| us.map_or_else(|| NOTHING.to_owned(), |us| quantity(Metric::Time, us));
    numbers.iter().map(|tasks| cell(us(*tasks))).collect()
}

/// Returns `NAME takes 2.00 times as long as BASE`, or `None` without ratios. The geometric mean does not depend on
/// which side is the base: the mean of inverse ratios is the inverse mean.
fn mean_ratio(
    name: &str,
    verb: &str,
    base: &str,
    ratios: impl Iterator<Item = f64>,
) -> Option<String> {
    let logarithms: Vec<f64> = ratios.map(f64::ln).filter(|one| one.is_finite()).collect();
    let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
    let times = times(mean.exp());
    let times = times.trim_end_matches('x');
    (!logarithms.is_empty()).then(|| format!("{name} {verb} {times} times as long as {base}"))
}

/// Returns a figure with about three digits.
fn significant(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{results, row};

    fn of_suite(
        suite: &Suite,
        operation: &str,
        environment: &str,
        tasks: u32,
        size: u64,
        seconds: f64,
    ) -> Row {
        Row {
            suite: suite.name.to_owned(),
            metric: operations::metric(operation),
            ..row(operation, environment, tasks, size, seconds * 1e6)
        }
    }

    fn line<'a>(layout: &'a Layout, part: &str, name: &str) -> &'a [String] {
        let part = layout
            .parts
            .iter()
            .find(|one| one.title == part)
            .expect("a part");
        &part
            .lines
            .iter()
            .find(|line| line.0 == name)
            .expect("a line")
            .1
    }

    #[test]
    fn the_applications_of_a_paper_are_raced_as_it_has_them() {
        let places = places(&AHMAD_1997);
        let here = |place: &&Place| place.operation.name == "gauss-row-block" && place.tasks == 2;
        let found: Vec<&Place> = places.iter().filter(here).collect();
        assert_eq!(found.len(), 1, "{places:?}");
        assert_eq!(found[0].bytes, [256, 384, 512, 640, 768]);
        let places = super::places(&WHITE_1994);
        let kernels: BTreeSet<&str> = places.iter().map(|place| place.operation.name).collect();
        assert_eq!(kernels.len(), 5, "{kernels:?}");
    }

    #[test]
    fn times_of_then_and_today_stand_below_each_other() {
        let raced = results(vec![
            of_suite(&AHMAD_1997, "gauss-row-block", "regatta", 2, 256, 0.01),
            of_suite(&AHMAD_1997, "gauss-row-block", "regatta-pvm", 2, 256, 0.02),
        ]);
        let layouts = layouts(&raced);
        let titles: Vec<&str> = layouts.iter().map(|layout| layout.title.as_str()).collect();
        assert_eq!(
            titles.len(),
            3,
            "a table for each of three machines: {titles:?}"
        );
        assert!(
            titles[0].starts_with("Table 6 of Ahmad, 1997: Gaussian elimination"),
            "{titles:?}"
        );
        let at = layouts[0]
            .columns
            .iter()
            .position(|head| head == "2 tasks")
            .expect("2 tasks");
        assert_eq!(line(&layouts[0], "256 unknowns", "then, NX")[at], "3.60 s");
        assert_eq!(
            line(&layouts[0], "256 unknowns", "today, regatta-pvm")[at],
            "20.0 ms"
        );
        let answers = layouts[0].answers.join(" ");
        assert!(
            answers.contains("Express took 1.40 times as long as NX, and PVM took")
                && answers.contains("Today, regatta-pvm takes 2.00 times as long as regatta (geo"),
            "{answers}"
        );
    }

    #[test]
    fn tables_of_messages_of_the_same_paper_are_there_too() {
        let raced = results(vec![of_suite(
            &AHMAD_1997,
            "one-to-one",
            "regatta",
            2,
            0,
            2e-7,
        )]);
        let layouts = layouts(&raced);
        assert_eq!(layouts.len(), 1);
        assert_eq!(line(&layouts[0], "0 bytes", "then, NX"), ["68.0 us"]);
        assert_eq!(line(&layouts[0], "0 bytes", "today, regatta"), ["200 ns"]);
    }

    #[test]
    fn tables_of_ahmad_and_wu_have_a_column_for_each_size() {
        let raced = results(vec![
            of_suite(&AHMAD_WU_1991, "one-to-one", "regatta", 2, 40, 2e-7),
            of_suite(&AHMAD_WU_1991, "one-to-one", "regatta-express", 2, 40, 4e-7),
        ]);
        let layouts = layouts(&raced);
        assert_eq!(layouts.len(), 1);
        let layout = &layouts[0];
        assert_eq!(
            (layout.paper, layout.number.as_str()),
            ("ahmad-wu-1991", "Table 3")
        );
        let column = |name: &str| layout.columns.iter().position(|head| head == name);
        let at = column("40 bytes").expect("40 bytes");
        assert_eq!(line(layout, "2 tasks", "then, iPSC2")[at], "440 us");
        assert_eq!(line(layout, "2 tasks", "today, regatta")[at], "200 ns");
        let answers = layout.answers.join(" ");
        assert!(
            answers.contains("Express took") && answers.contains("times as long as iPSC2"),
            "{answers}"
        );
    }

    #[test]
    fn machines_of_then_and_this_one_stand_in_one_table() {
        let volume = Row {
            metric: Metric::Volume,
            ..of_suite(&WHITE_1994, "npb-is", "regatta", 8, 1 << 23, 324.0)
        };
        let raced = results(vec![
            of_suite(&WHITE_1994, "npb-is", "regatta", 8, 1 << 23, 5.0),
            volume,
        ]);
        let layouts = layouts(&raced);
        // The machine has lines without and with the enhanced messages.
        assert_eq!(layouts.len(), 2);
        let then = line(&layouts[0], "Then", "IBM RS/6000, PVM-daemon");
        assert_eq!(then, ["8", "class A", "674", "560", "610", "2491", "-"]);
        let today = line(&layouts[0], "Today, on this machine", "regatta");
        assert_eq!(today, ["8", "class A", "5.00", "324", "-", "-", "-"]);
    }

    #[test]
    fn rows_of_other_suites_have_no_such_tables() {
        assert!(layouts(&results(vec![row("nbody", "regatta", 2, 512, 1.0)])).is_empty());
    }
}
