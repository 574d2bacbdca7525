//! Host programs of NX: they are started by hand, and load their nodes.

use regatta_tests::nx::{fortran_host_job, host_job};

fn passes(scenario: &str) {
    host_job("nx_host", "nx_node", &[scenario]).run().passed();
}

#[test]
fn a_host_loads_its_nodes_and_speaks_with_them() {
    passes("typical");
}

#[test]
fn nodes_that_are_loaded_one_by_one_are_nodes_like_others() {
    passes("one-by-one");
}

#[test]
fn a_node_has_several_processes() {
    passes("two-each");
}

#[test]
fn a_host_hears_how_processes_end() {
    let ended = host_job("nx_host", "nx_node", &["ends"]).run().passed();
    ended.said("node 2 pid 4: csend: node 99: there is no such node (EQNODE)");
}

#[test]
fn calls_in_the_wrong_order_give_their_error_numbers() {
    passes("order");
}

#[test]
fn a_host_program_in_fortran() {
    let job = fortran_host_job("nx_fhost", "nx_node");
    job.run().passed().said("all of it");
}
