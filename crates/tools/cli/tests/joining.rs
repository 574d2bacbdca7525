//! Tasks that join the job. This program is its own task: if it is started by `regatta run`, it plays a role.

mod support;

use std::os::fd::OwnedFd;
use std::process::exit;

use regatta_segment::job::{Cause, Job, JoinToken, TaskState};
use rustix::fs::{Mode, OFlags};
use support::{Scratch, look_until, run, told};

const ROLE: &str = "REGATTA_TEST_ROLE";

/// Plays the role of a task. Not a test by itself.
#[test]
fn as_task() {
    let (Ok(token), Ok(role)) = (std::env::var(JoinToken::VARIABLE), std::env::var(ROLE)) else {
        // not a skip: the tests below run this as a task, with both variables set
        return;
    };
    let token = JoinToken::parse(&token).expect("a join token");
    let rank = token.rank;
    if role == "shy" && rank == 2 {
        exit(0);
    }
    let path = format!("/proc/self/fd/{}", token.fd);
    let segment: OwnedFd =
        rustix::fs::open(path, OFlags::RDWR, Mode::empty()).expect("the segment");
    let job = Job::join(segment, token).expect("a place in the job");
    match role.as_str() {
        "fine" => {}
        "count" => println!("HEARD {}", job.cores()),
        "silent" if rank == 1 => exit(0),
        "crash" if rank == 1 => std::process::abort(),
        "silent" | "crash" => report(&job, 1),
        "shy" => report(&job, 2),
        "wave" if rank == 2 => {
            // Reads the table, which wakes no task.
            look_until("task 0 has left", || {
                (job.state(0) == TaskState::Left).then_some(())
            });
            println!("HEARD that it left");
        }
        "wave" => {}
        "late" => {
            job.leave(rank);
            exit(if rank == 1 { 5 } else { 0 });
        }
        _ => panic!("no role {role}"),
    }
    job.leave(rank);
    exit(0);
}

/// Waits until the launcher has marked `rank` as dead, and prints the cause.
fn report(job: &Job, rank: u32) {
    look_until("the launcher has said so", || {
        (job.state(rank) == TaskState::Dead).then_some(())
    });
    println!("HEARD {:?}", job.cause(rank).expect("a cause"));
}

/// Runs three tasks of this program in a role, through `wrapper` if it is not empty.
fn play(role: &str, wrapper: &[&str]) -> (i32, Vec<String>, String) {
    play_with(&[], role, wrapper)
}

fn play_with(options: &[&str], role: &str, wrapper: &[&str]) -> (i32, Vec<String>, String) {
    let program = std::env::current_exe().expect("this program");
    let variable = format!("{ROLE}={role}");
    let task = [
        program.to_str().expect("a plain path"),
        "--exact",
        "as_task",
        "--nocapture",
    ];
    let (status, output, said) = told(&run(&[
        &["-n", "3"],
        options,
        &["env", &variable],
        wrapper,
        &task[..],
    ]
    .concat()));
    let heard = output
        .lines()
        .filter_map(|line| line.split("HEARD ").nth(1))
        .map(str::to_owned)
        .collect();
    (status, heard, said)
}

#[test]
fn tasks_that_join_and_leave_need_no_words() {
    assert_eq!(play("fine", &[]), (0, vec![], String::new()));
}

#[test]
fn a_task_that_ends_without_leaving_is_named_and_the_others_hear_of_it() {
    let (status, heard, said) = play("silent", &[]);
    assert_eq!(status, 1);
    assert_eq!(heard, vec![format!("{:?}", Cause::Exited(0)); 2]);
    assert!(
        said.contains("task 1 (pid ") && said.contains("exited with status 0 without leaving"),
        "{said}"
    );
}

#[test]
fn a_crash_is_named_and_the_others_hear_of_it() {
    let (status, heard, said) = play("crash", &[]);
    assert_eq!(status, 134);
    assert_eq!(heard, vec![format!("{:?}", Cause::Signalled(6)); 2]);
    assert!(said.contains("killed by signal 6 (abort)"), "{said}");
}

#[test]
fn a_task_that_never_joins_among_others_is_named() {
    let (status, heard, said) = play("shy", &[]);
    assert_eq!(status, 0);
    assert_eq!(heard.len(), 2);
    assert!(
        said.contains("task 2 ended without joining the job"),
        "{said}"
    );
}

#[test]
fn a_failure_after_leaving_is_still_a_failure() {
    let (status, _, said) = play("late", &[]);
    assert_eq!(status, 5);
    assert!(said.contains("task 1 (pid "), "{said}");
}

#[test]
fn a_program_behind_a_wrapper_joins() {
    let scratch = Scratch::new("behind");
    let wrapper = scratch.file(
        "wrapper",
        0o755,
        b"#!/bin/sh\nexec 3</dev/null 4</dev/null\n\"$@\"\nexit $?\n",
    );
    assert_eq!(play("fine", &[&wrapper]), (0, vec![], String::new()));
}

#[test]
fn a_job_squeezed_onto_one_core_knows_it() {
    let core = regatta_launch::cores::allowed()[0].to_string();
    let (status, heard, _) = play_with(&["--bind", &core], "count", &[]);
    assert_eq!((status, heard), (0, vec!["1".to_owned(); 3]));
}

#[test]
fn a_death_is_heard_on_another_host() {
    // Tasks 0 and 1 are on one host, task 2 is on the other.
    let hosts = ["--host", "alpha:2,beta:1", "--rsh", "sh -c"];
    let (status, heard, said) = play_with(&hosts, "crash", &[]);
    assert_eq!(status, 134, "{said}");
    assert_eq!(heard, vec![format!("{:?}", Cause::Signalled(6)); 2]);
}

#[test]
fn leaving_is_heard_on_another_host() {
    let hosts = ["--host", "alpha:2,beta:1", "--rsh", "sh -c"];
    let (status, heard, _) = play_with(&hosts, "wave", &[]);
    assert_eq!((status, heard), (0, vec!["that it left".to_owned()]));
}
