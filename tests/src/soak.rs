//! The soak: a fleet (`tests/programs/soak.c`) sends and receives in all ways there are, while all kinds of faults befall it
//! ([`fleet`](crate::fleet)). Tasks that live must get everything, once, in order and whole.
//!
//! `make soak` runs it for ten minutes on eight hosts; the tests run a short form of the same.

use crate::fleet::{Blows, Fleet, Program};
use crate::programs;

const PROGRAM: Program = Program {
    name: "soak",
    is_killed_in_init: true,
    compile: || programs::program_of("soak", &["soak", "soak_worker", "fleet"]),
};

/// Runs it to its end; returns what was done, and the fleet's own words. Panics if anything got lost or was left.
pub fn run(fleet: &Fleet, tell: &mut dyn FnMut(&str)) -> (Blows, String) {
    let (blows, said) = fleet.run(PROGRAM, tell);
    assert!(
        said.contains("lost 0, doubled 0, out of order 0, damaged 0"),
        "{said}"
    );
    (blows, said)
}
