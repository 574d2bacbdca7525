//! The chaos run: a fleet (`tests/programs/chaos.c`) does all kinds of things in groups, while all kinds of faults befall it ([`fleet`](crate::fleet)),
//! and its workers revoke their groups, leave, and end themselves. The survivors shrink their group and go on. Every error has the right class, all
//! survivors have the same groups, nobody hangs.
//!
//! `make chaos` runs it for ten minutes on eight hosts; the tests run a short form of the same.

use crate::fleet::{Blows, Fleet, Program};
use crate::{mpi, programs};

const OWN: Program = Program {
    name: "chaos",
    compile: || {
        let files = ["chaos", "chaos_worker", "chaos_rounds", "fleet"];
        programs::program_of("chaos", &files)
    },
    is_killed_in_init: true,
};
/// The program of the same files, with MPI's calls in place of Regatta's own.
const OVER_MPI: Program = Program {
    name: "chaos",
    compile: || {
        let files = ["chaos", "chaos_worker", "chaos_rounds", "chaos_front"];
        let files = files.map(|file| format!("mpi/{file}"));
        let files: Vec<&str> = files.iter().map(String::as_str).chain(["fleet"]).collect();
        mpi::program_of("mpi_chaos", &files)
    },
    is_killed_in_init: false,
};

/// Runs it to its end; returns what was done, and the fleet's own words. Panics if anything was wrong or was left.
pub fn run(fleet: &Fleet, tell: &mut dyn FnMut(&str)) -> (Blows, String) {
    run_program(OWN, fleet, tell)
}

/// As [`run`], with communicators of MPI for groups.
pub fn run_over_mpi(fleet: &Fleet, tell: &mut dyn FnMut(&str)) -> (Blows, String) {
    run_program(OVER_MPI, fleet, tell)
}

fn run_program(program: Program, fleet: &Fleet, tell: &mut dyn FnMut(&str)) -> (Blows, String) {
    let (blows, said) = fleet.run(program, tell);
    assert!(
        said.contains("mistakes 0, ended without a cause 0, wrongly called dead or left 0"),
        "{said}"
    );
    (blows, said)
}
