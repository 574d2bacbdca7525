//! Commands and options known from other launchers: `mpiexec`, also as a subcommand, and `-np`.

mod support;

use std::process::{Command, Stdio};

use support::{REGATTA, Scratch, run, text, told};

fn mpiexec(words: &[&str]) -> Command {
    let mut command = Command::new(REGATTA);
    command.arg("mpiexec").args(words).stdin(Stdio::null());
    command
}

/// Returns the status, output and errors of mpiexec with these arguments.
fn played(words: &[&str]) -> (i32, String, String) {
    told(&mpiexec(words).output().expect("regatta"))
}

#[test]
fn help_and_version_are_answers_and_need_no_program() {
    for word in ["--help", "-h", "-help"] {
        let (status, output, said) = played(&[word]);
        assert_eq!((status, said.as_str()), (0, ""), "{word}");
        assert!(output.contains("-outfile-pattern FILE"), "{output}");
    }
    for word in ["--version", "-V"] {
        let (status, output, said) = played(&[word]);
        assert_eq!((status, said.as_str()), (0, ""), "{word}");
        assert!(output.starts_with("mpiexec (Regatta) "), "{output}");
    }
}

#[test]
fn each_option_that_help_lists_is_one() {
    let help = played(&["--help"]).1;
    let mut seen = 0;
    for line in help.lines().filter(|line| line.starts_with("  -")) {
        let (options, _) = line.trim().split_once("  ").expect("two columns");
        for option in options.split(", ") {
            let name = option.split([' ', '[']).next().expect("a name");
            let (_, _, said) = played(&[name]);
            assert!(!said.contains("unknown option"), "{name}: {said}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{help}");
    assert!(played(&["-colour"]).2.contains("unknown option"));
}

#[test]
fn processes_write_to_files_of_their_own() {
    let scratch = Scratch::new("mpiexec-files");
    let mut command = mpiexec(&["-n", "2", "-outfile-pattern", "out.%r", "sh", "-c"]);
    command.arg("echo written by ${REGATTA_JOB#*:*:}");
    let (status, output, said) = told(&command.current_dir(&scratch.0).output().expect("regatta"));
    assert_eq!((status, output.as_str()), (0, ""), "{said}");
    for rank in 0..2 {
        let file = scratch.0.join(format!("out.{rank}"));
        let written = std::fs::read_to_string(file).expect("its file");
        assert!(
            written.starts_with(&format!("written by {rank}:")),
            "{written}"
        );
    }
}

#[test]
fn the_standard_input_goes_to_process_0_or_to_nobody() {
    for (words, expected) in [
        (&["-n", "2"][..], "words"),
        (&["-stdin", "none", "-n", "2"], ""),
    ] {
        let mut command = mpiexec(words);
        let mut job = command
            .arg("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("regatta");
        let mut input = job.stdin.take().expect("a pipe");
        // If the input is not read, the pipe may be closed already.
        let _ = std::io::Write::write_all(&mut input, b"words");
        drop(input);
        let output = job.wait_with_output().expect("its end");
        assert_eq!(text(&output.stdout), expected, "{words:?}");
    }
    let (status, _, said) = played(&["-stdin", "all", "true"]);
    assert_eq!(status, 2);
    assert!(said.contains("goes to process 0"), "{said}");
}

#[test]
fn processes_are_bound_as_the_options_say_and_tell_where_they_run() {
    let words = ["-n", "1", "-report-bindings", "-bind-to", "user:0", "true"];
    let (status, _, said) = played(&words);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains(": cores 0\n"), "{said}");
    let (status, _, said) = played(&["-n", "1", "-bind-to", "socket", "true"]);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("-bind-to socket is ignored"), "{said}");
}

#[test]
fn so_many_processes_on_each_host_are_as_many_as_there_are_hosts_times_that() {
    assert_eq!(played(&["-ppn", "3", "echo", "x"]).1, "x\n".repeat(3));
    let rsh = [
        "--rsh",
        "sh -c",
        "--host",
        "alpha,beta:1",
        "--per-host",
        "2",
    ];
    let output = run(&[&rsh[..], &["echo", "x"]].concat());
    assert_eq!(told(&output).1, "x\n".repeat(3));
}

#[test]
fn np_is_n() {
    let (status, output, said) = told(&run(&["--label", "-np", "2", "echo", "-np", "5"]));
    assert_eq!(status, 0, "{said}");
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] -np 5", "[1] -np 5"]);
}
