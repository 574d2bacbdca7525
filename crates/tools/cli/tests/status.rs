//! The exit status and the sentences of `regatta run`.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use support::{REGATTA, Scratch, run, slowness, text, told};

/// A task's rank is the third field of its join token.
const RANK: &str = "rank=$(echo $REGATTA_JOB | cut -d: -f3)";

fn script(body: &str) -> String {
    format!("{RANK}; {body}")
}

#[test]
fn success_is_zero() {
    assert_eq!(told(&run(&["-n", "3", "true"])).0, 0);
}

#[test]
fn the_first_failing_task_gives_the_status_and_is_named() {
    let body = script("[ $rank = 1 ] && exit 7; exit 0");
    let (status, _, said) = told(&run(&["-n", "3", "sh", "-c", &body]));
    assert_eq!(status, 7);
    assert!(
        said.contains("task 1 (pid ") && said.contains("exited with status 7"),
        "{said}"
    );
}

#[test]
fn a_signal_is_128_and_its_number_and_is_explained() {
    let (status, _, said) = told(&run(&["-n", "1", "sh", "-c", "kill -SEGV $$"]));
    assert_eq!(status, 139);
    assert!(
        said.contains("was killed by signal 11 (segmentation fault)"),
        "{said}"
    );
}

#[test]
fn many_failures_are_told_in_few_lines() {
    let (status, _, said) = told(&run(&["-n", "40", "false"]));
    assert_eq!(status, 1);
    assert!(said.lines().count() <= 6, "{said}");
    assert!(said.contains("36 more tasks failed"), "{said}");
}

#[test]
fn after_a_failure_the_others_are_ended() {
    let body = script("[ $rank = 0 ] && exit 3; exec sleep 600");
    let (status, _, said) = told(&run(&["-n", "3", "--grace", "0.05", "sh", "-c", &body]));
    assert_eq!(status, 3);
    assert!(
        said.contains("ending tasks 1-2, because a task failed"),
        "{said}"
    );
}

#[test]
fn a_task_that_will_not_end_is_killed() {
    let body = script("[ $rank = 0 ] && exit 3; trap '' TERM; exec sleep 600");
    let (status, ..) = told(&run(&["-n", "2", "--grace", "0", "sh", "-c", &body]));
    assert_eq!(status, 3);
}

#[test]
fn after_a_failure_the_others_go_on_if_asked() {
    let scratch = Scratch::new("go-on");
    let fifo = scratch.0.join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .expect("mkfifo")
            .success()
    );
    // Task 1 ends well after task 0 has failed, since it waits for task 0 to end.
    let body = script(&format!(
        "if [ $rank = 0 ]; then echo $$ > {0}; exit 3; else read pid < {0}; tail --pid=$pid -f /dev/null; echo survived; fi",
        fifo.display()
    ));
    let output = run(&[
        "-n",
        "2",
        "--grace",
        "0",
        "--on-failure=continue",
        "sh",
        "-c",
        &body,
    ]);
    assert_eq!(told(&output).0, 3);
    assert_eq!(text(&output.stdout), "survived\n");
}

#[test]
fn the_timeout_ends_the_job() {
    let (status, _, said) = told(&run(&["-n", "2", "--timeout", "0.1", "sleep", "600"]));
    assert_eq!(status, 124);
    assert!(
        said.contains("time limit of 0.1 s (--timeout): ending tasks 0-1"),
        "{said}"
    );
}

#[test]
fn a_program_that_never_joins_is_said_so_once() {
    let (status, _, said) = told(&run(&["-n", "4", "/bin/true"]));
    assert_eq!(status, 0);
    assert_eq!(
        said.matches("none of the 4 tasks joined Regatta").count(),
        1,
        "{said}"
    );
    assert!(said.contains("not linked to libregatta"), "{said}");
}

#[test]
fn a_missing_program_is_said_so() {
    let (status, _, said) = told(&run(&["-n", "2", "no-such-program"]));
    assert_eq!(status, 127);
    assert!(said.contains("not found in PATH"), "{said}");
    let (status, _, said) = told(&run(&["./no/such/program"]));
    assert_eq!(status, 127);
    assert!(said.contains("does not exist"), "{said}");
}

#[test]
fn a_program_in_this_directory_is_pointed_at() {
    let scratch = Scratch::new("here");
    scratch.file("hello-here", 0o755, b"#!/bin/sh\n");
    let output = Command::new(REGATTA)
        .args(["run", "hello-here"])
        .current_dir(&scratch.0)
        .output()
        .expect("regatta");
    assert_eq!(output.status.code(), Some(127));
    assert!(
        text(&output.stderr).contains("write ./hello-here"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_program_that_cannot_be_executed_is_explained() {
    let scratch = Scratch::new("not-executable");
    let cases = [
        (scratch.file("plain", 0o644, b"#!/bin/sh\n"), "chmod +x"),
        (
            scratch.file("garbage", 0o755, b"garbage\n"),
            "neither a program for this machine",
        ),
        (
            scratch.file("lost", 0o755, b"#!/no/such/interpreter\n"),
            "/no/such/interpreter, which does not exist",
        ),
        (
            scratch.0.to_str().expect("a plain path").to_owned(),
            "is a directory",
        ),
    ];
    for (program, expected) in cases {
        let (status, _, said) = told(&run(&["-n", "2", &program]));
        assert_eq!(status, 126, "{program}: {said}");
        assert!(said.contains(expected), "{program}: {said}");
        assert_eq!(said.lines().count(), 1, "{program}: {said}");
    }
}

#[test]
fn absurd_numbers_of_tasks_get_a_sentence() {
    for (number, status, expected) in [
        ("0", 2, "at least one task"),
        ("abc", 2, "a whole number"),
        ("-1", 2, "a whole number"),
        ("100000000", 125, "Ask for fewer tasks"),
        ("99999999999", 2, "no host can run"),
    ] {
        let (got, _, said) = told(&run(&[&format!("-n{number}"), "true"]));
        assert_eq!(got, status, "-n {number}: {said}");
        assert!(said.contains(expected), "-n {number}: {said}");
    }
}

#[test]
fn limits_are_named_with_the_way_to_raise_them() {
    let limited = |limits: &str, run: &str| {
        // The limit of processes does not apply to root, so root becomes another user.
        let somebody = rustix::process::geteuid().is_root();
        let mut command = match somebody {
            true => Command::new("setpriv"),
            false => Command::new("bash"),
        };
        if somebody {
            command.args(["--reuid=54321", "--regid=54321", "--clear-groups", "bash"]);
        }
        let output = command
            .args(["-c", &format!("{limits}; exec {run}")])
            .output()
            .expect("a shell");
        (output.status.code(), text(&output.stderr))
    };
    let scratch = Scratch::new("limits");
    let regatta = scratch.file(
        "regatta",
        0o755,
        &std::fs::read(REGATTA).expect("the command"),
    );
    for tasks in [40, 100] {
        let (status, said) = limited("ulimit -u 20", &format!("{regatta} run -n {tasks} sleep 5"));
        assert_eq!(status, Some(125), "{said}");
        assert!(
            said.contains("RLIMIT_NPROC") && said.contains("ulimit -u"),
            "{said}"
        );
    }
    let runtime = scratch.0.join("run");
    std::fs::create_dir(&runtime).expect("a folder");
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&runtime, Some(54321), Some(54321)).expect("its owner");
    }
    for processes in [1, 2] {
        let up = format!("env XDG_RUNTIME_DIR={} {regatta} up", runtime.display());
        let (status, said) = limited(&format!("ulimit -u {processes}"), &up);
        assert_eq!(status, Some(125), "{said}");
        assert!(
            said.contains("RLIMIT_NPROC") && said.contains("ulimit -u"),
            "{said}"
        );
        assert_eq!(said.matches("regatta: ").count(), 1, "{said}");
    }
    let (status, said) = limited("ulimit -n 70", &format!("{regatta} run --label -n 50 true"));
    assert_eq!(status, Some(125), "{said}");
    assert!(
        said.contains("RLIMIT_NOFILE") && said.contains("ulimit -Hn 214"),
        "{said}"
    );
}

#[test]
fn the_limit_of_open_files_is_raised_for_us_and_not_for_the_tasks() {
    let shell = format!("ulimit -Sn 50; exec {REGATTA} run -n 40 --label sh -c 'ulimit -n'");
    let output = Command::new("sh")
        .args(["-c", &shell])
        .output()
        .expect("a shell");
    let lines = text(&output.stdout);
    assert_eq!(lines.lines().count(), 40, "{lines}{}", text(&output.stderr));
    assert!(lines.lines().all(|line| line.ends_with(" 50")), "{lines}");
}

#[test]
fn the_programs_own_options_are_its_own() {
    let output = run(&["-n", "1", "echo", "-n", "--label", "-h", "x"]);
    assert_eq!(text(&output.stdout), "--label -h x");
}

#[test]
fn only_task_0_reads_our_input() {
    let mut child = Command::new(REGATTA)
        .args(["run", "-n", "3", "--label", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("regatta");
    let mut input = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, b"one\ntwo\n").expect("a reader");
    drop(input);
    let output = child.wait_with_output().expect("its end");
    assert_eq!(text(&output.stdout), "[0] one\n[0] two\n");
}

#[test]
fn a_wrapper_script_passes_the_join_token_on() {
    let scratch = Scratch::new("wrapper");
    let inner = scratch.file(
        "inner",
        0o755,
        b"#!/bin/sh\nfd=$(echo $REGATTA_JOB | cut -d: -f2)\nreadlink /proc/$$/fd/$fd\n",
    );
    let outer = scratch.file(
        "outer",
        0o755,
        format!("#!/bin/sh\nexport LIMIT=1\n{inner} \"$@\"\nexit $?\n").as_bytes(),
    );
    let output = run(&["-n", "2", &outer]);
    assert_eq!(
        text(&output.stdout).matches("memfd:regatta").count(),
        2,
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn tasks_inherit_nothing_but_what_is_meant_for_them() {
    // Builtins only: a pipeline or a substitution would show up in the shell's own descriptors.
    const LOOK: &str = "while read key value; do [ $key = SigBlk: ] && blocked=$value; done < /proc/$$/status; \
                        cd /proc/$$/fd; echo * $blocked";
    // Descriptors that the caller of this test left open are passed on, as by any program.
    let plain = Command::new("bash")
        .args(["-c", LOOK])
        .stdin(Stdio::null())
        .output()
        .expect("bash");
    let expected: Vec<String> = text(&plain.stdout)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    assert!(
        expected.contains(&"0000000000000000".to_owned()),
        "{expected:?}"
    );
    let output = run(&["-n", "2", "bash", "-c", LOOK]);
    for line in text(&output.stdout).lines() {
        let found: Vec<String> = line
            .split_whitespace()
            .filter(|&word| word != "60" && word != "62")
            .map(str::to_owned)
            .collect();
        assert_eq!(found, expected, "{line}");
        assert!(line.contains(" 60 62 "), "{line}");
    }
}

#[test]
fn a_thousand_tasks_take_seconds() {
    let slow = slowness();
    let started = std::time::Instant::now();
    let (status, ..) = told(&run(&["-n", "1000", "/bin/true"]));
    let took = started.elapsed();
    assert_eq!(status, 0);
    // 0.3 s on two cores. The limit leaves room for a build without optimisation.
    let limit = 10.0 * slow.max(slowness());
    assert!(took.as_secs_f64() < limit, "{took:?}");
}

#[test]
fn json_is_one_object_per_line() {
    let output = run(&[
        "-n",
        "2",
        "--json",
        "sh",
        "-c",
        "echo 'a \"b\"'; echo e >&2; exit 4",
    ]);
    let events: Vec<serde_json::Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let of = |kind: &str| {
        events
            .iter()
            .filter(|event| event["event"] == kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (of("start").len(), of("end").len(), of("line").len()),
        (2, 2, 4)
    );
    assert!(
        of("line")
            .iter()
            .any(|line| line["text"] == "a \"b\"" && line["stream"] == "stdout")
    );
    let job = of("job");
    assert_eq!(
        (
            job[0]["status"].as_i64(),
            job[0]["first_failure"]["status"].as_i64()
        ),
        (Some(4), Some(4))
    );
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    let refused = run(&["--json", "no-such-program"]);
    let job: serde_json::Value = serde_json::from_slice(&refused.stdout).expect("JSON");
    assert_eq!(job["status"], 127);
}

#[test]
fn tasks_are_bound_as_asked() {
    let affinity = |bind: &str| {
        let output = run(&[
            "-n",
            "2",
            "--bind",
            bind,
            "sh",
            "-c",
            "grep Cpus_allowed_list /proc/$$/status",
        ]);
        let mut lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let own = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let own = own
        .lines()
        .find(|line| line.starts_with("Cpus_allowed_list"))
        .expect("an affinity");
    assert_eq!(affinity("none"), [own, own]);
    let first = own
        .rsplit(['\t', ' '])
        .next()
        .and_then(|list| list.split([',', '-']).next())
        .expect("a core");
    let bound = format!("Cpus_allowed_list:\t{first}");
    assert_eq!(affinity(first), [bound.clone(), bound]);
}

#[test]
fn a_job_that_cannot_stay_is_no_success() {
    let scratch = Scratch::new("resident");
    let home = scratch.file("home", 0o600, b"");
    let home = std::path::Path::new(&home).parent().expect("a directory");
    // With this file size limit there is no room for the memory that tasks share.
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 8; exec \"$0\" resident early", REGATTA])
        .env("XDG_RUNTIME_DIR", home)
        .env("HOME", home)
        .env_remove("REGATTA_VM")
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let (status, _, said) = told(&output);
    assert_eq!(status, 125, "{said}");
    assert!(
        said.contains("ended with status 125 before processes could join the job"),
        "{said}"
    );
    let log = std::fs::read_to_string(home.join("regatta/early.job.log")).expect("a log");
    assert!(log.contains("file size limit"), "{log}");
    assert!(!home.join("regatta/early.job.socket").exists());
}

#[test]
fn a_directory_for_sockets_that_another_process_keeps_locked_is_told_with_that_process() {
    let scratch = Scratch::new("locked");
    let directory = scratch.0.join("regatta");
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::create_dir(&directory).expect("a folder");
    std::fs::set_permissions(&directory, mode).expect("its mode");
    let held = std::fs::File::open(&directory).expect("the folder");
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
    let output = Command::new(REGATTA)
        .arg("up")
        .env("XDG_RUNTIME_DIR", &scratch.0)
        .output()
        .expect("regatta");
    let (status, _, said) = told(&output);
    assert_eq!(status, 125, "{said}");
    let holder = format!("by the process {} (", std::process::id());
    let parts = [&directory.display().to_string(), &holder, "kill -CONT"];
    assert!(parts.iter().all(|part| said.contains(*part)), "{said}");
}
