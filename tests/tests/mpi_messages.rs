//! Messages of MPI: all modes of sends, all ways to complete requests, probes, and bad arguments.

use regatta_tests::mpi::play;

#[test]
fn every_mode_of_send_is_received() {
    play("messages", 2, "modes");
}

#[test]
fn requests_are_completed_in_all_ways() {
    play("messages", 1, "completion");
    play("messages", 2, "completion");
    play("messages", 4, "completion");
}

#[test]
fn persistent_requests_are_started_again() {
    play("messages", 1, "persistent");
    play("messages", 2, "persistent");
}

#[test]
fn probes_see_messages_and_matched_ones_take_them() {
    play("messages", 2, "probes");
}

#[test]
fn exchanges_send_and_receive() {
    play("messages", 1, "exchanges");
    play("messages", 2, "exchanges");
}

#[test]
fn generalized_requests_are_completed_by_the_program() {
    play("messages", 1, "generalized");
}

#[test]
fn receives_are_cancelled_and_requests_freed() {
    play("messages", 2, "given_up");
}

#[test]
fn bad_arguments_have_the_standards_classes() {
    play("messages", 1, "mistakes");
    play("messages", 2, "mistakes");
}
