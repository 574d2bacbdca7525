//! NX programs: asynchronous sends and receives, probes, selection by node, type masks and force types.

use regatta_tests::nx::job;

fn passes(tasks: u32, scenario: &str) {
    job(tasks, "nx_started", &[scenario]).run().passed();
}

#[test]
fn an_id_stands_for_what_was_begun_until_it_is_over() {
    passes(3, "ids");
}

#[test]
fn long_sends_are_begun_on_both_sides() {
    passes(2, "long-ones");
}

#[test]
fn one_id_stands_for_many() {
    passes(2, "merged");
}

#[test]
fn what_is_cancelled_takes_no_message_and_what_is_ignored_goes_on() {
    passes(2, "cancelled");
}

#[test]
fn a_send_to_all_nodes_is_begun_like_any_other() {
    passes(3, "to-all");
}

#[test]
fn probes_see_what_could_be_received_and_take_nothing() {
    passes(2, "probes");
}

#[test]
fn receives_select_by_node() {
    passes(4, "by-node");
}

#[test]
fn a_receive_of_any_type_takes_no_force_type() {
    passes(2, "forced");
}

#[test]
fn masks_select_the_types_of_their_bits() {
    passes(2, "masks");
}

#[test]
fn a_receive_by_mask_waits() {
    passes(2, "awaited");
}

#[test]
fn too_many_at_a_time_is_an_error() {
    passes(1, "full");
}
