//! MPI programs go on after a process has failed.

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

#[test]
fn an_abort_ends_all_processes_with_its_code() {
    for processes in [1, 3] {
        Job::of(processes, &mpi::program("faults"), &["abort"])
            .run()
            .ended_with(7)
            .said("MPI_Abort is called with code 7");
    }
}

/// A program may call `MPI_Abort` with code 0 to end all processes although nothing is wrong.
#[test]
fn an_abort_with_code_0_ends_all_processes_with_status_0() {
    for processes in [1, 3] {
        Job::of(processes, &mpi::program("faults"), &["abort-well"])
            .run()
            .ended_with(0)
            .said("MPI_Abort is called with code 0");
    }
}

#[test]
fn an_error_that_nobody_handles_ends_the_job_and_says_which_argument_was_wrong() {
    Job::of(3, &mpi::program("faults"), &["fatal"])
        .run()
        .ended_with(6)
        .said("MPI_Send: the destination is 3; ranks here are 0 to 2");
}

#[test]
fn a_communicator_of_a_group_with_a_failed_member_is_an_error_of_all() {
    for processes in [2, 4] {
        Job::of(processes, &mpi::program("faults"), &["from-group"])
            .option("--on-failure=continue")
            .run()
            .ended_with(128 + 9);
    }
}

#[test]
fn an_error_handler_is_replaced_while_errors_are_handled() {
    Job::of(1, &mpi::program("faults"), &["replacing"])
        .run()
        .passed();
}

#[test]
fn receives_that_are_cancelled_and_freed_leave_nothing() {
    Job::of(1, &mpi::program("faults"), &["freed"])
        .run()
        .passed();
}
