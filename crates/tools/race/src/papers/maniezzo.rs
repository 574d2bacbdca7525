//! The suite `maniezzo-sanna`: the transmissions of M. Maniezzo and A. Sanna, "A Deep Evaluation of Design Issues and
//! Performances of PVM, MPICH and mpiGAMMA Libraries" (2003 or later): ping-pongs of 32 to 64 MB by the calls of their
//! Table 1 (Figures 5 to 7), and NetPIPE (Figure 11).
//!
//! The paper shows its times in figures, and states ratios of them in its text. The ratios are shown with today's here.

use std::collections::BTreeSet;

use super::layout::{Layout, Part, enumerated, number, percent};
use crate::operations;
use crate::peers::{mpich, pvm, regatta_pvm};
use crate::places::Place;
use crate::results::{Metric, Results, Row};
use crate::suites::MANIEZZO_SANNA;

const SUITE: &str = MANIEZZO_SANNA.name;

/// Types of elements: suffix of the operation, bytes of a message (1 MB is 10^6), heading of the column.
const ELEMENTS: [(&str, u64, &str); 4] = [
    ("", 60_000_000, "60M char"),
    ("-int", 32_000_000, "8M int"),
    ("-float", 32_000_000, "8M float"),
    ("-double", 64_000_000, "8M double"),
];
/// Prefixes of the names of operations, and the paper's names for them.
const BLOCKING: [(&str, &str); 1] = [("ping-pong-blocking", "send and receive")];
const PACKED: [(&str, &str); 3] = [
    (
        "ping-pong-blocking-pack-in-place",
        "packed in place (PVM), sent as it lies (MPI)",
    ),
    ("ping-pong-blocking-pack-raw", "packed as it lies in memory"),
    (
        "ping-pong-blocking-pack-default",
        "packed for any machine (XDR, external32)",
    ),
];
const ASYNCHRONOUS: [(&str, &str); 2] = [
    (
        "exchange-isend",
        "asynch. 1: Isend, Irecv, Wait; pvm_psend, pvm_precv",
    ),
    ("exchange-sendrecv", "asynch. 2: Sendrecv"),
];
const NETPIPE: [(&str, &str); 3] = [
    ("netpipe", "send and receive"),
    (
        "netpipe-pack-in-place",
        "packed in place (PVM), sent as it lies (MPI)",
    ),
    (
        "netpipe-pack-default",
        "packed for any machine (XDR, external32)",
    ),
];
/// NetPIPE's largest buffer in the paper, in bytes.
const MAX_NETPIPE_BYTES: u64 = 10_000_000;
/// Distance of the sizes that NetPIPE adds on either side of a size, in bytes.
const PERTURBATION_BYTES: u64 = 3;
/// Smallest size on either side of which others are added, in bytes.
const MIN_PERTURBED_BYTES: u64 = 16;
/// Numbers of the paper's figures that have measurements.
pub const FIGURES: [u32; 7] = [5, 6, 7, 8, 9, 10, 11];
/// Numbers of tasks of the paper's applications: a master with 1, 3 and 7 slaves. In molecular dynamics the master
/// calculates as well. One task is the program without messages.
const TASKS: [u32; 4] = [1, 2, 4, 8];

/// A figure of an application.
struct Run {
    /// Number of the figure.
    number: u32,
    /// The operation that is raced.
    operation: &'static str,
    /// The paper's application, and the program that is raced in its place.
    what: &'static str,
    /// Sizes of the problems.
    sizes: &'static [u64],
    /// The paper's text about the figure.
    then: &'static str,
}

/// Figures 8 to 10.
const RUNS: [Run; 3] = [
    Run {
        number: 8,
        operation: "ribbit",
        what: "Ribbit",
        sizes: &[800 * 600, 1024 * 768],
        then: "Then, with up to 7 slaves, at 800x600 PVM took up to 10.8 % and MPICH up to 16 % more time than mpiGAMMA, at 1024x768 up to 14.6 % and 16.8 %.",
    },
    Run {
        number: 9,
        operation: "povray",
        what: "POV-Ray",
        sizes: &[400 * 300],
        then: "Then the times of the three libraries differed by no more than 0.075 %, of 122 minutes at 1024x768 with 7 slaves.",
    },
    Run {
        number: 10,
        operation: "md",
        what: "Gromacs (today a program of molecular dynamics with its pattern of messages)",
        sizes: &[32_000],
        then: "Then, with 3 slaves, PVM took 4.7 % less time than MPICH and 1.5 % more than mpiGAMMA; with 7 slaves PVM almost 6 % and MPICH almost 12 % more than mpiGAMMA.",
    },
];
/// Sizes in the table of Figure 11.
const FIGURE_11_BYTES: [u64; 6] = [1, 64, 4 << 10, 64 << 10, 1 << 20, 8 << 20];

/// Returns NetPIPE's sizes: two for each power of two.
fn sizes() -> Vec<u64> {
    let from = |power: u32| [1 << power, 3 << (power - 1)];
    let all = std::iter::once(1).chain((1..u64::BITS - 1).flat_map(from));
    all.take_while(|size| *size <= MAX_NETPIPE_BYTES).collect()
}

/// Returns the sizes of [`sizes`], with a slightly smaller and a slightly larger one beside each.
fn perturbed_sizes() -> Vec<u64> {
    let around = |size: u64| match size < MIN_PERTURBED_BYTES {
        true => vec![size],
        false => vec![size - PERTURBATION_BYTES, size, size + PERTURBATION_BYTES],
    };
    sizes().into_iter().flat_map(around).collect()
}

/// Returns all points of the four figures of messages.
pub fn places() -> Vec<Place> {
    let beginnings = BLOCKING.iter().chain(&PACKED).chain(&ASYNCHRONOUS);
    let large = beginnings.flat_map(|(beginning, _)| {
        ELEMENTS.map(|(ending, bytes, _)| (format!("{beginning}{ending}"), vec![bytes]))
    });
    let [(plain, _), packed @ ..] = NETPIPE;
    let netpipe = std::iter::once((plain.to_owned(), perturbed_sizes()))
        .chain(packed.map(|(name, _)| (name.to_owned(), sizes())));
    let place = |(name, bytes): (String, Vec<u64>)| {
        Some(Place {
            operation: operations::find(&name)?,
            tasks: 2,
            bytes,
        })
    };
    large.chain(netpipe).filter_map(place).collect()
}

/// Returns the applications of the figures 8 to 10.
pub fn applications() -> Vec<Place> {
    let of = |run: &Run| {
        let operation = operations::find(run.operation)?;
        Some(TASKS.map(|tasks| Place {
            operation,
            tasks,
            bytes: run.sizes.to_vec(),
        }))
    };
    RUNS.iter().filter_map(of).flatten().collect()
}

/// Returns a figure of an application: how much more time each environment takes than the fastest, which takes the
/// place of mpiGAMMA.
fn losses(results: &Results, run: &Run) -> Layout {
    let operation = run.operation;
    let here = |row: &&Row| {
        (row.suite.as_str(), row.operation.as_str()) == (SUITE, operation)
            && row.metric == Metric::Time
            && row.tasks > 1
            && row.measured()
    };
    let rows: Vec<&Row> = results.rows.iter().filter(here).collect();
    let tasks: BTreeSet<u32> = rows.iter().map(|row| row.tasks).collect();
    let sizes: BTreeSet<u64> = rows.iter().map(|row| row.bytes).collect();
    let at = |tasks: u32, size: u64| {
        let same = move |row: &&&Row| (row.tasks, row.bytes) == (tasks, size);
        rows.iter().filter(same)
    };
    let cell = |environment: &str, tasks: u32, size: u64| {
        let fastest = at(tasks, size).map(|row| row.median).reduce(f64::min)?;
        let mine = at(tasks, size).find(|row| row.environment == environment)?;
        let loss = (mine.median / fastest - 1.0) * 100.0;
        Some(format!("{loss:.1} %"))
    };
    let part = |size: u64| {
        let lines = results.environments.iter().filter_map(|one| {
            let cells = tasks.iter().map(|tasks| cell(&one.name, *tasks, size));
            let cells: Vec<Option<String>> = cells.collect();
            let any = cells.iter().any(Option::is_some);
            let shown = cells
                .into_iter()
                .map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
            any.then(|| (format!("today, {}", one.name), shown.collect()))
        });
        Part {
            title: operations::described_size(operation, size).unwrap_or_default(),
            lines: lines.collect(),
        }
    };
    let slaves = |tasks: &u32| match tasks - 1 {
        1 => "1 slave".to_owned(),
        slaves => format!("{slaves} slaves"),
    };
    Layout {
        paper: SUITE,
        number: format!("Figure {}", run.number),
        title: title(
            &run.number.to_string(),
            run.what,
            "more time than the fastest library, %",
        ),
        columns: tasks.iter().map(slaves).collect(),
        parts: sizes.into_iter().map(part).collect(),
        answers: vec![run.then.to_owned()],
    }
}

/// Returns the row of this suite at a point.
fn row<'a>(
    results: &'a Results,
    environment: &'a str,
    operation: &str,
    bytes: u64,
) -> Option<&'a Row> {
    results.rows_of(environment).find(|row| {
        (row.suite.as_str(), row.operation.as_str(), row.bytes) == (SUITE, operation, bytes)
            && row.measured()
    })
}

/// Returns the milliseconds in which a message is sent and another one received. For an echo test that is the whole
/// round trip.
fn there_and_back(row: &Row) -> f64 {
    match row.metric {
        Metric::OneWay => row.median * 2.0 / 1e3,
        _ => row.median / 1e3,
    }
}

fn time(results: &Results, environment: &str, beginning: &str, element: usize) -> Option<f64> {
    let (ending, bytes, _) = ELEMENTS[element];
    let row = row(results, environment, &format!("{beginning}{ending}"), bytes)?;
    Some(there_and_back(row))
}

/// Returns the figures for which something was raced.
pub fn layouts(results: &Results) -> Vec<Layout> {
    let all = [
        figure(
            results,
            "5",
            "blocking transmission",
            &BLOCKING,
            blocking(results),
        ),
        figure(
            results,
            "6",
            "blocking transmission with packing",
            &PACKED,
            packed(results),
        ),
        figure(
            results,
            "7",
            "asynchronous transmission",
            &ASYNCHRONOUS,
            asynchronous(results),
        ),
        losses(results, &RUNS[0]),
        losses(results, &RUNS[1]),
        losses(results, &RUNS[2]),
        netpipe(results),
    ];
    let raced = |layout: &Layout| !layout.parts.is_empty();
    all.into_iter().filter(raced).collect()
}

fn title(number: &str, what: &str, unit: &str) -> String {
    format!("Figure {number} of Maniezzo and Sanna: {what}, {unit}")
}

/// Returns a histogram of the paper: a line for each environment.
fn figure(
    results: &Results,
    number_of_it: &str,
    what: &str,
    kinds: &[(&str, &str)],
    answers: Vec<String>,
) -> Layout {
    let cells = |environment: &str, beginning: &str| -> Vec<Option<f64>> {
        (0..ELEMENTS.len())
            .map(|element| time(results, environment, beginning, element))
            .collect()
    };
    let part = |(beginning, what): &(&str, &str)| {
        let lines = results.environments.iter().filter_map(|one| {
            let cells = cells(&one.name, beginning);
            cells.iter().any(Option::is_some).then(|| {
                let shown = cells
                    .into_iter()
                    .map(|cell| cell.map_or("-".to_owned(), number));
                (one.name.clone(), shown.collect())
            })
        });
        Part {
            title: (*what).to_owned(),
            lines: lines.collect(),
        }
    };
    let parts = kinds.iter().map(part);
    Layout {
        paper: SUITE,
        number: format!("Figure {number_of_it}"),
        title: title(number_of_it, what, "round trip, ms"),
        columns: ELEMENTS.map(|(_, _, head)| head.to_owned()).to_vec(),
        parts: parts.filter(|part| !part.lines.is_empty()).collect(),
        answers,
    }
}

/// Returns sentences that compare PVM, and Regatta as PVM, with MPICH today. Environments that were not raced have
/// none.
fn today(results: &Results, beginning: &str, element: usize) -> Vec<String> {
    let mpich = time(results, mpich::NAME, beginning, element);
    let against = |environment: &str| {
        let share = percent(time(results, environment, beginning, element)?, mpich?);
        Some(format!("{environment} takes {share} time than mpich"))
    };
    [pvm::NAME, regatta_pvm::NAME]
        .into_iter()
        .filter_map(against)
        .collect()
}

/// Returns a sentence about the paper's figures and today's.
fn answer(then: &str, today: &[String]) -> Option<String> {
    (!today.is_empty()).then(|| format!("{then}; today {}.", enumerated(today)))
}

fn blocking(results: &Results) -> Vec<String> {
    let beginning = BLOCKING[0].0;
    let then = [
        "8M int: then PVM took 4.3 % less time than MPICH",
        "60M char: then PVM and MPICH took the same time within 1 %",
    ];
    let answers = then.into_iter().zip([1, 0]);
    answers
        .filter_map(|(then, element)| answer(then, &today(results, beginning, element)))
        .collect()
}

fn packed(results: &Results) -> Vec<String> {
    let then =
        "60M char: then PVM, which sent in place, was up to 26.4 % better than MPICH, which packed";
    let mpich = time(results, mpich::NAME, PACKED[1].0, 0);
    let against = |environment: &str| {
        let share = percent(time(results, environment, PACKED[0].0, 0)?, mpich?);
        Some(format!("{environment} takes {share} time than mpich"))
    };
    let today: Vec<String> = [pvm::NAME, regatta_pvm::NAME]
        .into_iter()
        .filter_map(against)
        .collect();
    answer(then, &today).into_iter().collect()
}

fn asynchronous(results: &Results) -> Vec<String> {
    let then = "60M char: then PVM took 23.3 % less time than MPICH";
    let today = today(results, ASYNCHRONOUS[0].0, 0);
    answer(then, &today).into_iter().collect()
}

/// Returns the throughput by size, with a column for each environment.
fn netpipe(results: &Results) -> Layout {
    let megabits = |row: &Row| row.bytes as f64 * 8.0 / row.median;
    let rate = |environment: &str, operation: &str, bytes: u64| {
        row(results, environment, operation, bytes).map(megabits)
    };
    let all = || results.environments.iter().map(|one| one.name.as_str());
    let has = |name: &&str| {
        let mut kinds = NETPIPE.iter();
        kinds.any(|(operation, _)| {
            FIGURE_11_BYTES
                .iter()
                .any(|&bytes| rate(name, operation, bytes).is_some())
        })
    };
    let names: Vec<&str> = all().filter(has).collect();
    let part = |(operation, what): &(&str, &str)| {
        let lines = FIGURE_11_BYTES.iter().filter_map(|&bytes| {
            let rates: Vec<Option<f64>> = names
                .iter()
                .map(|name| rate(name, operation, bytes))
                .collect();
            rates.iter().any(Option::is_some).then(|| {
                let shown = rates
                    .into_iter()
                    .map(|rate| rate.map_or("-".to_owned(), number));
                (crate::table::size(bytes), shown.collect())
            })
        });
        Part {
            title: (*what).to_owned(),
            lines: lines.collect(),
        }
    };
    let parts = NETPIPE.iter().map(part);
    Layout {
        paper: SUITE,
        number: "Figure 11".to_owned(),
        title: title("11", "NetPIPE", "Mbit/s by bytes"),
        columns: names.iter().map(|name| (*name).to_owned()).collect(),
        parts: parts.filter(|part| !part.lines.is_empty()).collect(),
        answers: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{results, row};

    fn in_suite(operation: &str, environment: &str, bytes: u64, us: f64, metric: Metric) -> Row {
        Row {
            suite: SUITE.to_owned(),
            metric,
            ..row(operation, environment, 2, bytes, us)
        }
    }

    #[test]
    fn sizes_are_netpipe_s() {
        let first = [1, 2, 3, 4, 6, 8, 12, 13, 16, 19, 21, 24, 27, 29, 32, 35];
        assert_eq!(perturbed_sizes()[..first.len()], first);
        assert_eq!(sizes()[..9], [1, 2, 3, 4, 6, 8, 12, 16, 24]);
        assert_eq!(sizes().last(), Some(&(8 << 20)));
        assert!(FIGURE_11_BYTES.iter().all(|size| sizes().contains(size)));
    }

    #[test]
    fn every_point_of_the_figures_is_an_operation() {
        let places = places();
        assert_eq!(places.len(), 6 * ELEMENTS.len() + NETPIPE.len());
        for place in places {
            let fitting = place.operation.fitting(&place.bytes, 2, u64::MAX);
            assert_eq!(fitting, place.bytes, "{:?}", place.operation);
        }
    }

    #[test]
    fn an_echo_counts_both_ways_and_an_exchange_once() {
        let char = ELEMENTS[0].1;
        let results = results(vec![
            in_suite("ping-pong-blocking", "mpich", char, 5_000.0, Metric::OneWay),
            in_suite("ping-pong-blocking", "pvm", char, 10_000.0, Metric::OneWay),
            in_suite("exchange-isend", "mpich", char, 5_000.0, Metric::Time),
        ]);
        let layouts = layouts(&results);
        let numbers: Vec<&str> = layouts
            .iter()
            .map(|layout| layout.title.split(' ').nth(1).unwrap_or_default())
            .collect();
        assert_eq!(numbers, ["5", "7"]);
        let of_mpich = |layout: &Layout| layout.parts[0].lines[0].1[0].clone();
        assert_eq!(of_mpich(&layouts[0]), "10.00");
        assert_eq!(of_mpich(&layouts[1]), "5.00");
        assert_eq!(
            layouts[0].answers,
            [
                "60M char: then PVM and MPICH took the same time within 1 %; today pvm takes 100.0 % more time than mpich."
            ]
        );
    }

    /// The fastest environment of today takes the place of mpiGAMMA.
    #[test]
    fn the_loss_of_an_application_is_against_the_fastest_library() {
        let of = |environment: &str, tasks: u32, us: f64| Row {
            tasks,
            ..in_suite("ribbit", environment, 800 * 600, us, Metric::Time)
        };
        let layouts = layouts(&results(vec![
            of("mpich", 2, 1.2e6),
            of("regatta-pvm", 2, 1.0e6),
            of("regatta-pvm", 8, 1.1e6),
        ]));
        let [layout] = &layouts[..] else {
            panic!("one figure: {layouts:?}");
        };
        assert_eq!(layout.number, "Figure 8");
        assert_eq!(layout.columns, ["1 slave", "7 slaves"]);
        let expected = [
            ("today, mpich", ["20.0 %", "-"]),
            ("today, regatta-pvm", ["0.0 %", "0.0 %"]),
        ];
        let expected =
            expected.map(|(name, cells)| (name.to_owned(), cells.map(str::to_owned).to_vec()));
        assert_eq!(layout.parts[0].lines, expected);
        assert!(layout.answers[0].contains("10.8 %"));
    }

    #[test]
    fn the_problems_of_its_applications_are_there() {
        for place in applications() {
            for size in place.bytes {
                let known = operations::described_size(place.operation.name, size);
                assert!(known.is_some_and(
                    |name| !name.starts_with(&size.to_string()) || place.operation.name == "md"
                ));
            }
        }
    }

    #[test]
    fn netpipe_is_shown_in_bits() {
        let echo = in_suite("netpipe", "mpich", 1 << 20, 1000.0, Metric::OneWay);
        let layouts = layouts(&results(vec![echo]));
        assert_eq!(layouts[0].columns, ["mpich"]);
        let lines = &layouts[0].parts[0].lines;
        assert_eq!(lines[..], [("1 Mi".to_owned(), vec!["8389".to_owned()])]);
    }
}
