//! The tables: medians with quartiles over the rounds, and how much longer each takes than ours in the round.

use crate::measure::{Kind, MEASURES};

/// The medians of all rounds, by measure and contestant.
pub type Rounds = Vec<Vec<Vec<f64>>>;

pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

fn row(name: &str, cells: impl Iterator<Item = String>) {
    let cells: Vec<_> = cells.collect();
    println!("| {name} | {} |", cells.join(" | "));
}

fn head(title: &str, names: &[&str]) {
    row(title, names.iter().map(|name| name.to_string()));
    row("---", names.iter().map(|_| "---".to_string()));
}

pub fn print(names: &[&str], rounds: &Rounds) {
    head("time, µs; streams: MB/s", names);
    for (measure, by_contestant) in MEASURES.iter().zip(rounds) {
        let cells = by_contestant.iter().map(|seconds| {
            let shown = seconds.iter().map(|&seconds| match measure.kind {
                Kind::Stream(bytes) => bytes as f64 / seconds / 1e6,
                _ => seconds * 1e6,
            });
            let [low, middle, high] = quartiles(shown.collect());
            let digits = usize::from(middle < 100.0);
            format!("{middle:.digits$} ({low:.digits$} to {high:.digits$})")
        });
        row(measure.name, cells);
    }
    println!();
    head("time, as multiple of ours", names);
    for (measure, by_contestant) in MEASURES.iter().zip(rounds) {
        let cells = by_contestant.iter().map(|seconds| {
            let ratios = seconds.iter().zip(&by_contestant[0]);
            let [low, middle, high] = quartiles(ratios.map(|(one, ours)| one / ours).collect());
            format!("{middle:.2} ({low:.2} to {high:.2})")
        });
        row(measure.name, cells);
    }
}
