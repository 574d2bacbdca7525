//! The chaos run: the workers of a fleet (`tests/programs/chaos.c`) use groups in many ways while faults strike hosts,
//! links and processes ([`fleet`](crate::fleet)). Workers also revoke their groups, leave and end themselves. The
//! survivors shrink their group and go on. Every error must have the right class, all survivors must agree on their
//! groups, and no task may hang.
//!
//! `make chaos` runs it for ten minutes on eight hosts. The tests run it for a shorter time.

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
/// The same program over MPI: its files are compiled with MPI's calls instead of Regatta's.
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

/// Runs the fleet to its end. Returns the faults that were inflicted and the fleet's output. Panics if a check failed
/// or anything was left behind.
pub fn run(fleet: &Fleet, tell: &mut dyn FnMut(&str)) -> (Blows, String) {
    run_program(OWN, fleet, tell)
}

/// Like [`run`], but over MPI, with communicators as groups.
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
