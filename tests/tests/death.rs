//! A task is killed while it and others are in the middle of a call (`tests/programs/death.c`). Every survivor must get
//! an error that names it, and go on with the others.

use regatta_tests::{Job, Running, look_until};
use rustix::process::{Pid, Signal, kill_process};

/// What the survivors are doing when rank 1 is killed.
#[derive(Clone, Copy, PartialEq)]
enum When {
    /// All sleep in a call that cannot complete.
    Blocked,
    /// All communicate with each other.
    Busy,
}

/// Returns whether the process sleeps in a system call that waits for others.
fn asleep(pid: i32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    let number = call.split(' ').next().unwrap_or_default();
    let futexes = if cfg!(target_arch = "x86_64") {
        ["202", "449"]
    } else {
        ["98", "449"]
    };
    futexes.contains(&number)
}

/// Waits until rank 1 and all others are in that state. Returns the pid of rank 1.
fn in_the_middle(job: &mut Running, tasks: u32, when: When) -> Pid {
    let mut pids = vec![0; tasks as usize];
    // Rank 1 may begin to communicate with some tasks before the others have printed anything.
    let mut is_busy = false;
    while pids.contains(&0) || (when == When::Busy && !is_busy) {
        let (said, words) = job.read_one_of(&["blocked ", "busy "]);
        if said == 1 {
            is_busy = true;
            continue;
        }
        let rank: usize = words[0].parse().expect("a rank");
        pids[rank] = words[1].parse().expect("a pid");
    }
    if when == When::Blocked {
        // No event tells that another process has fallen asleep, so this polls.
        let survivors = (0..pids.len()).filter(|&rank| rank != 1);
        let all = || survivors.clone().all(|rank| asleep(pids[rank]));
        look_until("all survivors sleep", || all().then_some(()));
    }
    Pid::from_raw(pids[1]).expect("the pid of rank 1")
}

fn death_of(tasks: u32, arguments: &[&str], when: When) {
    let mut job = Job::new(tasks, "death", arguments)
        .option("--on-failure=continue")
        .start();
    let victim = in_the_middle(&mut job, tasks, when);
    kill_process(victim, Signal::KILL).expect("a living victim");
    let ended = job.end().ended_with(128 + 9);
    for rank in (0..tasks).filter(|&rank| rank != 1) {
        let finished = format!("got {rank} 0 ");
        if can_finish(arguments, rank) && ended.text.contains(&finished) {
            continue;
        }
        let named = format!(
            "got {rank} -7 task 1 (pid {}) was killed by signal 9",
            victim.as_raw_nonzero()
        );
        assert!(
            ended.text.contains(&named),
            "no {named:?} in\n{}",
            ended.story()
        );
        let last = format!("went on {rank}");
        assert!(
            ended.text.contains(&last),
            "no {last:?} in\n{}",
            ended.story()
        );
    }
}

/// Returns whether a survivor's collective may succeed: a task that only contributes does not wait for the result, and
/// the first of a scan waits for no other task.
fn can_finish(arguments: &[&str], rank: u32) -> bool {
    let name = arguments
        .get(1)
        .map_or("", |name| name.trim_start_matches('i'));
    match name {
        "reduce" | "gather" => rank != 0,
        "scan" => rank == 0,
        _ => false,
    }
}

fn blocked(scenario: &str) {
    death_of(3, &[scenario], When::Blocked);
}

fn busy(scenario: &str) {
    death_of(3, &[scenario], When::Busy);
}

#[test]
fn in_a_receive() {
    blocked("receive-exact");
    blocked("both-receive");
}

#[test]
fn in_a_receive_from_anybody() {
    blocked("receive-any");
}

#[test]
fn in_a_probe() {
    blocked("probe");
}

#[test]
fn then_sends_to_the_dead_fail() {
    blocked("send-to-the-dead");
}

#[test]
fn in_a_large_send() {
    blocked("large-send");
}

#[test]
fn in_a_synchronous_send() {
    blocked("synchronous-send");
}

#[test]
fn in_a_flood_of_small_messages() {
    blocked("flood");
}

#[test]
fn with_half_of_a_large_message_sent() {
    blocked("large-receive");
}

#[test]
fn in_an_exchange_of_large_messages() {
    busy("exchange");
}

#[test]
fn in_a_ping_pong() {
    busy("ping-pong");
}

#[test]
fn in_waits_for_requests() {
    blocked("wait");
    blocked("wait-any");
}

#[test]
fn with_a_callback_set() {
    blocked("callback");
}

#[test]
fn in_the_making_of_a_group() {
    for way in ["dup", "split", "select"] {
        death_of(4, &["grouping", way], When::Blocked);
    }
}

/// Collectives that no survivor can complete without rank 1, which does not take part.
const COLLECTIVES: [&str; 9] = [
    "barrier",
    "broadcast",
    "reduce",
    "allreduce",
    "scan",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
];

#[test]
fn in_each_collective() {
    for name in COLLECTIVES {
        death_of(4, &["collective", name], When::Blocked);
    }
}

#[test]
fn in_each_collective_of_large_blocks() {
    for name in COLLECTIVES {
        death_of(3, &["collective", name, "large"], When::Blocked);
    }
}

#[test]
fn in_each_started_collective() {
    for name in COLLECTIVES {
        death_of(4, &["collective", &format!("i{name}")], When::Blocked);
    }
}

#[test]
fn in_a_storm_of_collectives() {
    for tasks in [2, 4, 6] {
        death_of(tasks, &["storm"], When::Busy);
    }
}
