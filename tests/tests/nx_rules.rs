//! What the hot paths of NX must not do, enforced by counting (`tests/programs/nx_rules.c`): allocate, or make system
//! calls. Each job runs alone, because two jobs at once would compete for cores.

use std::sync::{Mutex, PoisonError};

use regatta_tests::nx::job;
use regatta_tests::skip;

static ALONE: Mutex<()> = Mutex::new(());

/// Checks that a path never allocates and, where both nodes have a core, makes no system call.
fn costs_nothing(path: &str) {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let can_count = cfg!(target_arch = "x86_64") && cores >= 2;
    if !can_count {
        skip("system calls are counted on x86-64, with a core for each task");
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let rule = if can_count { "calls" } else { "alloc" };
    // On a busy machine, a task that detects others on its core sleeps, which is a system call.
    let job = job(2, "nx_rules", &[path, rule]).env("REGATTA_WAIT", "spin");
    job.run().passed();
}

#[test]
fn small_messages_by_type() {
    costs_nothing("ping");
}

#[test]
fn messages_beside_the_ring() {
    costs_nothing("longer");
}

#[test]
fn messages_of_any_type() {
    costs_nothing("any");
}

#[test]
fn exchanges() {
    costs_nothing("exchange");
}

#[test]
fn small_sums() {
    costs_nothing("sum");
}
