//! workers: task 0 distributes ranges of numbers, and the other tasks count the primes in them. A worker
//! that is done gets the next range, so fast workers do more. Alone, task 0 does all the work itself.
#![forbid(unsafe_code)]

use regatta::{Group, Source, TagMatch};

const RANGE: u32 = 1;
const STOP: u32 = 2;
const COUNT: u32 = 3;
const LIMIT: u64 = 20_000;
const EACH: u64 = 500;
const PRIMES: u64 = 2262;

fn primes_from(from: u64) -> u64 {
    let is_prime = |n: u64| {
        (2..)
            .take_while(|d| d * d <= n)
            .all(|d| !n.is_multiple_of(d))
    };
    (from.max(2)..from + EACH).filter(|&n| is_prime(n)).count() as u64
}

fn master(world: &Group, workers: usize) -> regatta::Result<u64> {
    let mut ranges = (0..LIMIT).step_by(EACH as usize);
    if workers == 0 {
        return Ok(ranges.map(primes_from).sum());
    }
    // Sends the next range, or STOP. Returns whether there was a range left.
    let mut occupy = |worker| match ranges.next() {
        Some(from) => world.send(&from, worker, RANGE).map(|()| true),
        None => world.send(&[0u64; 0], worker, STOP).map(|()| false),
    };
    // Sends each worker its first range, or STOP if there is none left.
    let (mut busy, mut total) = (0, 0);
    for worker in 1..=workers {
        busy += occupy(worker)? as usize;
    }
    while busy > 0 {
        let mut count = 0u64;
        let status = world.recv(&mut count, Source::Any, COUNT)?;
        total += count;
        if !occupy(status.source.expect("a worker"))? {
            busy -= 1;
        }
    }
    Ok(total)
}

fn worker(world: &Group) -> regatta::Result<()> {
    loop {
        let mut from = 0u64;
        let status = world.recv(&mut from, 0, TagMatch::Any)?;
        if status.tag == STOP {
            return Ok(());
        }
        world.send(&primes_from(from), 0, COUNT)?;
    }
}

fn main() -> regatta::Result<()> {
    let task = regatta::init()?;
    let world = task.world();
    if world.rank() == 0 {
        let total = master(&world, world.size() - 1)?;
        println!("{total} primes below {LIMIT}");
        assert_eq!(total, PRIMES);
    } else {
        worker(&world)?;
    }
    Ok(())
}
