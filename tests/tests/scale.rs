//! The cost that a task adds to a job does not grow with the number of tasks (`tests/programs/many.c`).
//!
//! Compares the processor time of whole jobs within one run, to which other work on the machine adds little. Other work
//! can only increase it, so a job that exceeds the limit is run again.

use std::sync::Mutex;

use regatta_tests::Job;

/// Held while a job runs: the kernel reports the processor time of all children together.
static ALONE: Mutex<()> = Mutex::new(());
const ATTEMPTS: u32 = 4;

/// Returns the processor time of all ended children and their descendants, in clock ticks.
fn ticks() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("what the kernel counts");
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    // The fields after the name begin with field 3. Fields 16 and 17 are the times of children.
    let fields: Vec<f64> = rest
        .split_whitespace()
        .skip(13)
        .take(2)
        .map(number)
        .collect();
    fields.iter().sum()
}

fn number(word: &str) -> f64 {
    word.parse().expect("a number")
}

fn cost(tasks: u32, scenario: &str) -> f64 {
    let before = ticks();
    Job::new(tasks, "many", &[scenario])
        .limit(180)
        .run()
        .passed();
    ticks() - before
}

/// Checks that a job of `many` tasks costs at most `most` times what a job of `few` tasks costs.
fn holds(scenario: &str, few: u32, many: u32, most: f64) {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let ratio = cost(many, scenario) / cost(few, scenario);
        if ratio <= most {
            return;
        }
        seen.push(ratio);
    }
    panic!("{many} tasks cost {seen:?} times what {few} do, and not at most {most} times");
}

#[test]
fn four_times_as_many_tasks_do_not_cost_more_than_ten_times_as_much_to_start_meet_and_leave() {
    // Four times the tasks may cost ten times as much, because unoptimized builds are slow at scanning tables of all
    // tasks.
    holds("meet", 400, 1600, 10.0);
}

#[test]
fn a_word_of_each_task_with_each_costs_the_same_however_many_there_are() {
    // Twice as many tasks exchange four times as many messages.
    holds("talk", 150, 300, 5.5);
}

#[test]
fn a_member_of_a_crowd_that_leaves_instead_of_coming_is_named() {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    Job::new(150, "many", &["miss"]).limit(180).run().passed();
}
