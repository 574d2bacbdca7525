//! Every way in which a job is asked to end, with tasks that do not obey (`tests/programs/endings.c`). The job must
//! have ended within the grace period and a few seconds, and nothing of it may be left.

use regatta_tests::{Ended, Job, Running};
use rustix::process::Signal;

/// How tasks stay alive: they ignore, handle or block the termination signals, are stopped, run on without their first
/// thread, or are in a system call that only SIGKILL interrupts.
const WAYS_TO_STAY: [&str; 6] = ["ignores", "catches", "blocks", "stops", "leaves", "vforks"];

/// Creates a job of two tasks that stay alive in the way `how`. Those in `hosts` are simulated hosts.
fn job(how: &str, last: &str, hosts: Option<&str>) -> Job {
    let job = Job::new(2, "endings", &[how, last]).limit(60);
    hosts.into_iter().fold(job, |job, hosts| job.across(hosts))
}

/// Starts the job and waits until both tasks are ready.
fn up(job: Job) -> Running {
    let mut job = job.start();
    job.read_words("up ");
    job.read_words("up ");
    job
}

fn each(end: impl Fn(&str, Option<&str>) -> Ended) {
    for hosts in [None, Some("alpha:1,beta:1")] {
        for how in WAYS_TO_STAY {
            end(how, hosts);
        }
    }
}

#[test]
fn a_signal_ends_the_job_after_the_grace_period() {
    each(|how, hosts| {
        let job = up(job(how, "stays", hosts).option("--grace=0.1"));
        job.signal(Signal::TERM);
        job.end()
            .ended_with(143)
            .said("the grace period (--grace) after")
    });
}

#[test]
fn each_signal_that_ends_programs_does() {
    for (signal, status) in [(Signal::HUP, 129), (Signal::QUIT, 131), (Signal::INT, 130)] {
        let job = up(job("ignores", "stays", None).option("--grace=0.1"));
        job.signal(signal);
        job.end()
            .ended_with(status)
            .said("the grace period (--grace) after");
    }
}

#[test]
fn the_time_limit_ends_the_job() {
    each(|how, hosts| {
        let job = job(how, "stays", hosts).option("--timeout=1");
        job.run().ended_with(124)
    });
}

#[test]
fn a_failure_ends_the_others_after_the_grace_period() {
    each(|how, hosts| {
        let job = job(how, "fails", hosts).option("--grace=0.5");
        job.run().ended_with(3)
    });
}

#[test]
fn a_task_ends_all_at_once() {
    each(|how, hosts| job(how, "aborts", hosts).run().ended_with(7));
}

#[test]
fn the_loss_of_the_launcher_ends_all_at_once() {
    each(|how, hosts| {
        let job = up(job(how, "stays", hosts));
        job.signal(Signal::KILL);
        job.end().ended_with(137)
    });
}

#[test]
fn a_job_without_a_reader_of_its_output_ends_when_it_is_asked_to() {
    // The pipe has a reader that never reads. `yes` fills the pipe and the output that is buffered before it.
    let script = "mkfifo pipe; exec 3<>pipe; exec \"$@\" >pipe";
    let place = std::env::temp_dir().join(format!("regatta-unread-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a folder");
    let job = Job::command(&[
        "run",
        "-n",
        "1",
        "--timeout=1",
        "--grace=0.1",
        "--label",
        "yes",
    ])
    .around(&[
        "sh",
        "-ec",
        &format!("cd {}; {script}", place.display()),
        "sh",
    ])
    .limit(60);
    job.run()
        .ended_with(124)
        .said("the rest of the output was not read");
    std::fs::remove_dir_all(&place).expect("the folder");
}
