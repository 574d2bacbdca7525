//! NX programs: handlers that run like interrupts when a message has arrived.

use regatta_tests::nx::job;

fn passes(tasks: u32, scenario: &str) {
    job(tasks, "nx_handlers", &[scenario]).run().passed();
}

#[test]
fn a_handler_interrupts_a_program_that_computes() {
    passes(3, "computes");
}

#[test]
fn a_handler_runs_while_its_program_waits_for_something_else() {
    passes(3, "waits");
}

#[test]
fn masked_handlers_run_when_they_are_allowed_again() {
    passes(2, "masked");
}

#[test]
fn every_call_with_a_handler_has_it_run_once() {
    passes(2, "forms");
}

#[test]
fn a_handler_hears_of_a_message_that_came_before() {
    passes(2, "earlier");
}

#[test]
fn a_handler_that_takes_in_a_message_leaves_it_to_the_program() {
    passes(2, "taken-in");
}

#[test]
fn a_handler_for_a_node_that_has_gone_never_runs() {
    passes(3, "gone");
}

#[test]
fn wrong_arguments_begin_nothing() {
    passes(1, "wrong");
}

#[test]
fn a_message_too_long_for_a_handler_ends_the_program() {
    for nodes in [1, 2] {
        let job = job(nodes, "nx_handlers", &["ends"]).option("--grace=0");
        let ended = job.run().ended_with(1);
        ended.said("node 0 pid 0: hrecv: message of length 8: the message is longer than the buffer (EQMSGLONG)");
    }
}

#[test]
fn handlers_run_between_hosts() {
    for scenario in ["computes", "waits"] {
        let job = job(3, "nx_handlers", &[scenario]).across("alpha:2,beta:1");
        job.run().passed();
    }
}
