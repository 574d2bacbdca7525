//! Receives of exactly the message that a probe has found, and tests of requests that do not complete them
//! (`tests/programs/matched.c`).

use regatta_tests::Job;

fn run(tasks: u32, scenario: &str) {
    Job::new(tasks, "matched", &[scenario]).run().passed();
}

#[test]
fn a_probed_message_is_seen_by_nothing_else() {
    run(2, "once");
}

#[test]
fn bad_arguments_leave_a_probed_message_and_one_of_nobody_is_empty() {
    run(2, "arguments");
}

#[test]
fn threads_that_probe_for_anything_receive_what_they_found() {
    run(3, "threads");
}

#[test]
fn a_sender_that_dies_before_its_message_came_ends_the_receive_of_it() {
    run(2, "death");
}

#[test]
fn a_look_at_a_request_leaves_it() {
    run(2, "look");
}
