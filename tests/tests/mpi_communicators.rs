//! MPI groups, intracommunicators, intercommunicators and topologies; reuse of handles and tags.

use regatta_tests::mpi;

/// Runs each scenario with each number of processes.
fn play(program: &str, processes: &[u32], scenarios: &[&str]) {
    for scenario in scenarios {
        for &count in processes {
            mpi::play(program, count, scenario);
        }
    }
}

#[test]
fn groups_are_sets_of_processes() {
    play("communicators", &[1, 2, 5], &["groups"]);
}

#[test]
fn communicators_are_made_of_others() {
    play("communicators", &[1, 4], &["copies", "parts", "of_groups"]);
}

#[test]
fn thousands_of_communicators_take_little_shared_memory() {
    play("communicators", &[2, 4], &["memory"]);
}

#[test]
fn a_freed_communicator_lives_as_long_as_its_requests() {
    play("communicators", &[1, 3], &["freed"]);
}

#[test]
fn no_handle_comes_again_soon_after_its_object_was_freed_or_while_a_request_knows_it() {
    play("stale", &[1], &["handles", "pending"]);
}

#[test]
fn tags_are_used_again_but_not_those_of_what_still_lives() {
    play("stale", &[2], &["persistent"]);
    play("stale", &[1], &["partitions"]);
}

#[test]
fn attributes_are_copied_and_deleted() {
    play("communicators", &[1, 2], &["attributes"]);
}

#[test]
fn intercommunicators_have_two_sides() {
    let scenarios = ["made", "parts", "of_groups", "threads"];
    play("intercommunicators", &[2, 5], &scenarios);
}

#[test]
fn threads_that_make_communicators_at_once_are_told_apart_by_all_of_their_tags() {
    play("intercommunicators", &[2, 5], &["tags"]);
}

#[test]
fn topologies_name_neighbours() {
    play("topologies", &[1], &["dims"]);
    play("topologies", &[2, 5], &["grids", "graphs", "distributed"]);
}
