//! Windows of MPI: memory that other processes access, on one host and between hosts.

use regatta_tests::mpi::{play, program};
use regatta_tests::{Ended, Job};

/// Runs a scenario on two hosts with two processes each.
fn across(name: &str, scenario: &str) -> Ended {
    Job::of(4, &program(name), &[scenario])
        .across("alpha:2,beta:2")
        .run()
        .passed()
}

/// Runs a scenario with one process, with several on one host, and between hosts.
fn everywhere(scenario: &str) {
    everywhere_of("windows", scenario);
}

fn everywhere_of(name: &str, scenario: &str) {
    for processes in [1, 2, 4] {
        play(name, processes, scenario);
    }
    across(name, scenario);
}

#[test]
fn many_windows_are_open_at_a_time() {
    everywhere("many");
}

#[test]
fn fences_separate_accesses() {
    everywhere("fences");
}

#[test]
fn the_memory_of_a_process_whose_first_thread_has_left_is_reached() {
    Job::of(2, &program("first_thread"), &[]).run().passed();
}

#[test]
fn targets_post_and_origins_start() {
    everywhere("posts");
}

#[test]
fn a_lock_keeps_others_out() {
    everywhere("locks");
}

#[test]
fn no_accumulate_of_many_at_once_is_lost() {
    everywhere("atomics");
}

#[test]
fn operators_combine_and_replace() {
    everywhere("operators");
}

#[test]
fn layouts_are_moved_on_both_sides() {
    everywhere("layouts");
}

#[test]
fn elements_in_many_blocks_are_moved_and_nothing_between_them() {
    everywhere_of("scattered", "apart");
    everywhere_of("scattered", "large");
    everywhere_of("scattered", "attached");
}

#[test]
fn accumulates_of_many_blocks_are_one_step() {
    everywhere_of("scattered", "together");
}

#[test]
fn a_target_that_makes_no_call_is_written_in_many_blocks() {
    play("scattered", 2, "unaided");
    play("scattered", 4, "unaided");
    across("scattered", "unaided");
}

#[test]
fn a_target_that_has_died_is_an_error_of_requests_to_it() {
    for processes in [2, 4] {
        Job::of(processes, &program("scattered"), &["gone"])
            .option("--on-failure=continue")
            .run()
            .ended_with(128 + 9);
    }
}

#[test]
fn slots_of_a_process_that_has_died_in_requests_are_used_by_others() {
    Job::of(3, &program("scattered"), &["abandoned"])
        .option("--on-failure=continue")
        .run()
        .ended_with(128 + 9);
}

#[test]
fn long_transfers_arrive() {
    everywhere("large");
}

#[test]
fn processes_of_a_host_share_memory() {
    for processes in [1, 2, 4] {
        play("windows", processes, "shared");
    }
}

#[test]
fn windows_have_attributes_names_hints_and_handlers() {
    everywhere("facts");
}

#[test]
fn bad_arguments_have_the_standards_classes() {
    everywhere("mistakes");
}

#[test]
fn nobody_waits_for_a_process_whose_arguments_are_wrong() {
    everywhere_of("window_mistakes", "arguments");
}

#[test]
fn nobody_waits_for_a_host_or_a_process_without_memory_for_a_window() {
    everywhere_of("window_mistakes", "memory");
}

#[test]
fn nobody_waits_for_a_process_that_cannot_serve_its_memory() {
    across("window_mistakes", "service");
}

#[test]
fn a_request_that_cannot_be_received_is_an_error_and_the_next_one_is_served() {
    across("window_mistakes", "unreceived");
}

#[test]
fn nobody_waits_for_a_process_that_cannot_free_a_window() {
    everywhere_of("window_mistakes", "ending");
}

#[test]
fn nobody_waits_for_a_process_whose_puts_have_failed() {
    across("window_mistakes", "displaced");
}

#[test]
fn a_target_does_not_wait_for_an_origin_that_misses_another_target() {
    Job::of(3, &program("window_mistakes"), &["absent"])
        .option("--on-failure=continue")
        .run()
        .ended_with(128 + 9);
}

#[test]
fn a_lock_whose_holder_has_died_is_an_error() {
    for processes in [2, 4] {
        Job::of(processes, &program("windows"), &["dead_holder"])
            .option("--on-failure=continue")
            .run()
            .ended_with(128 + 9);
    }
    Job::of(4, &program("windows"), &["dead_holder"])
        .across("alpha:2,beta:2")
        .option("--on-failure=continue")
        .run()
        .ended_with(128 + 9);
}
