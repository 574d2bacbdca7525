//! LogGP parameters of each environment and network, from the rows of a race between two tasks.
//!
//! The model (Alexandrov, Ionescu, Schauser and Scheiman, 1995): a message of `n` bytes takes `o` at its sender, `L` in
//! the network, `o` at its receiver, and `G` for each byte after the first. A task can send a message every `g`. A race
//! measures `L + 2o` by the smallest one-to-one, each `o` by the calls that send and receive, `g` by the message rate,
//! and `G` by the slope of long one-to-ones.

use std::fmt::Write as _;

use crate::operations;
use crate::results::{Metric, Results, Row};
use crate::table::{align, quantity};

/// Minimum size of the messages that determine `G`, in bytes. For longer messages the fixed cost is negligible.
const MIN_LONG_BYTES: u64 = 64 << 10;
/// Maximum size of a small message, in bytes.
const MAX_SMALL_BYTES: u64 = 64;
/// Minimum number of points for a slope. The slope of two points would have no error estimate.
const MIN_SLOPE_POINTS: usize = 3;

/// A parameter with its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The value, in the unit of its field.
    pub value: f64,
    /// The 95 % interval.
    pub ci95: [f64; 2],
}

/// The parameters of an environment on a network. A parameter is `None` if it was not raced, or at too few sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters<'a> {
    /// The environment.
    pub environment: &'a str,
    /// The network.
    pub network: &'a str,
    /// `L + 2o`: one-way time of the smallest message, us.
    pub one_way: Option<Value>,
    /// `o` of the call that sends a small message, us.
    pub send: Option<Value>,
    /// `o` of the call that receives a small message that has arrived, us.
    pub receive: Option<Value>,
    /// `g`: time between two small messages, us.
    pub gap: Option<Value>,
    /// `G`: time for each further byte of a long message, ns.
    pub gap_per_byte: Option<Value>,
}

impl Parameters<'_> {
    /// Returns `L`: the one-way time without the two calls, us. Returns `None` if these were not measured. Between near
    /// cores the calls overlap with the transfer, so `L` can be almost 0.
    pub fn latency(&self) -> Option<f64> {
        Some((self.one_way?.value - self.send?.value - self.receive?.value).max(0.0))
    }
}

/// Returns the parameters of all environments for which at least two are known.
pub fn fits(results: &Results) -> Vec<Parameters<'_>> {
    let of_two = |row: &&Row| row.tasks == 2 && row.measured();
    let rows: Vec<&Row> = results.rows.iter().filter(of_two).collect();
    let places = rows
        .iter()
        .map(|row| (row.environment.as_str(), row.network.as_str()));
    let fit = |(environment, network)| {
        let mine = |row: &&&Row| {
            (row.environment.as_str(), row.network.as_str()) == (environment, network)
        };
        let rows: Vec<&Row> = rows.iter().filter(mine).copied().collect();
        let fit = Parameters {
            environment,
            network,
            one_way: smallest(&rows, "one-to-one", Metric::OneWay),
            send: smallest(&rows, "one-to-one-send", Metric::Time),
            receive: smallest(&rows, "one-to-one-recv", Metric::Time),
            gap: smallest(&rows, "message-rate", Metric::Rate).map(inverse),
            gap_per_byte: slope(&rows),
        };
        let known = [
            fit.one_way,
            fit.send,
            fit.receive,
            fit.gap,
            fit.gap_per_byte,
        ];
        (known.iter().flatten().count() >= 2).then_some(fit)
    };
    operations::distinct(places)
        .into_iter()
        .filter_map(fit)
        .collect()
}

/// Returns the rows of an operation in one suite, since rows of turns and of launches are not comparable.
fn rows_of<'a>(rows: &[&'a Row], operation: &str) -> Vec<&'a Row> {
    let all = || {
        rows.iter()
            .copied()
            .filter(|row| row.operation == operation)
    };
    let suite = all().next().map(|row| &row.suite);
    all().filter(|row| Some(&row.suite) == suite).collect()
}

/// Returns the value of an operation at its smallest size, if that is a small message.
fn smallest(rows: &[&Row], operation: &str, metric: Metric) -> Option<Value> {
    let rows = rows_of(rows, operation);
    let here = rows
        .iter()
        .filter(|row| row.metric == metric && row.bytes <= MAX_SMALL_BYTES);
    let row = here.min_by_key(|row| row.bytes)?;
    Some(Value {
        value: row.median,
        ci95: row.ci95,
    })
}

/// Converts messages per second to microseconds per message.
fn inverse(rate: Value) -> Value {
    let [low, high] = rate.ci95;
    Value {
        value: 1e6 / rate.value,
        ci95: [1e6 / high, 1e6 / low],
    }
}

/// Returns the slope of the one-way time over the size of long messages, in ns per byte, by least squares. The error of
/// a time is proportional to the time, so each point is weighted by the inverse of its square.
fn slope(rows: &[&Row]) -> Option<Value> {
    let rows = rows_of(rows, "one-to-one");
    let long = rows
        .iter()
        .filter(|row| row.bytes >= MIN_LONG_BYTES && row.median > 0.0);
    let points: Vec<(f64, f64)> = long.map(|row| (row.bytes as f64, row.median)).collect();
    if points.len() < MIN_SLOPE_POINTS {
        return None;
    }
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|&(x, y)| of(x, y) / (y * y)).sum()
    };
    let (w, x, y) = (sum(&|_, _| 1.0), sum(&|x, _| x), sum(&|_, y| y));
    let (mean_x, mean_y) = (x / w, y / w);
    let spread = sum(&|x, _| (x - mean_x).powi(2));
    let slope = sum(&|x, y| (x - mean_x) * (y - mean_y)) / spread;
    let residual = sum(&|x, y| (y - mean_y - slope * (x - mean_x)).powi(2));
    let error = (residual / (points.len() - 2) as f64 / spread).sqrt();
    let ns = slope * 1e3;
    let wide = student_95(points.len() - 2) * error * 1e3;
    (slope > 0.0).then_some(Value {
        value: ns,
        ci95: [(ns - wide).max(0.0), ns + wide],
    })
}

/// Returns the factor of Student's t for a 95 % interval with this many degrees of freedom.
fn student_95(degrees: usize) -> f64 {
    const FACTORS: [f64; 10] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
    // From 11 on, within 1 % of the exact value.
    let beyond = || 1.96 + 2.5 / degrees as f64;
    degrees
        .checked_sub(1)
        .and_then(|at| FACTORS.get(at))
        .copied()
        .unwrap_or_else(beyond)
}

/// Returns the table for a terminal, which is empty for races that measure none of the parameters.
pub fn render(results: &Results) -> String {
    let fits = fits(results);
    if fits.is_empty() {
        return String::new();
    }
    let head = [
        "environment",
        "network",
        "L + 2o",
        "o send",
        "o receive",
        "L",
        "g",
        "G per KiB",
        "bandwidth",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for fit in &fits {
        lines.push(line(fit));
    }
    let mut text = String::from(
        "\nLogGP between two tasks: latency L and overhead o of a small message, gap g between two messages, G per byte of a long message; ± half of the 95 % interval\n\n",
    );
    text.push_str(&align(&lines));
    let _ = writeln!(
        text,
        "  -: not raced, or at too few sizes (one-to-one-send and -recv are in the suite ahmad-wu-1991)"
    );
    text
}

fn line(fit: &Parameters<'_>) -> Vec<String> {
    let time = |us| quantity(Metric::Time, us);
    let with_error = |value: Option<Value>, factor: f64| {
        value.map_or_else(
            || "-".to_owned(),
            |Value {
                 value,
                 ci95: [low, high],
             }| {
                let percent = (high - low) / 2.0 / value * 100.0;
                format!("{} ± {percent:.0} %", time(value * factor))
            },
        )
    };
    let bandwidth = fit
        .gap_per_byte
        .map(|gap| format!("{:.2} GB/s", 1.0 / gap.value));
    vec![
        fit.environment.to_owned(),
        fit.network.to_owned(),
        with_error(fit.one_way, 1.0),
        with_error(fit.send, 1.0),
        with_error(fit.receive, 1.0),
        fit.latency().map_or_else(|| "-".to_owned(), time),
        with_error(fit.gap, 1.0),
        // Converts ns per byte to us per 1024 bytes.
        with_error(fit.gap_per_byte, 1.024),
        bandwidth.unwrap_or_else(|| "-".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{results, row};

    fn rate(environment: &str, per_second: f64) -> Row {
        Row {
            metric: Metric::Rate,
            ..row("message-rate", environment, 2, 8, per_second)
        }
    }

    fn call(operation: &str, us: f64) -> Row {
        Row {
            metric: Metric::Time,
            ..row(operation, "regatta", 2, 40, us)
        }
    }

    /// Returns a race on a network of 1 us and 10 GB/s.
    fn race() -> Results {
        let long = [64 << 10, 256 << 10, 1 << 20, 4 << 20];
        let mut rows: Vec<Row> = long
            .iter()
            .map(|&bytes| row("one-to-one", "regatta", 2, bytes, 1.0 + bytes as f64 * 1e-4))
            .collect();
        rows.push(row("one-to-one", "regatta", 2, 8, 1.0));
        rows.push(rate("regatta", 4e6));
        rows.push(call("one-to-one-send", 0.2));
        rows.push(call("one-to-one-recv", 0.3));
        results(rows)
    }

    #[test]
    fn a_network_s_parameters_are_found_again() {
        let race = race();
        let fits = fits(&race);
        assert_eq!(fits.len(), 1);
        let fit = &fits[0];
        assert_eq!(fit.one_way.map(|one| one.value), Some(1.0));
        assert_eq!(fit.gap.map(|one| one.value), Some(0.25));
        let byte = fit.gap_per_byte.expect("four sizes").value;
        assert!((byte - 0.1).abs() < 1e-9, "{byte}");
        assert!((fit.latency().expect("both calls") - 0.5).abs() < 1e-9);
    }

    #[test]
    fn two_sizes_make_no_slope() {
        let rows = [64 << 10, 1 << 20].map(|bytes| row("one-to-one", "regatta", 2, bytes, 10.0));
        assert!(fits(&results(rows.to_vec())).is_empty());
    }

    #[test]
    fn the_table_has_a_bandwidth_and_an_error() {
        let text = render(&race());
        assert!(text.contains("10.00 GB/s"), "{text}");
        assert!(text.contains("1.00 us ± 1 %"), "{text}");
    }

    #[test]
    fn other_races_have_no_such_table() {
        assert_eq!(
            render(&results(vec![row("ring", "regatta", 4, 8, 1.0)])),
            ""
        );
    }
}
