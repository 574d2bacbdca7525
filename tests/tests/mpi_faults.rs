//! Programs of MPI go on after a process has failed.

use regatta_tests::{Job, mpi};

#[test]
fn the_survivors_make_a_smaller_communicator() {
    for processes in [2, 4] {
        Job::of(processes, &mpi::program("faults"), &["shrink"])
            .option("--on-failure=continue")
            .run()
            .ended_with(128 + 9);
    }
}
