//! Wrong verdicts in an hour of virtual time, and the delay from a death to the last survivor's verdict: the tables of
//! the README.
//!
//! `cargo run --release -p regatta-membership --example verdicts` takes minutes. `tests/fleet.rs` has short forms of
//! both.

#[path = "../tests/sim/mod.rs"]
mod sim;

use std::time::Duration;

use sim::rates::{blame, quantile, verdict};

fn main() {
    for count in [2, 3, 8, 30] {
        for loss in [0.01, 0.05, 0.10] {
            let run = blame(5, count, loss, sim::seconds(3600.0));
            println!("{count:3} hosts, {:2.0} % lost: {run:?}", loss * 100.0);
        }
    }
    for (count, runs) in [(2, 200), (3, 200), (8, 200), (100, 100)] {
        let mut times: Vec<Duration> = (0..runs).filter_map(|seed| verdict(seed, count)).collect();
        times.sort();
        let [median, high, most] = [0.5, 0.99, 1.0].map(|share| quantile(&times, share));
        println!(
            "{count:4} hosts: {} of {runs}; median {median:.2} s, 99 % {high:.2} s, most {most:.2} s",
            times.len()
        );
    }
}
