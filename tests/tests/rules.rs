//! What a hot path must not do, enforced by counting (`tests/programs/rules.c`): allocate, make system calls, lock.
//! Each job runs alone, because two jobs at once would compete for cores.

use std::sync::{Mutex, PoisonError};

use regatta_tests::{Ended, Job, skip};

static ALONE: Mutex<()> = Mutex::new(());

fn run(tasks: u32, path: &str, rule: &str) -> Ended {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // On a busy machine, a task that detects others on its core sleeps, which is a system call.
    let job = Job::new(tasks, "rules", &[path, rule]).env("REGATTA_WAIT", "spin");
    job.run().passed()
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

/// Returns whether system calls and locked instructions can be counted in a job of `tasks` tasks. Records a skip if
/// not.
fn can_count(tasks: u32) -> bool {
    let can = cfg!(target_arch = "x86_64") && cores() >= tasks;
    if !can {
        skip(
            "system calls and locked instructions are counted on x86-64, with a core for each task",
        );
    }
    can
}

/// Checks that a path never allocates and, where every task has a core, makes no system call.
fn costs_nothing(tasks: u32, path: &str) {
    let rule = if can_count(tasks) { "calls" } else { "alloc" };
    run(tasks, path, rule);
}

#[test]
fn small_messages() {
    costs_nothing(2, "ping-8");
    costs_nothing(2, "ping-48");
}

#[test]
fn messages_beside_the_ring() {
    costs_nothing(2, "ping-1024");
    costs_nothing(2, "ping-8192");
}

#[test]
fn started_sends_and_receives() {
    costs_nothing(2, "started");
}

#[test]
fn exchanges() {
    costs_nothing(2, "sendrecv");
}

#[test]
fn small_collectives() {
    for path in ["barrier", "allreduce"] {
        costs_nothing(2, path);
        if cores() >= 4 {
            costs_nothing(4, path);
        }
        // With fewer cores than tasks, a waiting task must make a system call so that the task it waits for can run.
        run(cores().max(2) + 2, path, "alloc");
    }
}

#[test]
fn small_collectives_of_two() {
    costs_nothing(2, "rooted");
    costs_nothing(2, "prefixes");
}

#[test]
fn loans() {
    costs_nothing(2, "loan");
}

#[test]
fn messages_to_oneself() {
    costs_nothing(1, "self");
}

#[test]
fn looking_at_what_is_not_complete() {
    costs_nothing(2, "incomplete");
}

#[test]
fn small_messages_take_no_lock() {
    if can_count(2) {
        let ended = run(2, "locks", "alloc");
        eprint!("{}", ended.text);
    }
}

#[test]
fn first_messages_do_not_find_one_page_after_the_other_unmapped() {
    run(2, "first-messages", "alloc");
}

/// Checks the counters themselves: paths that break a rule must be detected.
#[test]
fn the_counts_see_what_is_forbidden() {
    let rule = if can_count(1) { "calls" } else { "alloc" };
    run(1, "broken", rule);
}
