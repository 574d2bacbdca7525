//! Heavy traffic without failures: order, matching, completion, threads, many tasks, and the cost of waiting
//! (`tests/programs/traffic*.c`).
//!
//! Random traffic prints its seed when it fails. `TRAFFIC_SEED=N` in the environment sets the first seed.

use regatta_tests::{Ended, Job};

fn job(tasks: u32, program: &str, scenario: &str) -> Job {
    Job::new(tasks, program, &[scenario]).limit(180)
}

fn passes(tasks: u32, program: &str, scenario: &str) -> Ended {
    job(tasks, program, scenario).run().passed()
}

fn random(tasks: u32, seed: u32, rounds: u32) -> Job {
    let (seed, rounds) = (seed.to_string(), rounds.to_string());
    Job::new(tasks, "traffic", &["random", &seed, &rounds]).limit(180)
}

#[test]
fn random_traffic_arrives_once_in_order_and_whole() {
    for (tasks, seed) in [(2, 2000), (3, 3000), (5, 5000)] {
        random(tasks, seed, 6).run().passed();
    }
}

#[test]
fn random_traffic_of_more_tasks_than_cores() {
    random(9, 9000, 4).run().passed();
}

#[test]
fn random_traffic_with_oneself() {
    random(1, 1000, 6).run().passed();
}

#[test]
fn messages_of_one_task_never_overtake_each_other() {
    for tasks in [2, 4] {
        passes(tasks, "traffic_order", "overtaking");
    }
}

#[test]
fn nobody_of_many_senders_is_starved() {
    for tasks in [2, 4, 7] {
        passes(tasks, "traffic_order", "fairness");
    }
}

#[test]
fn nobody_is_starved_in_front_of_a_full_buffer() {
    for tasks in [2, 4, 7] {
        let job = job(tasks, "traffic_order", "fairness");
        job.env("REGATTA_BUFFER", "20k").run().passed();
    }
}

#[test]
fn a_flood_from_one_task_does_not_keep_out_another() {
    let job = job(3, "traffic_order", "flooded");
    job.env("REGATTA_BUFFER", "32k").run().passed();
}

#[test]
fn too_many_messages_whose_bytes_are_elsewhere_are_counted_in_the_error() {
    for how in ["loans", "synchronous"] {
        let job = Job::new(2, "traffic_order", &["crowded", how]);
        job.env("REGATTA_BUFFER", "64k").run().passed();
    }
}

#[test]
fn strides_as_odd_as_they_come() {
    for tasks in [1, 2] {
        passes(tasks, "traffic_order", "odd-strides");
    }
}

#[test]
fn each_of_many_receives_alike_gets_its_message() {
    for tasks in [2, 4] {
        passes(tasks, "traffic_order", "alike");
    }
}

#[test]
fn a_message_is_passed_over_by_one_for_a_started_receive() {
    passes(2, "traffic_order", "passed-over");
}

#[test]
fn two_hundred_small_messages_go_to_a_task_that_makes_no_calls() {
    passes(2, "traffic_order", "burst");
}

#[test]
fn one_message_of_a_gibibyte() {
    passes(2, "traffic_scale", "huge");
}

#[test]
fn one_message_of_a_gibibyte_to_oneself() {
    passes(1, "traffic_scale", "huge-to-oneself");
}

#[test]
fn a_hundred_thousand_posted_receives_match_as_fast_as_a_thousand() {
    passes(2, "traffic_scale", "posted");
}

#[test]
fn a_hundred_thousand_waiting_messages_match_as_fast_as_a_thousand() {
    passes(2, "traffic_scale", "unexpected");
}

#[test]
fn answers_come_as_fast_past_a_hundred_thousand_waiting_messages() {
    passes(2, "traffic_scale", "asked");
    passes(2, "traffic_scale", "asked-any");
}

#[test]
fn thousands_of_synchronous_sends_at_once() {
    passes(2, "traffic_scale", "started");
}

#[test]
fn callbacks_are_called_once_from_inside_calls() {
    for tasks in [1, 2, 5] {
        passes(tasks, "traffic_completion", "callbacks");
    }
}

#[test]
fn a_callback_is_called_by_calls_that_have_nothing_to_wait_for() {
    passes(1, "traffic_completion", "callback-beside");
}

#[test]
fn no_message_is_slept_through_on_the_descriptor() {
    passes(2, "traffic_completion", "descriptor");
}

#[test]
fn nor_is_one_of_several_that_are_looked_for_one_after_the_other() {
    passes(2, "traffic_completion", "descriptor-of-several");
}

#[test]
fn a_receive_is_cancelled_or_complete() {
    passes(2, "traffic_completion", "cancelling");
}

#[test]
fn what_was_probed_is_received() {
    for tasks in [2, 4] {
        passes(tasks, "traffic_completion", "probing");
    }
}

#[test]
fn blocked_tasks_use_no_processor() {
    /// The kernel may charge to a process some time of the machine's other work.
    const TRIES: u32 = 3;
    for way in ["0", "1", "2", "3", "5"] {
        let run = || Job::new(2, "traffic_completion", &["idle", way]).run();
        let quiet = |ended: &Ended| !ended.story().contains(": used ");
        let ended = (1..TRIES).map(|_| run()).find(quiet);
        ended.unwrap_or_else(run).passed();
    }
}

#[test]
fn a_descriptor_is_not_readable_when_nothing_has_happened() {
    passes(1, "traffic_completion", "undisturbed");
}

#[test]
fn blocked_tasks_use_no_processor_in_a_crowd() {
    passes(9, "traffic_completion", "idle");
}

#[test]
fn four_threads_of_two_tasks_by_their_own_tags() {
    passes(2, "traffic_threads", "tags");
}

#[test]
fn four_threads_of_two_tasks_by_one_tag() {
    passes(2, "traffic_threads", "shared");
}

#[test]
fn eight_threads_of_two_tasks_by_both() {
    passes(2, "traffic_threads", "both");
}

#[test]
fn a_thread_that_waits_holds_up_no_other() {
    passes(2, "traffic_threads", "listener");
}

#[test]
fn what_another_thread_will_receive_is_no_circle() {
    passes(2, "traffic_threads", "no-circle");
}

#[test]
fn threads_that_receive_in_place_take_no_message_of_another() {
    passes(2, "traffic_threads", "lent");
}

#[test]
fn two_hundred_tasks_each_to_all() {
    passes(200, "traffic_crowd", "alltoall");
    passes(200, "traffic_crowd", "messages");
}

#[test]
fn collectives_agree_with_a_serial_model() {
    for (tasks, rounds) in [(32, "12"), (5, "20"), (2, "20")] {
        let job = Job::new(tasks, "traffic_crowd", &["collectives", "1", rounds]);
        job.limit(180).run().passed();
    }
}
