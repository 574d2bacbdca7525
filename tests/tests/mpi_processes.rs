//! Processes of MPI that start others, and connect to others.

use regatta_tests::mpi;

#[test]
fn processes_start_others() {
    mpi::play("processes", 1, "spawn");
    mpi::play("processes", 2, "spawn");
    mpi::play("processes", 2, "spawn_several");
}

#[test]
fn what_cannot_be_started_is_an_error_of_all() {
    mpi::play("processes", 2, "spawn_nothing");
}

#[test]
fn processes_connect_by_ports_and_sockets() {
    mpi::play("processes", 2, "ports");
    mpi::play("processes", 4, "ports");
    mpi::play("processes", 2, "join");
}
