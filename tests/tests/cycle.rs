//! Senders that wait for each other in a circle (`tests/programs/cycle.c`). With a small buffer, the error names them;
//! with a large one, all messages arrive.

use regatta_tests::Job;

/// Buffer size: too small for the programs' messages, large enough for their control messages.
const BUFFER_BYTES: &str = "64k";
/// Start of the error message.
const NAMED: &str = "blocked senders wait for each other in a cycle: task ";

fn cycle(tasks: u32, scenario: &str) {
    Job::new(tasks, "cycle", &[scenario, "cycle"])
        .env("REGATTA_BUFFER", BUFFER_BYTES)
        .run()
        .passed()
        .said(NAMED);
}

fn fine(tasks: u32, scenario: &str) {
    Job::new(tasks, "cycle", &[scenario, "fine"]).run().passed();
}

#[test]
fn large_messages_in_a_circle_are_named_and_not_delivered() {
    for tasks in [2, 3, 5] {
        cycle(tasks, "large");
    }
}

#[test]
fn synchronous_messages_in_a_circle_are_named_and_not_delivered() {
    for tasks in [2, 3, 5] {
        for scenario in ["synchronous", "synchronous-large", "synchronous-empty"] {
            cycle(tasks, scenario);
        }
    }
}

#[test]
fn waiting_for_any_of_several_sends_is_being_blocked_too() {
    for tasks in [2, 3] {
        cycle(tasks, "any-of-started");
    }
}

#[test]
fn circles_of_blocking_and_started_sends_are_named() {
    for tasks in [2, 3] {
        cycle(tasks, "mixed");
    }
}

#[test]
fn many_messages_in_a_circle_are_named() {
    for tasks in [2, 4] {
        cycle(tasks, "many");
    }
}

/// The receivers' buffers are full of small messages, so the large ones are not received.
#[test]
fn large_messages_behind_small_ones_in_a_circle_are_named() {
    for tasks in [2, 3] {
        cycle(tasks, "behind-small");
    }
}

#[test]
fn tiny_messages_in_a_circle_are_named() {
    cycle(3, "tiny");
}

#[test]
fn started_sends_that_all_wait_for_are_named() {
    for tasks in [2, 3] {
        cycle(tasks, "started");
    }
}

#[test]
fn a_task_that_fills_its_own_buffer_is_named() {
    for tasks in [1, 2] {
        Job::new(tasks, "cycle", &["itself", "cycle"])
            .env("REGATTA_BUFFER", BUFFER_BYTES)
            .run()
            .passed();
    }
}

#[test]
fn a_synchronous_send_to_oneself_is_named() {
    Job::new(1, "cycle", &["itself-synchronous"]).run().passed();
    Job::new(2, "cycle", &["itself-synchronous"]).run().passed();
}

#[test]
fn the_default_buffer_holds_the_same_programs() {
    for scenario in [
        "large",
        "many",
        "tiny",
        "started",
        "any-of-started",
        "mixed",
    ] {
        fine(3, scenario);
    }
    fine(1, "itself");
    fine(2, "itself");
}

#[test]
fn a_slow_receiver_is_no_circle() {
    Job::new(3, "cycle", &["slow-receiver"])
        .env("REGATTA_BUFFER", BUFFER_BYTES)
        .run()
        .passed();
}

/// Two hosts with one task each, three with one each, and two of which one has more tasks of the circle.
const HOSTS: [(u32, &str); 3] = [
    (2, "alpha:1,beta:1"),
    (3, "alpha:1,beta:1,gamma:1"),
    (4, "alpha:3,beta:1"),
];

fn across(tasks: u32, hosts: &str, arguments: &[&str]) -> Job {
    Job::new(tasks, "cycle", arguments)
        .env("REGATTA_BUFFER", BUFFER_BYTES)
        .across(hosts)
}

#[test]
fn circles_between_hosts_are_named_and_not_delivered() {
    for (tasks, hosts) in HOSTS {
        for scenario in ["large", "synchronous", "many", "behind-small"] {
            let job = across(tasks, hosts, &[scenario, "cycle"]);
            job.run().passed().said(NAMED);
        }
    }
}

#[test]
fn a_broadcast_and_a_send_that_wait_for_each_other_are_named() {
    let one_host = Job::new(2, "cycle", &["broadcast"]).env("REGATTA_BUFFER", BUFFER_BYTES);
    for job in [one_host, across(2, "alpha:1,beta:1", &["broadcast"])] {
        job.run().passed().said(NAMED);
    }
}

#[test]
fn circles_between_hosts_of_blocking_and_started_sends_are_named() {
    for (tasks, hosts) in HOSTS {
        for scenario in ["mixed", "any-of-started"] {
            let job = across(tasks, hosts, &[scenario, "cycle"]);
            job.run().passed().said(NAMED);
        }
    }
}

#[test]
fn who_waits_in_turn_is_in_no_circle() {
    for (tasks, hosts) in HOSTS {
        across(tasks, hosts, &["in-turn"]).run().passed();
    }
    Job::new(3, "cycle", &["in-turn"]).run().passed();
}

#[test]
fn a_slow_receiver_on_another_host_is_no_circle() {
    across(3, "alpha:2,beta:1", &["slow-receiver"])
        .run()
        .passed();
}
