//! A simulated fleet under churn: how long it takes until all hosts know of a change, and what that costs.
//!
//! `cargo run --release -p regatta-membership --example fleet -- [hosts] [seconds] [share of hosts that change per minute]`

#[path = "../tests/sim/mod.rs"]
mod sim;

use std::time::Instant;

use sim::rates::{churn, quantile};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: f64| {
        words
            .get(at)
            .map_or(default, |word| word.parse().expect("a number"))
    };
    let (hosts, time, share) = (
        number(0, 10_000.0) as usize,
        number(1, 20.0),
        number(2, 0.01),
    );
    let begun = Instant::now();
    let run = churn(1, hosts, share, sim::seconds(time));
    println!(
        "{hosts} hosts, {time} s, {} % change per minute: simulated in {:.0?}",
        share * 100.0,
        begun.elapsed()
    );
    println!(
        "{} deaths and arrivals, {} decisions on the roll",
        run.changes,
        run.epochs - 1
    );
    println!("seconds until known      median    99 %    most");
    for (what, times) in [
        ("a death, by the first", &run.first),
        ("a death, by 99 % of all", &run.most),
        ("a death, by the last", &run.all),
        ("an arrival, by 99 %", &run.arrivals),
        ("all, by a newcomer", &run.admissions),
    ] {
        println!(
            "{what:24} {:6.2} {:7.2} {:7.2}",
            quantile(times, 0.5),
            quantile(times, 0.99),
            quantile(times, 1.0)
        );
    }
    println!(
        "bytes per host and second {:.0}, datagrams {:.1}",
        run.bytes_per_second, run.datagrams_per_second
    );
    println!(
        "busiest host, bytes per second {:.0}",
        run.worst_bytes_per_second
    );
    println!(
        "suspicions seen {}, wrongly dead {}",
        run.suspected, run.wrongly_dead
    );
}
