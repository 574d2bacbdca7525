//! An answer that cannot be written is an error with a sentence. If the reader has gone, a command ends without a
//! message. Invalid options are refused before anything is done.

mod support;

use std::fs::File;
use std::process::{Command, Stdio};

use support::lan::Lan;
use support::{REGATTA, Scratch, run, text, told};

/// Returns a device that is always full.
fn full() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/full")
        .expect("the device")
        .into()
}

/// Returns the status and the standard error of a command whose output goes to a full device.
fn lost(command: &mut Command) -> (i32, String) {
    let output = command.stdout(full()).output().expect("regatta");
    let (status, _, said) = told(&output);
    (status, said)
}

#[test]
fn output_of_a_job_in_a_virtual_machine_that_cannot_be_written_is_an_error() {
    let lan = Lan::new(&["alpha", "beta"]);
    lan.good("alpha", &["up", "--as", "alpha", "beta"]);
    for form in [&[][..], &["--label"], &["--json"]] {
        let words = [&[REGATTA, "run", "-n", "2"], form, &["/bin/echo", "word"]].concat();
        let (status, said) = lost(&mut lan.on("alpha", &words));
        assert_eq!(status, 125, "{form:?}: {said}");
        assert!(
            said.contains("could not be written (No space left"),
            "{form:?}: {said}"
        );
    }
    for words in [
        &["hosts"][..],
        &["hosts", "--json"],
        &["ps"],
        &["ps", "--json"],
    ] {
        let (status, said) = lost(&mut lan.on("alpha", &[&[REGATTA], words].concat()));
        assert_eq!(status, 125, "{words:?}: {said}");
        assert!(
            said.contains("cannot be written to standard output"),
            "{said}"
        );
    }
    lan.good("alpha", &["down"]);
}

#[test]
fn labelled_output_that_cannot_be_written_is_an_error_without_a_machine_too() {
    for form in ["--label", "--json"] {
        let words = [
            "run",
            "-n",
            "2",
            form,
            "--host",
            "localhost",
            "/bin/echo",
            "word",
        ];
        let (status, said) = lost(Command::new(REGATTA).args(words));
        assert_eq!(status, 125, "{form}: {said}");
        assert!(
            said.contains("could not be written (No space left"),
            "{said}"
        );
    }
}

#[test]
fn answers_that_cannot_be_written_are_errors() {
    for words in [
        &["doctor", "--json"][..],
        &["doctor"],
        &["--help"],
        &["--version"],
    ] {
        let (status, said) = lost(Command::new(REGATTA).args(words));
        assert_eq!(status, 125, "{words:?}: {said}");
        assert!(
            said.contains("cannot be written to standard output"),
            "{said}"
        );
    }
}

#[test]
fn a_reader_who_has_gone_ends_a_command_quietly() {
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    drop(reader);
    let output = Command::new(REGATTA)
        .args(["doctor", "--json"])
        .stdout(writer)
        .output()
        .expect("regatta");
    let (status, _, said) = told(&output);
    assert_eq!((status, said.as_str()), (141, ""));
}

#[test]
fn a_daemon_keeps_nothing_that_was_open_where_its_machine_was_begun() {
    let lan = Lan::new(&["alpha", "beta"]);
    // The reader of the pipe ends when all processes have ended that could write to it.
    let script = format!("{REGATTA} up --as alpha beta 9>&1 >/dev/null | cat");
    let mut pipeline = lan.on("alpha", &["timeout", "60", "sh", "-c", &script]);
    let (status, _, said) = told(&pipeline.output().expect("nsenter"));
    assert_eq!(status, 0, "{said}");
    // The same holds for tasks that a daemon has started.
    let words = [REGATTA, "run", "-n", "2", "sh", "-c", "echo /proc/$$/fd/*"];
    let job = lan.on("alpha", &words).output().expect("nsenter");
    let lines = text(&job.stdout);
    assert_eq!(lines.lines().count(), 2, "{lines}{}", text(&job.stderr));
    assert!(!lines.contains("/fd/9"), "{lines}");
    lan.good("alpha", &["down"]);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for (words, part) in [
        (&["--rsh", "", "--host", "a"][..], "omit --rsh"),
        (&["--rsh", " ", "--host", "a"], "omit --rsh"),
        (&["--host-timeout", "0"], "the time must be above 0"),
        (&["--host-timeout", "0.001"], "give 0.1 or more"),
        (&["--connect-timeout", "0"], "the time must be above 0"),
        (&["--timeout", "0"], "the time must be above 0"),
        (&["--timeout", "1e18"], "more than thirty years"),
        (&["--timeout", "nan"], "give a number of seconds"),
        (&["--grace=-1"], "give a number of seconds"),
        (&["--grace", "1e30"], "give a number of seconds"),
        (&["--directory", ""], "omit --directory"),
        (&["--most-tasks", "0"], "at least one task"),
        (
            &["--most-tasks", "70000"],
            "no job can have more than 65536",
        ),
        (&["--most-tasks", "1", "-n", "2"], "--most-tasks allows 1"),
        (&["--bind", ""], "is not the number of a core"),
        (&["--vm", ""], "is not the name of a virtual machine"),
        (&["--host", "localhost,127.0.0.1"], "both name this host"),
    ] {
        let (status, _, said) = told(&run(&[words, &["true"]].concat()));
        assert_eq!(status, 2, "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
    }
}

#[test]
fn help_lists_the_commands_that_are_for_users_and_no_others() {
    let output = Command::new(REGATTA).arg("--help").output();
    let help = text(&output.expect("regatta").stdout);
    let listed = |command: &str| {
        let start = format!("  {command} ");
        help.lines().any(|line| line.starts_with(&start))
    };
    for command in ["run", "up", "hosts", "console", "mpiexec", "doctor", "race"] {
        assert!(listed(command), "{command}: {help}");
    }
    for command in [
        "agent", "attend", "daemon", "generate", "pvmd", "reach", "resident",
    ] {
        assert!(!listed(command), "{command}: {help}");
    }
}

#[test]
fn what_others_start_is_refused_by_hand_and_harms_nothing() {
    for words in [
        &["daemon"][..],
        &["agent"],
        &["daemon", "--temporary"],
        &["agent", "--temporary"],
    ] {
        let output = Command::new(REGATTA)
            .args(words)
            .stdin(Stdio::null())
            .output()
            .expect("regatta");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!(text(&output.stdout), "", "{words:?}");
        assert!(text(&output.stderr).contains("not by hand"));
    }
    assert!(std::path::Path::new(REGATTA).exists());
}

#[test]
fn a_host_that_begins_a_machine_is_not_named_among_the_others() {
    let lan = Lan::new(&["alpha"]);
    let (status, _, said) = lan.regatta("alpha", &["up", "--as", "alpha", "alpha"]);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("the host alpha is this host"), "{said}");
    let (status, _, said) = lan.regatta("alpha", &["up", "--as", "alpha", "b", "b"]);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("the host b is named twice"), "{said}");
    let (status, _, said) = lan.regatta("alpha", &["hosts"]);
    assert_eq!(status, 125, "{said}");
}

#[test]
fn a_comparison_of_races_whose_reader_has_gone_ends_quietly() {
    let results = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/results");
    let mut races = std::fs::read_dir(results)
        .expect("recorded races")
        .flatten();
    let race = races
        .find_map(|it| Some(it.path().join("results.csv")).filter(|file| file.exists()))
        .expect("a race");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = Command::new(REGATTA)
        .args(["race", "compare"])
        .args([&race, &race])
        .stdout(writer)
        .output()
        .expect("regatta");
    let (status, _, complaints) = told(&output);
    assert_eq!((status, complaints.as_str()), (141, ""));
}

#[test]
fn a_race_that_is_refused_leaves_no_folder() {
    let scratch = Scratch::new("refused-race");
    let output = Command::new(REGATTA)
        .args(["race", "--environment", "nobody"])
        .current_dir(&scratch.0)
        .output()
        .expect("regatta");
    let (status, _, complaints) = told(&output);
    assert!(
        complaints.contains("unknown environment \"nobody\""),
        "{complaints}"
    );
    assert_eq!(status, 1);
    let left = std::fs::read_dir(&scratch.0).expect("the folder").count();
    assert_eq!(left, 0);
}

#[test]
fn what_a_shell_complains_of_does_not_steer_the_terminal() {
    let scratch = Scratch::new("steering-shell");
    let script = scratch.0.join("shell");
    let text = "printf '\\033[2Jmy \\033]0;title\\007host\\n' >&2\nexit 255\n";
    std::fs::write(&script, text).expect("a script");
    let rsh = format!("sh {}", script.display());
    let output = run(&["-n", "1", "--host", "alpha", "--rsh", &rsh, "true"]);
    let (status, _, complaints) = told(&output);
    assert_ne!(status, 0);
    assert!(complaints.contains("\\u{1b}[2Jmy "), "{complaints:?}");
    assert!(!complaints.contains('\x1b'), "{complaints:?}");
}
