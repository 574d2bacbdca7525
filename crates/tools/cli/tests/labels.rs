//! Labelled output: complete lines, in order, none lost.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use support::{REGATTA, Running, await_ends, run, text, told};

#[test]
fn every_line_has_its_label() {
    let output = run(&[
        "-n",
        "3",
        "--label",
        "sh",
        "-c",
        "echo one; echo two; echo bad >&2; printf part",
    ]);
    let lines = text(&output.stdout);
    for rank in 0..3 {
        let mine: Vec<&str> = lines
            .lines()
            .filter_map(|line| line.strip_prefix(&format!("[{rank}] ")))
            .collect();
        assert_eq!(mine, ["one", "two", "part"]);
        assert!(text(&output.stderr).contains(&format!("[{rank}] bad\n")));
    }
    assert_eq!(lines.lines().count(), 9);
}

#[test]
fn labels_and_lines_of_json_exclude_each_other() {
    for form in [["--label", "--json"], ["--json", "-l"]] {
        let (status, output, said) =
            told(&run(&[&form[..], &["-n", "1", "echo", "it ran"]].concat()));
        assert_eq!((status, &*output), (2, ""), "{said}");
        assert!(
            said.contains("--label") && said.contains("--json"),
            "{said}"
        );
    }
}

#[test]
fn a_slow_reader_loses_nothing() {
    const LINES: usize = 60_000;
    const TASKS: usize = 4;
    let mut child = Command::new(REGATTA)
        .args([
            "run",
            "-n",
            &TASKS.to_string(),
            "--label",
            "seq",
            &LINES.to_string(),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("regatta");
    let mut next = [1_usize; TASKS];
    let reader = BufReader::with_capacity(16, child.stdout.take().expect("a pipe"));
    // The reader reads 16 bytes at a time, which is slow enough.
    for line in reader.lines().map(|line| line.expect("text")) {
        let (rank, value) = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("] "))
            .expect("a label");
        let rank: usize = rank.parse().expect("a rank");
        assert_eq!(value, next[rank].to_string(), "task {rank}");
        next[rank] += 1;
    }
    assert_eq!(next, [LINES + 1; TASKS]);
    assert!(child.wait().expect("its end").success());
}

#[test]
fn a_reader_who_reads_nothing_does_not_stop_the_signals() {
    let mut job = Running::start(&["-n", "2", "--label", "yes"]);
    job.read_lines(1, "[0] y");
    // The pipe to this process is full by now or soon. The launcher must still handle signals.
    let tasks: Vec<_> = job
        .processes()
        .into_iter()
        .filter(|process| process.name == "yes")
        .collect();
    assert_eq!(tasks.len(), 2);
    job.signal(Signal::TERM);
    await_ends(&tasks);
    // The launcher holds the rest until this process has read it, or closes the pipe.
    assert!(job.child.try_wait().expect("a child").is_none());
    job.stop_reading();
    assert_eq!(job.end().0, 143);
}

#[test]
fn a_reader_who_leaves_ends_the_writers() {
    let shell = format!("{REGATTA} run -n 2 --label yes | head -n 1");
    let output = Command::new("bash")
        .args(["-c", &format!("{shell}; echo ${{PIPESTATUS[0]}}")])
        .output()
        .expect("bash");
    let lines = text(&output.stdout);
    assert_eq!(lines.lines().last(), Some("141"), "{lines}");
}
