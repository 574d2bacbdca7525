//! `make chaos`: runs for ten minutes on eight hosts, or with the given seconds, hosts and workers per host. `--mpi`
//! runs it over MPI.

use regatta_tests::chaos;
use regatta_tests::fleet::{Fleet, MPI};

fn main() {
    let run = match std::env::args().any(|word| word == MPI) {
        true => chaos::run_over_mpi,
        false => chaos::run,
    };
    Fleet::from_arguments().show("chaos", run);
}
