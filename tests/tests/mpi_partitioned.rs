//! Partitioned communication of MPI, request handles as integers, and buffers of sessions.

use regatta_tests::mpi::play;

#[test]
fn partitions_of_any_size_arrive_one_by_one() {
    play("partitioned", 1, "sizes");
    play("partitioned", 2, "sizes");
    play("partitioned", 3, "sizes");
}

#[test]
fn sends_and_receives_match_in_the_order_in_which_they_are_made() {
    play("partitioned", 1, "order");
    play("partitioned", 3, "order");
}

#[test]
fn there_may_be_no_partitions() {
    play("partitioned", 1, "empty");
    play("partitioned", 2, "empty");
}

#[test]
fn partitions_may_be_of_layouts() {
    play("partitioned", 1, "layouts");
    play("partitioned", 2, "layouts");
}

#[test]
fn threads_declare_partitions_ready_while_another_one_waits() {
    play("partitioned", 2, "threads");
}

#[test]
fn bad_arguments_have_the_standards_classes() {
    play("partitioned", 1, "mistakes");
    play("partitioned", 2, "mistakes");
}

#[test]
fn sessions_have_buffers() {
    play("partitioned", 1, "session_buffers");
}
