//! pi: each task integrates its share of 4 / (1 + x^2) from 0 to 1. An allreduce adds the shares.
#![forbid(unsafe_code)]

use std::f64::consts::PI;

use regatta::Sum;

const STEPS: usize = 1_000_000;

fn main() -> regatta::Result<()> {
    let task = regatta::init()?;
    let world = task.world();
    let (rank, size) = (world.rank(), world.size());

    // The steps are distributed round-robin: this task takes every size-th step.
    let mut share = 0.0;
    for i in (rank..STEPS).step_by(size) {
        let x = (i as f64 + 0.5) / STEPS as f64;
        share += 4.0 / (1.0 + x * x) / STEPS as f64;
    }
    // Adds the shares of all tasks. Every task gets the result.
    let mut pi = [0.0];
    world.allreduce(&[share], &mut pi, Sum)?;

    println!("task {rank} of {size}: pi is about {:.9}", pi[0]);
    assert!((pi[0] - PI).abs() <= 1e-9);
    Ok(())
}
