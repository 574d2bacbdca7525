//! Signals to the launcher reach the tasks.

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use support::{REGATTA, Running, await_ends, look_until};

/// A task that prints which signals it gets, and ends by SIGTERM.
const EARS: &str = "for s in HUP QUIT USR1 USR2 WINCH CONT; do trap \"echo got $s\" $s; done; \
                    echo up; sleep 600 & while :; do wait $!; done";

#[test]
fn signals_reach_every_task() {
    let mut job = Running::start(&["-n", "2", "bash", "-c", EARS]);
    job.read_lines(2, "up");
    for (signal, name) in [(Signal::WINCH, "WINCH"), (Signal::CONT, "CONT")] {
        job.signal(signal);
        job.read_lines(2, &format!("got {name}"));
    }
    job.signal(Signal::TERM);
    assert_eq!(job.end().0, 143);
}

#[test]
fn a_signal_that_a_program_handles_does_not_end_the_job() {
    let mut job = Running::start(&[
        "-n",
        "2",
        "bash",
        "-c",
        "trap 'echo got it; exit 0' USR1; echo up; while :; do :; done",
    ]);
    job.read_lines(2, "up");
    job.signal(Signal::USR1);
    job.read_lines(2, "got it");
    assert_eq!(job.end().0, 0);
}

#[test]
fn an_interrupt_ends_the_job_as_an_interrupt() {
    let mut job = Running::start(&["-n", "3", "sh", "-c", "echo up; exec sleep 600"]);
    job.read_lines(3, "up");
    let processes = job.processes();
    job.signal(Signal::INT);
    await_ends(&processes);
    let (status, said) = job.end();
    assert_eq!(status, 130);
    assert!(!said.contains("was killed"), "the user knows: {said}");
}

#[test]
fn a_second_interrupt_ends_the_deaf() {
    let mut job = Running::start(&[
        "-n",
        "2",
        "bash",
        "-c",
        "trap 'echo ouch' INT; echo up; sleep 600 & while :; do wait $!; done",
    ]);
    job.read_lines(2, "up");
    let processes = job.processes();
    job.signal(Signal::INT);
    job.read_lines(2, "ouch");
    // Until it counts as a second key press: a copy of the first would arrive at once.
    look_until("a second interrupt ends the job", || {
        let ended = job.child.try_wait().expect("a child");
        if ended.is_none() {
            job.signal(Signal::INT);
        }
        ended
    });
    await_ends(&processes);
    let (status, said) = job.end();
    assert_eq!(status, 130);
    assert!(said.contains("interrupted twice"), "{said}");
}

#[test]
fn an_interrupt_from_the_terminal_reaches_each_task_once() {
    // A loop without child processes, and no shell around the launcher: how a shell reacts to a key that ends its child
    // is not tested here (dash ends by the key itself, however the child ended).
    let command = format!(
        "exec {REGATTA} run -n 2 bash -c 'trap \"echo ouch; exit 0\" INT; echo up; while :; do :; done'"
    );
    let mut job = Running::start_command(
        Command::new("script")
            .args(["-qefc", &command, "/dev/null"])
            .stdin(Stdio::piped()),
    );
    job.read_lines(2, "up");
    let mut keys = job.child.stdin.take().expect("a keyboard");
    keys.write_all(b"\x03").expect("a terminal");
    job.read_lines(2, "ouch");
    let (status, said) = job.end();
    assert_eq!(status, 0, "{said}");
}

#[test]
fn task_0_reads_from_the_terminal() {
    let command =
        format!("exec {REGATTA} run -n 2 bash -c 'echo up; read word && echo heard $word; exit 0'");
    let mut job = Running::start_command(
        Command::new("script")
            .args(["-qefc", &command, "/dev/null"])
            .stdin(Stdio::piped()),
    );
    job.read_lines(2, "up");
    let mut keys = job.child.stdin.take().expect("a keyboard");
    keys.write_all(b"regatta\n").expect("a terminal");
    job.read_lines(1, "heard regatta");
    assert_eq!(job.end().0, 0);
}

#[test]
fn the_end_of_the_terminal_is_the_end_of_the_job() {
    let command = format!("exec {REGATTA} run -n 2 sh -c 'trap \"\" HUP; echo up; exec sleep 600'");
    let mut job = Running::start_command(
        Command::new("script")
            .args(["-qefc", &command, "/dev/null"])
            .stdin(Stdio::piped()),
    );
    job.read_lines(2, "up");
    let processes = job.processes();
    let front = processes
        .iter()
        .find(|process| process.name == "regatta")
        .expect("the front");
    front.kill();
    await_ends(&processes);
    job.end();
}

#[test]
fn a_stopped_job_goes_on() {
    let mut job = Running::start_apart(&[
        "-n",
        "1",
        "sh",
        "-c",
        "echo up $$; read line < /dev/tty || :; while :; do echo alive; done",
    ]);
    let line = job.read_lines(1, "up").remove(0);
    let task = line.trim_start_matches("up ").to_owned();
    job.signal(Signal::TSTP);
    let state = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')')
            .and_then(|(_, rest)| rest.trim_start().chars().next())
    };
    let front = job.pid().to_string();
    // Whether its pipe is full or not, the task stops, and so does the launcher.
    look_until("task and launcher are stopped", || {
        (state(&task) == Some('T') && state(&front) == Some('T')).then_some(())
    });
    job.signal(Signal::CONT);
    job.read_lines(100, "alive");
    job.signal(Signal::KILL);
    job.end();
}
