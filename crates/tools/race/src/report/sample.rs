//! A synthetic race with the shape of a real one, for tests and to look at the report.

use crate::operations::SIZES;
use crate::results::{Environment, Machine, Metric, OURS, Results, Row, SCHEMA, Setting};

/// The environments, each with its latency in us, and the bandwidth in GB/s that large messages reach.
const FIELD: [(&str, f64, f64); 6] = [
    ("regatta", 0.062, 38.0),
    ("openmpi", 0.101, 15.0),
    ("mpich", 0.78, 12.0),
    ("mpich-debian", 0.133, 11.0),
    ("pvm", 32.0, 1.1),
    ("limit", 0.053, 45.0),
];

/// Returns a row of suite `primitives`, with an interval of 2 % around `median`.
pub fn row(operation: &str, environment: &str, tasks: u32, bytes: u64, median: f64) -> Row {
    Row {
        suite: "primitives".into(),
        operation: operation.into(),
        environment: environment.into(),
        network: "local".into(),
        tasks,
        bytes,
        metric: Metric::Time,
        unit: "us".into(),
        median,
        ci95: [median * 0.98, median * 1.02],
        p99: median * 1.3,
        minimum: median * 0.95,
        samples: 400,
        launches: 10,
        path: "shared memory, eager".into(),
        flags: Vec::new(),
    }
}

/// Returns a whole race.
pub fn results() -> Results {
    let rows = FIELD
        .iter()
        .flat_map(|(name, latency, bandwidth)| rows(name, *latency, *bandwidth))
        .collect();
    let notes = vec!["mpich: its launcher needed --oversubscribe from 4 tasks on".into()];
    Results {
        schema: SCHEMA.into(),
        machine: machine(),
        environments: environments(),
        rows,
        ratios: Vec::new(),
        paired: Vec::new(),
        notes,
    }
}

/// Returns the race with only Regatta's rows, repeated with the name of another environment.
pub fn ours_again(environment: &str) -> Results {
    let mut results = results();
    results.rows.retain(|row| row.environment == OURS);
    let again = results.rows.iter().map(|row| Row {
        environment: environment.into(),
        ..row.clone()
    });
    let again: Vec<Row> = again.collect();
    results.rows.extend(again);
    results
}

fn machine() -> Machine {
    Machine {
        cpu: "Example CPU 9000 at 3.1 GHz".into(),
        cores: 2,
        threads_per_core: 1,
        caches: "L1d 48 KiB, L2 2 MiB, L3 260 MiB".into(),
        memory: 8 << 30,
        system: "Debian GNU/Linux 13".into(),
        kernel: "6.12.0".into(),
        virtual_machine: "kvm".into(),
        governor: String::new(),
        compiler: "gcc 14.2.0 -O2".into(),
        started: 1_795_215_960,
        seconds: 243.0,
        command: "race --quick".into(),
        seed: 42,
        clock_ns: 21.4,
        line_ns: 53.1,
        line_ns_range: [49.8, 61.0],
    }
}

fn environments() -> Vec<Environment> {
    let versions = [
        "0.1.0",
        "Open MPI v5.0.11, ident: 5.0.11",
        "5.0.2",
        "4.0.2",
        "3.4.6",
        "",
    ];
    FIELD
        .iter()
        .zip(versions)
        .map(|((name, ..), version)| Environment {
            name: (*name).into(),
            version: version.into(),
            library: format!("lib{name}.so"),
            settings: match *name {
                "openmpi" => vec![Setting {
                    setting: "--mca pml ob1 --mca btl self,sm".into(),
                    when: "always".into(),
                    reason: "8 B in 0.101 us instead of 0.118".into(),
                }],
                _ => Vec::new(),
            },
        })
        .collect()
}

/// Returns the rows of two tasks, at all sizes.
fn rows(name: &str, latency: f64, bandwidth: f64) -> Vec<Row> {
    let mut out = Vec::new();
    for &bytes in SIZES {
        // Large messages exceed the cache. At medium sizes the protocol changes.
        let cache = if bytes > 8 << 20 { 0.6 } else { 1.0 };
        let step = if bytes > 4 << 10 && name != "regatta" && name != "limit" {
            12.0 * latency
        } else {
            0.0
        };
        let one_way = latency + step + bytes as f64 / (bandwidth * cache) / 1e3;
        let mut pair = measured(Metric::OneWay, row("one-to-one", name, 2, bytes, one_way));
        pair.path = if bytes > 16 << 10 {
            "pipelined copy"
        } else {
            "ring"
        }
        .into();
        if bytes == 64 && name == "mpich" {
            pair.flags.push("unsteady-machine".into());
        }
        out.push(pair);
        if name == "limit" {
            out.push(row(
                "copy",
                name,
                2,
                bytes.max(8),
                bytes.max(8) as f64 / bandwidth / 1e3,
            ));
            continue;
        }
        out.push(row("exchange", name, 2, bytes, one_way * 1.15));
        for (operation, factor) in [
            ("broadcast", 1.1),
            ("concatenation", 1.4),
            ("complete-exchange", 1.5),
        ] {
            out.push(row(operation, name, 2, bytes, one_way * factor));
        }
        let rate = row(
            "message-rate",
            name,
            2,
            bytes,
            1e6 / (latency * 0.22 + bytes as f64 / bandwidth / 1e3),
        );
        out.extend((bytes > 0 && bytes < 64 << 10).then(|| measured(Metric::Rate, rate)));
    }
    out.extend(crowds(name, latency));
    out.extend(jobs(name, latency));
    out
}

/// Returns the rows of two and more tasks, at two sizes.
fn crowds(name: &str, latency: f64) -> Vec<Row> {
    let mut out = Vec::new();
    for tasks in [2_u32, 4, 8, 16, 32] {
        let n = f64::from(tasks);
        let crowd = if tasks > 2 {
            n * (0.4 + latency * latency.max(5.0))
        } else {
            1.3 * latency
        };
        let sized = [8, 1024]
            .map(|bytes| [("global-sum", bytes, 1.1), ("ring", bytes, 3.0)])
            .concat();
        let more = [8, 1024]
            .map(|bytes| ("broadcast", bytes, 1.2))
            .into_iter()
            .filter(|_| tasks > 2);
        for (operation, bytes, factor) in sized.into_iter().chain(more).chain([("barrier", 0, 1.0)])
        {
            let mut point = row(
                operation,
                name,
                tasks,
                bytes,
                crowd * factor * (1.0 + bytes as f64 / 4000.0),
            );
            point.suite = if tasks > 2 {
                "oversubscribed"
            } else {
                "primitives"
            }
            .into();
            if name == "pvm" && tasks == 32 {
                (point.launches, point.samples, point.median) = (0, 0, 0.0);
                point.flags.push("time-out".into());
            }
            out.push(point);
        }
    }
    out
}

/// Returns the rows of start-up, memory and processor time.
fn jobs(name: &str, latency: f64) -> Vec<Row> {
    if name == "limit" {
        return Vec::new();
    }
    let heavy = latency.min(1.0);
    let start = |tasks: u32| Row {
        suite: "start".into(),
        ..row(
            "join-leave",
            name,
            tasks,
            0,
            9_000.0 + 90_000.0 * heavy + f64::from(tasks) * 800.0,
        )
    };
    let memory = |operation, tasks, metric, median| Row {
        suite: "memory".into(),
        ..measured(metric, row(operation, name, tasks, 0, median))
    };
    vec![
        start(2),
        start(32),
        memory("idle", 32, Metric::Resident, 3_000.0 + 20_000.0 * heavy),
        memory("idle", 32, Metric::Share, 300.0 + 9_000.0 * heavy),
        memory(
            "blocked-receive",
            2,
            Metric::Cpu,
            if latency < 0.1 || name == "pvm" {
                0.0
            } else {
                100.0
            },
        ),
    ]
}

fn measured(metric: Metric, row: Row) -> Row {
    Row {
        metric,
        unit: metric.unit().into(),
        ..row
    }
}
