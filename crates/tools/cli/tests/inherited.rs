//! The state that a command inherits from the program that has started it does not prevent it from working, and reaches
//! the tasks (the table is in `crates/machine/launch/src/system/inherited.rs`).

mod support;

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;
use support::{REGATTA, Running, Scratch, text, told};

/// Returns `env` with these options, followed by the command with these words.
fn under(options: &[&str], words: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(options).arg(REGATTA).args(words);
    command.stdin(Stdio::null());
    command
}

/// Returns a line about a task's own process, read without a shell, which would change it.
fn status_of_task(options: &[&str], word: &str) -> String {
    let line = ["run", "-n", "1", "grep", word, "/proc/self/status"];
    let (status, said, complaints) = told(&under(options, &line).output().expect("regatta"));
    assert_eq!(status, 0, "{complaints}");
    let value = said.split_whitespace().nth(1).expect("a value");
    value.to_owned()
}

/// Returns whether a signal is in a mask of the kernel's.
fn has(mask: &str, signal: Signal) -> bool {
    let mask = u64::from_str_radix(mask, 16).expect("a mask");
    mask & 1 << (signal.as_raw() - 1) != 0
}

#[test]
fn a_launcher_ends_with_its_job_where_ends_of_children_are_ignored() {
    let mask = status_of_task(&["--ignore-signal=CHLD"], "SigIgn");
    assert!(has(&mask, Signal::CHILD), "{mask}");
    assert!(
        !has(&mask, Signal::XFSZ) && !has(&mask, Signal::PIPE),
        "{mask}"
    );
}

#[test]
fn a_launcher_that_inherits_sigchld_ignored_ends_by_a_signal() {
    let words = ["run", "-n", "1", "sh", "-c", "echo up; exec sleep 600"];
    let mut job = Running::start_command(&mut under(&["--ignore-signal=CHLD"], &words));
    job.read_lines(1, "up");
    job.signal(Signal::TERM);
    assert_eq!(job.end().0, 143);
}

#[test]
fn mpiexec_and_the_commands_of_a_machine_work_where_ends_of_children_are_ignored() {
    let scratch = Scratch::new("inherited");
    let tell = |output: Output| told(&output);
    let name = scratch.0.join("mpiexec");
    std::os::unix::fs::symlink(REGATTA, &name).expect("a name");
    let mut mpiexec = Command::new("env");
    mpiexec.arg("--ignore-signal=CHLD").arg(name);
    let (status, _, complaints) =
        tell(mpiexec.args(["-n", "2", "true"]).output().expect("mpiexec"));
    assert_eq!(status, 0, "{complaints}");
    for words in [&["up"][..], &["hosts"], &["down"]] {
        let mut command = under(&["--ignore-signal=CHLD", "--block-signal=TERM"], words);
        command.env("XDG_RUNTIME_DIR", &scratch.0);
        let (status, _, complaints) = tell(command.output().expect("regatta"));
        assert_eq!(status, 0, "{words:?}: {complaints}");
    }
}

#[test]
fn blocked_signals_are_blocked_in_tasks() {
    let mask = status_of_task(&["--block-signal=USR2"], "SigBlk");
    assert!(
        has(&mask, Signal::USR2) && !has(&mask, Signal::TERM),
        "{mask}"
    );
}

#[test]
fn a_limit_of_file_size_is_an_error_with_a_sentence() {
    let line = format!("ulimit -f 1; exec {REGATTA} run -n 1 true");
    let output = Command::new("sh").args(["-c", &line]).output();
    let (status, _, complaints) = told(&output.expect("sh"));
    assert_eq!(status, 125, "{complaints}");
    assert!(
        complaints.contains("exceeds the file size limit"),
        "{complaints}"
    );
}

#[test]
fn a_signal_that_the_launcher_was_to_ignore_is_no_request_to_end() {
    let words = [
        "run",
        "-n",
        "1",
        "--grace=0",
        "sh",
        "-c",
        "echo up; exec sleep 600",
    ];
    let mut job = Running::start_command(&mut under(&["--ignore-signal=HUP"], &words));
    job.read_lines(1, "up");
    job.signal(Signal::HUP);
    job.signal(Signal::TERM);
    let (status, said) = job.end();
    assert_eq!(status, 143, "{said}");
}

#[test]
fn the_umask_of_tasks_is_the_users_whatever_that_is() {
    let line = format!("umask 777; exec {REGATTA} run -n 1 sh -c umask");
    let output = Command::new("sh").args(["-c", &line]).output();
    let (status, said, complaints) = told(&output.expect("sh"));
    assert_eq!((status, said.as_str()), (0, "0777\n"), "{complaints}");
}

/// Runs this shell line, which becomes the launcher. Its other process must read on after the job has ended, and add
/// `late` to what it reads.
fn assert_read_after_the_job(line: &str) {
    let mut shell = Command::new("sh")
        .args(["-c", line])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("sh");
    let mut input = shell.stdin.take().expect("a pipe");
    assert!(shell.wait().expect("its end").success());
    input.write_all(b"to the end, ").expect("its reader");
    drop(input);
    let mut heard = Vec::new();
    let output = shell.stdout.as_mut().expect("a pipe");
    output.read_to_end(&mut heard).expect("output");
    assert_eq!(text(&heard), "to the end, late\n");
}

#[test]
fn children_of_the_shell_that_has_executed_the_command_are_let_be() {
    // As in `exec regatta run ... > >(tee log)`: the reader is a child of the process that becomes the launcher.
    let line =
        format!("exec 3<&0; {{ cat <&3; echo late; }} & exec {REGATTA} run -n 1 true </dev/null");
    assert_read_after_the_job(&line);
}

#[test]
fn what_such_a_child_has_started_is_let_be_when_that_has_ended_before_the_job() {
    // The child waits for the task to open the fifo, and leaves a process behind when it ends. The task sees the end of
    // the fifo when that process ends.
    let scratch = Scratch::new("inherited-children");
    let fifo = scratch.0.join("end");
    let line = format!(
        "mkfifo {fifo}; exec 3<&0; {{ {{ cat <&3; echo late; }} 4>&- & }} 4>{fifo} & \
         exec {REGATTA} run -n 1 cat {fifo} </dev/null",
        fifo = fifo.display()
    );
    assert_read_after_the_job(&line);
}
