//! `make chaos`: ten minutes on eight hosts, or as many seconds, hosts and workers of each as are given; with `--mpi` over MPI.

use regatta_tests::chaos;
use regatta_tests::fleet::{Fleet, MPI};

fn main() {
    let run = match std::env::args().any(|word| word == MPI) {
        true => chaos::run_over_mpi,
        false => chaos::run,
    };
    Fleet::from_arguments().show("chaos", run);
}
