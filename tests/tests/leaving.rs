//! What a task that leaves the job waits for, and what ends that wait (`tests/programs/leaving.c`).

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use regatta_tests::pvm_machine::Machine;
use regatta_tests::{Job, programs};

/// Creates a job of two tasks on one host, and one on two hosts.
fn two_tasks(scenario: &str) -> [Job; 2] {
    let job = || Job::new(2, "leaving", &[scenario]);
    [job(), job().across("alpha:1,beta:1")]
}

/// On one host, a small message is already in the receiver's memory, so the sender may leave. Between hosts it would be
/// lost.
#[test]
fn tasks_of_one_host_leave_though_nobody_receives_their_small_synchronous_messages() {
    Job::new(2, "leaving", &["synchronous"]).run().passed();
}

#[test]
fn a_synchronous_message_arrives_though_its_receiver_computes_for_long_before_it_receives() {
    for job in two_tasks("late") {
        job.run().passed();
    }
}

#[test]
fn tasks_that_leave_with_unreceived_synchronous_messages_are_a_circle() {
    for job in two_tasks("unreceived") {
        job.run().passed();
    }
}

#[test]
fn a_synchronous_message_that_is_being_received_arrives_though_its_receiver_computes() {
    for job in two_tasks("begun") {
        job.run().passed();
    }
}

#[test]
fn tasks_that_leave_with_full_buffers_are_a_circle_and_may_leave_when_they_have_received() {
    for job in two_tasks("circle") {
        job.env("REGATTA_BUFFER", "64k").run().passed();
    }
}

#[test]
fn a_task_that_owes_messages_leaves_when_the_launcher_of_its_job_is_killed() {
    let machine = Machine::new("leaving-beheaded");
    let mut child = machine
        .by_hand(&programs::program("leaving"))
        .args(["beheaded", "stays"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut lines = lines.map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("owes"), "{}", machine.log());
    machine.behead();
    assert_eq!(lines.next().as_deref(), Some("left"));
    assert!(child.wait().expect("its end").success());
    machine.is_over();
}
