//! The memory of tasks that have exited is reused (`tests/programs/reuse.c`).

use regatta_tests::Job;

/// Starts and ends so many tasks that, if each of them cost a ring, a pipe or a block for good, the memory limit would
/// be exceeded many times over.
fn passers(what: &str) {
    let rounds = if cfg!(debug_assertions) { "100" } else { "400" };
    Job::new(1, "reuse", &["passers", what, rounds])
        .run()
        .passed();
}

#[test]
fn children_that_only_say_something_leave_nothing() {
    passers("s");
}

#[test]
fn children_that_only_hear_something_leave_nothing() {
    passers("r");
    passers("sr");
}

#[test]
fn loans_to_and_from_children_come_back() {
    passers("l");
    passers("k");
    passers("lk");
}

#[test]
fn large_messages_to_and_from_children_leave_nothing() {
    passers("b");
    passers("c");
}

#[test]
fn a_child_that_is_killed_while_it_sends_leaves_nothing() {
    passers("d");
}

#[test]
fn a_loan_under_way_to_a_child_that_is_killed_comes_back() {
    passers("u");
}

#[test]
fn children_that_have_talked_with_each_other_leave_nothing() {
    passers("p");
    passers("psr");
}
