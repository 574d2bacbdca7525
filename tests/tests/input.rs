//! Invalid arguments return an error with a message, and change nothing (`tests/programs/input.c`).

use regatta_tests::Job;

fn input(scenario: &str) {
    Job::new(2, "input", &[scenario]).run().passed();
}

#[test]
fn ranks_that_nobody_has() {
    input("ranks");
}

#[test]
fn task_ids_that_nobody_has() {
    input("tids");
}

#[test]
fn a_pair_of_calls_of_which_one_is_wrong() {
    input("half-wrong");
}

#[test]
fn absurd_lengths() {
    input("lengths");
}

#[test]
fn null_where_memory_is_needed() {
    input("nulls");
}

#[test]
fn tags_that_are_none() {
    input("tags");
}

#[test]
fn messages_longer_than_the_buffer() {
    input("truncation");
}

#[test]
fn stale_and_made_up_handles() {
    input("handles");
}

#[test]
fn memory_that_is_not_to_be_had() {
    input("refused");
}

#[test]
fn types_and_groups_that_make_no_sense() {
    input("types");
}

#[test]
fn the_harness_sees_a_failure() {
    let ended = Job::new(2, "input", &["no such scenario"]).run();
    assert!(
        ended.status == 2 && ended.text.contains("FAIL"),
        "{}",
        ended.story()
    );
}
