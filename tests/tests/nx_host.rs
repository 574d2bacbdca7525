//! NX host programs: they are started by hand and load the programs of their nodes.

use regatta_tests::Job;
use regatta_tests::lan::{APART, AS_ROOT, make_hosts};
use regatta_tests::nx::{fortran_host_job, host_in_a_job, host_job};

fn host(scenario: &str) -> Job {
    host_job("nx_host", "nx_node", &[scenario])
}

fn passes(scenario: &str) {
    host(scenario).run().passed();
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
fn a_host_that_does_not_ask_for_a_cube_gets_that_of_the_variable() {
    host("shells").env("NX_DFLT_SIZE", "3").run().passed();
    host("sized").env("NX_DFLT_SIZE", "3").run().passed();
    host("missized").env("NX_DFLT_SIZE", "many").run().passed();
}

#[test]
fn a_host_does_not_wait_for_messages_when_all_its_nodes_have_died() {
    passes("alone");
}

#[test]
fn what_a_node_has_sent_before_its_end_comes() {
    passes("last-words");
}

#[test]
fn nodes_that_are_killed_in_the_middle_make_place_for_others() {
    passes("over-again");
}

#[test]
fn a_process_in_the_place_of_another_is_found_there() {
    passes("replaced");
}

#[test]
fn another_cube_has_none_of_the_processes_of_the_one_before() {
    passes("another-size");
}

#[test]
fn a_program_that_a_node_starts_by_itself_is_no_node_of_the_cube() {
    passes("by-hand");
}

#[test]
fn the_nodes_of_a_host_are_on_the_hosts_of_its_job() {
    for scenario in [
        "typical",
        "one-by-one",
        "ends",
        "last-words",
        "alone",
        "replaced",
    ] {
        let job = host_in_a_job("nx_host", "nx_node", &[scenario]);
        job.across("alpha,beta").run().passed();
    }
}

/// Script that runs after the hosts h0 and h1 were created: starts the launcher on h0, from which it reaches both
/// hosts.
const WORLD: &str = r#"export REGATTA_RSH='env XDG_RUNTIME_DIR=/run/user.{host} ip netns exec {host}'
exec env XDG_RUNTIME_DIR=/run/user.h0 ip netns exec h0 "$@"
"#;

#[test]
fn the_nodes_of_a_host_speak_over_a_network() {
    let script = make_hosts(2) + WORLD;
    let shell = ["sh", "-ec", &script, "sh"];
    let around = [&["unshare"], &AS_ROOT[..], &APART, &shell].concat();
    for scenario in ["typical", "one-by-one", "alone", "over-again"] {
        let job = host_in_a_job("nx_host", "nx_node", &[scenario]);
        job.option("--host=h0,h1").around(&around).run().passed();
    }
}

#[test]
fn a_host_program_in_fortran() {
    let job = fortran_host_job("nx_fhost", "nx_node");
    job.run().passed().said("all of it");
}
