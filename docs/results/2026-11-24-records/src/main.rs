//! Encrypted connections over loopback TCP, one against the other: Regatta's, rustls' unbuffered, Noise, and bare sockets.
//!
//! Two threads, each bound to a core of its own, go through one plan. In every round each contestant has every measure once, and the order
//! of the contestants changes from round to round.

mod measure;
mod noise;
mod ours;
mod table;
mod tls;
mod wire;

use std::io;
use std::time::Instant;

use measure::{MEASURES, Side};
use rustix::thread::{CpuSet, sched_setaffinity};
use wire::{Connect, Contestant};

/// The secret that both sides share, in place of a job's key.
pub const KEY: [u8; 32] = [7; 32];
/// Rounds that count, and before them those in which windows and caches find their sizes.
const ROUNDS: usize = 100;
const WARM_UP: usize = 3;

fn contestants() -> io::Result<Vec<Contestant>> {
    Ok(vec![
        ours::contestant()?,
        tls::contestant()?,
        noise::contestant("Noise, longest messages", noise::LONGEST_PLAIN)?,
        noise::contestant("Noise, 16 KiB", 16 << 10)?,
        wire::contestant()?,
    ])
}

/// Each number below `all`, in the order of that round: nobody always comes after the same one.
fn order(round: usize, all: usize) -> impl Iterator<Item = usize> {
    (0..all).map(move |at| match round % 2 {
        0 => (at + round / 2) % all,
        _ => (all - at + round / 2) % all,
    })
}

fn bind(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    if sched_setaffinity(None, &cores).is_err() {
        eprintln!("this thread cannot be bound to core {core}");
    }
}

fn answer(accepts: Vec<Connect>) -> io::Result<()> {
    bind(1);
    let all = accepts.len();
    let mut side = Side::new(accepts)?;
    for round in 0..WARM_UP + ROUNDS {
        for measure in &MEASURES {
            for who in order(round, all) {
                side.answer(who, measure)?;
            }
        }
    }
    Ok(())
}

fn ask(calls: Vec<Connect>) -> io::Result<table::Rounds> {
    bind(0);
    let all = calls.len();
    let mut side = Side::new(calls)?;
    let mut rounds = vec![vec![Vec::new(); all]; MEASURES.len()];
    for round in 0..WARM_UP + ROUNDS {
        for (measure, rounds) in MEASURES.iter().zip(&mut rounds) {
            for who in order(round, all) {
                let mut seconds = side.ask(who, measure)?;
                if round >= WARM_UP {
                    rounds[who].push(table::median(&mut seconds));
                }
            }
        }
    }
    match side.is_whole() {
        true => Ok(rounds),
        false => Err(io::Error::other("bytes came back changed")),
    }
}

fn main() -> io::Result<()> {
    let start = Instant::now();
    let (mut names, mut calls, mut accepts) = (vec![], vec![], vec![]);
    for one in contestants()? {
        names.push(one.name);
        calls.push(one.call);
        accepts.push(one.accept);
    }
    let callee = std::thread::spawn(move || answer(accepts));
    let rounds = ask(calls)?;
    callee.join().map_err(wire::other)??;
    table::print(&names, &rounds);
    println!("\n{ROUNDS} rounds, {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
