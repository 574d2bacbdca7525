//! The soak run: a fleet (`tests/programs/soak.c`) sends and receives in all ways that Regatta has, while faults strike
//! hosts, links and processes ([`fleet`](crate::fleet)). Living tasks must receive every message, once, in order and
//! complete.
//!
//! `make soak` runs it for ten minutes on eight hosts. The tests run it for a shorter time.

use crate::fleet::{Blows, Fleet, Program};
use crate::programs;

const PROGRAM: Program = Program {
    name: "soak",
    is_killed_in_init: true,
    compile: || programs::program_of("soak", &["soak", "soak_worker", "fleet"]),
};

/// Runs the fleet to its end. Returns the faults that were inflicted and the fleet's output. Panics if a message was
/// lost or anything was left behind.
pub fn run(fleet: &Fleet, tell: &mut dyn FnMut(&str)) -> (Blows, String) {
    let (blows, said) = fleet.run(PROGRAM, tell);
    assert!(
        said.contains("lost 0, doubled 0, out of order 0, damaged 0"),
        "{said}"
    );
    (blows, said)
}
