//! No process of a job stays behind, whichever processes are killed, and how.

mod support;

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, kill_process, kill_process_group};
use support::{REGATTA, Running, await_ends, look_until, run, told};

/// A task with a child, a child in a session of its own, and one whose parent has ended.
const FAMILY: &str = "sleep 600 & setsid sleep 601 & (setsid sleep 602 &); echo up; wait";

fn family(tasks: usize) -> Running {
    let mut job = Running::start_apart(&["-n", &tasks.to_string(), "sh", "-c", FAMILY]);
    job.read_lines(tasks, "up");
    // Front, watch, supervisor, and four processes per task. The shells may still be starting their children.
    look_until("all of the family runs", || {
        (job.processes().len() >= 3 + 4 * tasks).then_some(())
    });
    job
}

#[test]
fn kill_9_of_the_launcher_leaves_nothing() {
    let job = family(3);
    let processes = job.processes();
    job.signal(Signal::KILL);
    await_ends(&processes);
    assert!(job.processes().is_empty());
    assert_eq!(job.end().0, 137);
}

#[test]
fn kill_9_of_the_supervisor_leaves_nothing() {
    let job = family(3);
    let processes = job.processes();
    job.named("regatta-job").kill();
    await_ends(&processes);
    assert!(job.processes().is_empty());
    let (status, said) = job.end();
    assert_eq!(status, 137);
    assert!(
        said.contains("supervisor") && said.contains("have been ended"),
        "{said}"
    );
}

#[test]
fn kill_9_of_the_process_group_leaves_nothing() {
    let mut job = Running::start_command(
        Command::new(REGATTA)
            .args(["run", "-n", "2", "sh", "-c", FAMILY])
            .process_group(0),
    );
    job.read_lines(2, "up");
    look_until("all of the family runs", || {
        (job.processes().len() >= 11).then_some(())
    });
    let processes = job.processes();
    kill_process_group(job.pid(), Signal::KILL).expect("a group");
    await_ends(&processes);
    assert!(job.processes().is_empty());
    job.end();
}

#[test]
fn kill_9_of_any_two_of_the_three_processes_leaves_nothing() {
    for pair in [
        ["regatta", "regatta-job"],
        ["regatta", "regatta-watch"],
        ["regatta-watch", "regatta-job"],
    ] {
        let job = family(2);
        let processes = job.processes();
        let both = pair.map(|name| job.named(name));
        // Neither acts between the two kills.
        for process in &both {
            kill_process(process.pid, Signal::STOP).expect("a living process");
        }
        both.iter().for_each(|process| process.kill());
        await_ends(&processes);
        assert!(job.processes().is_empty(), "{pair:?}");
        job.end();
    }
}

#[test]
fn kill_9_of_all_three_processes_ends_the_tasks() {
    let mut job = Running::start_apart(&["-n", "4", "sh", "-c", "echo up; exec sleep 600"]);
    job.read_lines(4, "up");
    let processes = job.processes();
    let all = ["regatta", "regatta-watch", "regatta-job"].map(|name| job.named(name));
    for process in &all {
        kill_process(process.pid, Signal::STOP).expect("a living process");
    }
    all.iter().for_each(|process| process.kill());
    await_ends(&processes);
    job.end();
}

#[test]
fn killall_spares_the_half_that_clears_up() {
    let job = family(1);
    assert_eq!(job.named("regatta").pid, job.pid());
    job.named("regatta-job");
    job.signal(Signal::KILL);
    job.end();
}

#[test]
fn what_tasks_leave_behind_is_ended_and_named() {
    let (status, _, said) = told(&run(&["-n", "2", "sh", "-c", "setsid sleep 600 & exit 0"]));
    assert_eq!(status, 0);
    assert!(
        said.contains("processes that they started still run") && said.contains("sleep (pid "),
        "{said}"
    );
}

#[test]
fn what_ends_by_itself_is_not_mentioned() {
    let (_, _, said) = told(&run(&["-n", "2", "sh", "-c", "sleep 0.01 & exit 0"]));
    assert!(
        !said.contains("processes that they started still run"),
        "{said}"
    );
}
