//! Messages of MPI: all send modes, all ways to complete requests, probes, and invalid arguments.

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

#[test]
fn threads_complete_many_requests_in_all_ways() {
    play("requests", 2, "exchanges");
}

#[test]
fn a_place_that_another_thread_has_taken_again_is_left_alone() {
    play("requests", 1, "places");
}

#[test]
fn an_operation_that_another_thread_takes_on_is_waited_for() {
    play("requests", 2, "staged_operation");
}

#[test]
fn a_request_is_cancelled_while_a_thread_waits_for_it() {
    play("requests", 1, "cancelled_while_awaited");
}

#[test]
fn a_partition_arrives_while_a_thread_waits_for_all() {
    play("requests", 2, "arrived_while_awaited");
}

#[test]
fn what_a_test_has_found_complete_it_completes() {
    play("requests", 1, "tested_beside_looks");
}

#[test]
fn a_program_has_channels_that_the_interface_does_not_use() {
    play("requests", 1, "channels");
}

#[test]
fn a_session_allows_threads_that_the_start_did_not() {
    play("requests", 1, "session_threads");
}

#[test]
fn a_circle_of_senders_is_told_to_the_handler_of_its_communicator() {
    play("requests", 2, "circle");
}

#[test]
fn a_length_that_is_no_number_is_an_error() {
    play("requests", 1, "lengths");
}

#[test]
fn a_request_without_a_world_has_a_status() {
    play("requests", 1, "session_alone");
}
