//! NX programs: global operations, Gray codes, clocks.

use regatta_tests::nx::job;

fn passes(tasks: u32, scenario: &str) {
    job(tasks, "nx_global", &[scenario]).run().passed();
}

#[test]
fn reductions_of_each_kind_of_number() {
    for scenario in ["doubles", "floats", "longs"] {
        passes(3, scenario);
    }
}

#[test]
fn reductions_of_bits_and_truths() {
    passes(3, "bits");
}

#[test]
fn concatenations_of_equal_and_unequal_parts() {
    passes(3, "concatenations");
}

#[test]
fn reductions_by_functions_of_the_program() {
    passes(3, "operators");
}

#[test]
fn nobody_leaves_a_barrier_before_all_have_come() {
    passes(3, "barriers");
    passes(32, "barriers");
}

#[test]
fn vectors_and_lengths_may_lie_anywhere() {
    passes(3, "anywhere");
}

#[test]
fn a_node_that_dies_in_a_sum_is_an_error_of_the_others() {
    let ended = job(4, "nx_global", &["dies"]).limit(30).run();
    ended
        .ended_with(128 + 9)
        .said("gdsum: no process runs there: ");
}

#[test]
fn clocks_go_on_and_gray_codes_have_inverses() {
    passes(1, "clocks");
}
