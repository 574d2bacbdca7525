//! The environment of MPI programs: versions, memory, info objects, errors, sessions and finalization.

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

/// Runs a scenario of sessions with one process and with several, on one host and on two.
fn sessions(scenario: &str) {
    let program = mpi::program("sessions");
    for (processes, hosts) in [(1, None), (3, None), (3, Some("alpha:2,beta:1"))] {
        let arguments = [scenario, &processes.to_string()];
        let job = Job::of(processes, &program, &arguments);
        let job = hosts.into_iter().fold(job, |job, hosts| job.across(hosts));
        job.run().passed();
    }
}

#[test]
fn the_first_session_may_begin_after_the_world_has_ended() {
    sessions("later");
}

#[test]
fn sessions_need_no_world() {
    for scenario in ["alone", "beside"] {
        sessions(scenario);
    }
}
