//! The surroundings of a program of MPI: versions, memory, hints, errors, sessions, and its end.

use regatta_tests::{Job, mpi};

#[test]
fn surroundings_are_as_the_standard_says() {
    for scenario in ["versions", "binary_interface", "memory", "hints"] {
        mpi::play("surroundings", 1, scenario);
    }
    mpi::play("surroundings", 2, "hints");
}

#[test]
fn errors_go_to_handlers_and_have_texts() {
    mpi::play("surroundings", 2, "handlers");
    mpi::play("surroundings", 1, "texts");
    mpi::play("surroundings", 1, "world_alone");
}

#[test]
fn the_end_deletes_the_attributes_of_the_process() {
    mpi::play("surroundings", 2, "end");
}

#[test]
fn sessions_need_no_world() {
    for scenario in ["alone", "beside"] {
        for processes in [1, 3] {
            let arguments = [scenario, &processes.to_string()];
            Job::of(processes, &mpi::program("sessions"), &arguments)
                .run()
                .passed();
        }
    }
}
