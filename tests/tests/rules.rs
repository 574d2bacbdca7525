//! What a hot path may not do, held by counting (`programs/rules.c`): allocate, call the system,
//! lock. Each job runs alone: two at once would take each other's cores.

use std::sync::{Mutex, PoisonError};

use regatta_tests::{Ended, Job};

static ALONE: Mutex<()> = Mutex::new(());

fn run(tasks: u32, path: &str, rule: &str) -> Ended {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Job::new(tasks, "rules", &[path, rule]).run().passed()
}

fn has_cores(tasks: u32) -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= tasks as usize)
}

/// No allocation, and no system call where every task has a core. With fewer cores a task that
/// waits has to call the system, or the one it waits for could not run.
fn costs_nothing(tasks: u32, path: &str) {
    if cfg!(target_arch = "x86_64") && has_cores(tasks) {
        run(tasks, path, "calls");
    } else {
        eprintln!("{path}: system calls are counted on x86-64, with a core for each task");
        run(tasks, path, "alloc");
    }
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
    for tasks in [2, 4] {
        costs_nothing(tasks, "barrier");
        costs_nothing(tasks, "allreduce");
    }
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
    if cfg!(target_arch = "x86_64") && has_cores(2) {
        let ended = run(2, "locks", "alloc");
        eprint!("{}", ended.text);
    } else {
        eprintln!("locked instructions are counted on x86-64, with a core for each task");
    }
}

/// A rule that cannot be broken would be none.
#[test]
fn the_counts_see_what_is_forbidden() {
    if cfg!(target_arch = "x86_64") {
        run(1, "broken", "calls");
    } else {
        run(1, "broken", "alloc");
    }
}
