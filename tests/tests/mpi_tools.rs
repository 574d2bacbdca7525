//! MPI's tool information interface.

use regatta_tests::mpi::play;

#[test]
fn control_variables_can_be_read() {
    play("tools", 1, "settings");
}

#[test]
fn messages_are_counted_while_a_handle_is_started() {
    play("tools", 1, "counters");
    play("tools", 3, "counters");
}

#[test]
fn categories_have_all_variables_and_there_are_no_events() {
    play("tools", 1, "categories");
}
