//! The cost that a task adds to a job does not grow with the number of tasks (`tests/programs/many.c`).
//!
//! Compared is the processor time of whole jobs, in one run: other work on the machine adds little to it. It never takes any
//! away, so a job that took too much is run again.

use std::sync::Mutex;

use regatta_tests::Job;

/// One job at a time: the kernel counts the processor time of all of them together.
static ALONE: Mutex<()> = Mutex::new(());
const ATTEMPTS: u32 = 4;

/// Processor time of the processes that this one has had, and theirs, in ticks.
fn ticks() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("what the kernel counts");
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    // The fields after the name begin with the third; those of children are the 16th and 17th.
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

/// `many` tasks cost at most `most` times what `few` do.
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
    // Ten, not four: programs that were not optimised look at tables of all tasks slowly.
    holds("meet", 400, 1600, 10.0);
}

#[test]
fn a_word_of_each_task_with_each_costs_the_same_however_many_there_are() {
    // Twice as many tasks have four times as many words.
    holds("talk", 150, 300, 5.5);
}

#[test]
fn a_member_of_a_crowd_that_leaves_instead_of_coming_is_named() {
    let _alone = ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    Job::new(150, "many", &["miss"]).limit(180).run().passed();
}
