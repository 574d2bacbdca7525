//! NX programs: blocking sends and receives, the info calls about received messages, and errors in both modes.

use regatta_tests::nx::{fixed_job, job};

fn passes(tasks: u32, scenario: &str) {
    job(tasks, "nx_messages", &[scenario]).run().passed();
}

#[test]
fn nodes_know_who_they_are() {
    passes(3, "who");
}

#[test]
fn a_message_goes_round_the_ring() {
    passes(3, "ring");
    passes(1, "ring");
}

#[test]
fn a_receive_selects_by_type_whoever_sends() {
    passes(3, "types");
}

#[test]
fn messages_of_a_node_come_in_their_order() {
    passes(2, "order");
}

#[test]
fn messages_of_any_length_come_whole() {
    passes(2, "lengths");
}

#[test]
fn sends_do_not_wait_for_receivers() {
    passes(2, "buffered");
}

#[test]
fn two_nodes_exchange_in_one_call() {
    passes(2, "exchange");
}

#[test]
fn node_minus_one_is_everybody_else() {
    passes(3, "broadcast");
}

#[test]
fn wrong_arguments_give_their_error_numbers_and_send_nothing() {
    passes(2, "wrong");
}

#[test]
fn a_message_that_does_not_fit_stays() {
    passes(2, "too-long");
}

#[test]
fn a_program_at_a_fixed_address_sees_the_same_information() {
    fixed_job(3, "nx_messages", &["ring"]).run().passed();
    fixed_job(3, "nx_started", &["by-node"]).run().passed();
}

#[test]
fn a_call_by_its_plain_name_ends_the_program_with_a_sentence() {
    let sentences = [
        ("node", "csend: node 99: there is no such node (EQNODE)"),
        (
            "type",
            "csend: type -7: the message type is not valid (EQTYPE)",
        ),
        (
            "long",
            "crecv: message of length 8: the message is longer than the buffer (EQMSGLONG)",
        ),
        (
            "id",
            "msgwait: id 12345: no started message has this id (EQMID)",
        ),
        ("pid", "isend: pid 2: no process runs there (EQNOACT)"),
    ];
    for (what, sentence) in sentences {
        let ended = job(1, "nx_messages", &["ends", what]).run();
        ended
            .ended_with(1)
            .said(&format!("node 0 pid 0: {sentence}"));
    }
}

#[test]
fn killcube_on_a_node_ends_all_nodes() {
    let job = job(4, "nx_messages", &["killed"]).limit(30);
    job.run().ended_with(1);
}

#[test]
fn nodes_on_two_hosts_are_nodes_like_others() {
    for scenario in ["types", "broadcast"] {
        let job = job(3, "nx_messages", &[scenario]).across("alpha:2,beta:1");
        job.run().passed();
    }
    let job = job(2, "nx_messages", &["buffered"]).across("alpha:1,beta:1");
    job.run().passed();
}
