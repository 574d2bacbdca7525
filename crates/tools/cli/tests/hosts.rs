//! `regatta run --host`: jobs on several hosts, and the failures of hosts.
//!
//! The hosts of these tests are simulated: `--rsh` runs the agents on this machine, each with a segment of its own.

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use rustix::process::{Signal, kill_process};
use support::{REGATTA, Running, Scratch, await_ends, look_until, run, told};

/// Two simulated hosts.
const TWO: [&str; 4] = ["--host", "alpha:2,beta:2", "--rsh", "sh -c"];
const RANK: &str = "rank=$(echo $REGATTA_JOB | cut -d: -f3)";

fn script(body: &str) -> String {
    format!("{RANK}; {body}")
}

fn on_two(options: &[&str], body: &str) -> (i32, String, String) {
    let body = script(body);
    told(&run(&[&TWO[..], options, &["sh", "-c", &body]].concat()))
}

/// The options for hosts whose shells are run by a script, which gets the name of the host and then `sh`.
struct Hosts {
    _scratch: Scratch,
    rsh: String,
}

impl Hosts {
    fn new(name: &str, body: &str) -> Self {
        let scratch = Scratch::new(name);
        let text = format!("#!/bin/sh\nhost=$1; shift\n{body}\nexec \"$@\"\n");
        let path = scratch.file("reach", 0o755, text.as_bytes());
        Self {
            rsh: format!("{path} {{host}}"),
            _scratch: scratch,
        }
    }

    /// Only the script distinguishes these names, so one of the hosts must be in a namespace of its own.
    fn run(&self, options: &[&str], task: &[&str]) -> (i32, String, String) {
        let hosts = ["--host", "alpha:1,beta:1", "--rsh", &self.rsh];
        told(&run(&[&hosts[..], options, task].concat()))
    }
}

#[test]
fn a_job_has_one_world_and_one_output() {
    let (status, output, _) = on_two(
        &["--label"],
        "echo \"$rank of $(echo $REGATTA_JOB | cut -d: -f4)\"",
    );
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    assert_eq!(status, 0);
    assert_eq!(
        lines,
        ["[0] 0 of 4", "[1] 1 of 4", "[2] 2 of 4", "[3] 3 of 4"]
    );
}

#[test]
fn every_task_listens_and_knows_where_the_others_do() {
    // The sixth field of the join token is the descriptor of a listening socket (state 0A).
    let body = "fd=$(echo $REGATTA_JOB | cut -d: -f6); \
                socket=$(readlink /proc/self/fd/$fd | tr -dc 0-9); \
                grep -hw $socket /proc/net/tcp /proc/net/tcp6 | awk '{print $4}'";
    let (status, output, said) = on_two(&[], body);
    assert_eq!((status, output.as_str()), (0, "0A\n0A\n0A\n0A\n"), "{said}");
}

#[test]
fn ranks_are_dealt_in_blocks_or_in_turn() {
    let hosts_of = |map: &str| {
        let (_, output, _) = on_two(&["--json", "--map", map], "exit 0");
        let mut starts: Vec<(u64, String)> = output
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|event| event["event"] == "start")
            .filter_map(|event| Some((event["task"].as_u64()?, event["host"].as_str()?.to_owned())))
            .collect();
        starts.sort();
        starts.into_iter().map(|(_, host)| host).collect::<Vec<_>>()
    };
    assert_eq!(hosts_of("block"), ["alpha", "alpha", "beta", "beta"]);
    assert_eq!(hosts_of("round"), ["alpha", "beta", "alpha", "beta"]);
}

#[test]
fn a_file_names_the_hosts() {
    let scratch = Scratch::new("hostfile");
    let file = scratch.file("hosts", 0o644, b"alpha slots=1 # one\nbeta:2\n");
    let (status, output, _) = told(&run(&[
        "--hostfile",
        &file,
        "--rsh",
        "sh -c",
        "echo",
        "here",
    ]));
    assert_eq!((status, output.as_str()), (0, "here\nhere\nhere\n"));
    let (status, _, said) = told(&run(&["--hostfile", "/no/such", "true"]));
    assert!(status == 2 && said.contains("/no/such"), "{said}");
}

#[test]
fn the_first_failing_task_gives_the_status_and_is_named_with_its_host() {
    let (status, _, said) = on_two(&[], "[ $rank = 3 ] && exit 7; exit 0");
    assert_eq!(status, 7);
    assert!(
        said.contains("task 3 (pid ") && said.contains(" on beta) exited with status 7"),
        "{said}"
    );
    let (status, _, said) = on_two(&[], "[ $rank = 0 ] && kill -SEGV $$; exit 0");
    assert_eq!(status, 139);
    assert!(said.contains("on alpha) was killed by signal 11"), "{said}");
}

#[test]
fn after_a_failure_tasks_on_other_hosts_are_ended_too() {
    let (status, _, said) = on_two(
        &["--grace", "0.05"],
        "[ $rank = 0 ] && exit 3; exec sleep 600",
    );
    assert_eq!(status, 3);
    assert!(
        said.contains("ending tasks 1-3, because a task failed"),
        "{said}"
    );
}

#[test]
fn output_is_passed_on_byte_by_byte() {
    // Much more than the window, with every byte value in it, and no newline at the end.
    let body = "[ $rank = 2 ] || exit 0; i=0; while [ $i -lt 48 ]; do cat \"$FILE\"; i=$((i + 1)); done; printf end";
    let scratch = Scratch::new("bytes");
    let bytes: Vec<u8> = (0..65_537_u32).map(|n| (n * 7 + n / 256) as u8).collect();
    let file = scratch.file("bytes", 0o644, &bytes);
    let output = Command::new(REGATTA)
        .arg("run")
        .args(TWO)
        .args(["sh", "-c", &script(body)])
        .env("FILE", file)
        .stdin(Stdio::null())
        .output()
        .expect("regatta");
    let mut expected = bytes.repeat(48);
    expected.extend_from_slice(b"end");
    assert!(
        output.stdout == expected,
        "{} bytes of {}",
        output.stdout.len(),
        expected.len()
    );
}

#[test]
fn task_0_has_the_standard_input_wherever_it_is() {
    let mut child = Command::new(REGATTA)
        .arg("run")
        .args(TWO)
        .args(["sh", "-c", &script("[ $rank = 0 ] && exec wc -c; exec cat")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("regatta");
    let mut input = child.stdin.take().expect("its input");
    // More than the window.
    for _ in 0..40 {
        input.write_all(&[7; 50_000]).expect("a reader");
    }
    drop(input);
    let output = child.wait_with_output().expect("its end");
    assert_eq!(support::text(&output.stdout).trim(), "2000000");
}

#[test]
fn a_task_that_reads_no_input_ends_the_job_all_the_same() {
    let mut job = Running::start_command(
        Command::new(REGATTA)
            .arg("run")
            .args(TWO)
            .args(["echo", "done"])
            .stdin(Stdio::piped()),
    );
    job.read_lines(4, "done");
    // The input is still open.
    let input = job.child.stdin.take();
    assert_eq!(job.end().0, 0);
    drop(input);
}

#[test]
fn a_chatty_task_does_not_hold_up_the_end() {
    let mut job = Running::start(&[&TWO[..], &["--label", "sh", "-c", "exec yes"]].concat());
    for rank in 0..4 {
        job.read_lines(1, &format!("[{rank}] y"));
    }
    let processes = job.processes();
    // Nothing is read any more, and all buffers are full. The signal still gets through, and the tasks die of it.
    job.signal(Signal::TERM);
    let found = format!("{processes:?}");
    let tasks: Vec<_> = processes
        .into_iter()
        .filter(|process| process.name == "yes")
        .collect();
    assert_eq!(tasks.len(), 4, "{found}");
    await_ends(&tasks);
    // The job ends when the rest has been read.
    job.stop_reading();
    assert_eq!(job.end().0, 143);
}

#[test]
fn a_reader_that_leaves_ends_tasks_elsewhere_by_a_broken_pipe() {
    let mut job = Running::start(&[&TWO[..], &["sh", "-c", "exec yes"]].concat());
    job.read_lines(10, "y");
    job.stop_reading();
    let (status, said) = job.end();
    assert_eq!(status, 141, "{said}");
}

#[test]
fn signals_reach_tasks_on_all_hosts() {
    let body = script(
        "trap 'echo got $rank; exit 0' USR1; echo up; while :; do sleep 600 & wait $!; done",
    );
    let mut job = Running::start(&[&TWO[..], &["sh", "-c", &body]].concat());
    job.read_lines(4, "up");
    job.signal(Signal::USR1);
    let mut heard = job.read_lines(4, "got");
    heard.sort_unstable();
    assert_eq!(heard, ["got 0", "got 1", "got 2", "got 3"]);
    job.end();
}

#[test]
fn tasks_of_an_agent_block_no_more_signals_than_others() {
    let task = ["grep", "SigBlk", "/proc/self/status"];
    let (_, here, _) = told(&run(&[&["-n", "1"], &task[..]].concat()));
    let hosts = Hosts::new("mask", "");
    let (_, there, said) = told(&run(&[
        &["--host", "alpha:1", "--rsh", &hosts.rsh],
        &task[..],
    ]
    .concat()));
    assert!(
        here.contains("SigBlk") && here == there,
        "{here}{there}{said}"
    );
}

#[test]
fn what_tasks_leave_behind_on_a_host_is_ended_and_named() {
    // The task ends when the other shell has reported that it runs.
    let script = r#"(setsid sh -c "echo; sleep 600; :" &) | read -r line; exit 0"#;
    let (status, _, said) = on_two(&[], script);
    assert_eq!(status, 0);
    assert!(
        said.contains("processes that they started still run") && said.contains("sh (pid "),
        "{said}"
    );
    assert!(
        said.contains("on alpha") && said.contains("on beta"),
        "{said}"
    );
}

const FAMILY: &str = "sleep 600 & setsid sleep 601 & (setsid sleep 602 &); echo up; wait";

/// Starts two tasks on each of two hosts, each with three kinds of children.
fn family(options: &[&str]) -> Running {
    let mut job = Running::start(&[&TWO[..], options, &["sh", "-c", FAMILY]].concat());
    job.read_lines(4, "up");
    // Front, watch, supervisor, the reader of the input; three processes of each agent; four of each task.
    look_until("all of the family runs", || {
        (job.processes().len() >= 4 + 6 + 16).then_some(())
    });
    job
}

#[test]
fn kill_9_of_the_launcher_leaves_nothing_on_any_host() {
    let job = family(&[]);
    let processes = job.processes();
    job.signal(Signal::KILL);
    await_ends(&processes);
    assert!(job.processes().is_empty());
    job.end();
}

/// Returns the processes of the job with this name, in the order of their hosts.
fn named(job: &Running, name: &str) -> Vec<support::Process> {
    let mut found: Vec<_> = job
        .processes()
        .into_iter()
        .filter(|process| process.name == name)
        .collect();
    found.sort_by_key(|process| process.pid.as_raw_nonzero());
    found
}

#[test]
fn a_lost_channel_is_a_lost_host_and_the_rest_goes_on_if_asked() {
    let mut job = family(&["--on-failure", "continue"]);
    // Both halves of one agent, as if its host had lost power.
    let (guards, agents) = (named(&job, "regatta-guard"), named(&job, "regatta-agent"));
    assert_eq!((guards.len(), agents.len()), (2, 2));
    let tasks_before = named(&job, "sh").len();
    kill_process(guards[1].pid, Signal::STOP).expect("a living process");
    agents[1].kill();
    guards[1].kill();
    look_until("the tasks of the lost host end", || {
        (named(&job, "sh").len() <= tasks_before - 2).then_some(())
    });
    // The first cause of its end determines the status of a job.
    job.await_error("lost with it: tasks ");
    let processes = job.processes();
    job.signal(Signal::TERM);
    await_ends(&processes);
    let (status, said) = job.end();
    assert_eq!(status, 137, "{said}");
    assert!(said.contains("is lost: its channel ended"), "{said}");
    assert!(said.contains("lost with it: tasks "), "{said}");
}

#[test]
fn a_silent_host_is_lost_in_time() {
    let job = family(&["--host-timeout", "1", "--grace", "0"]);
    let processes = job.processes();
    kill_process(named(&job, "regatta-agent")[0].pid, Signal::STOP).expect("a living process");
    let (status, said) = job.end();
    assert_eq!(status, 137, "{said}");
    assert!(said.contains("has been silent for 1 s"), "{said}");
    await_ends(&processes);
}

#[test]
fn kill_9_of_half_an_agent_leaves_nothing_of_its_tasks() {
    for name in ["regatta-agent", "regatta-guard"] {
        let job = family(&["--grace", "0"]);
        let processes = job.processes();
        named(&job, name)[0].kill();
        let (status, said) = job.end();
        assert_eq!(status, 137, "{said}");
        await_ends(&processes);
    }
}

#[test]
fn a_program_that_one_host_lacks_is_told_before_anything_starts() {
    support::needs::namespaces();
    let scratch = Scratch::new("only-here");
    let program = scratch.file("program", 0o755, b"#!/bin/sh\necho started\n");
    let body = format!(
        "[ $host = beta ] && exec unshare --user --map-root-user --mount --net sh -c \
         'ip link set lo up; mount -t tmpfs tmpfs {} && exec \"$@\"' sh \"$@\"",
        scratch.0.display()
    );
    // Beta has no network that reaches alpha, but with only one host that does not matter.
    let hosts = Hosts::new("lacking", &body);
    let (status, output, said) = told(&run(&["--host", "beta:1", "--rsh", &hosts.rsh, &program]));
    assert_eq!((status, output.as_str()), (127, ""), "{said}");
    assert!(
        said.contains(&format!("on the host beta: {program} does not exist")),
        "{said}"
    );
}

#[test]
fn hosts_that_cannot_reach_each_other_are_told_before_anything_starts() {
    support::needs::namespaces();
    let hosts = Hosts::new(
        "apart",
        "exec unshare --user --map-root-user --net sh -c 'ip link set lo up; exec \"$@\"' sh \"$@\"",
    );
    let (status, output, said) = hosts.run(&[], &["echo", "started"]);
    assert_eq!((status, output.as_str()), (125, ""), "{said}");
    assert!(
        said.contains("cannot be reached from") && said.contains("--interface"),
        "{said}"
    );
}

#[test]
fn an_interface_that_no_host_has_is_refused() {
    let (status, _, said) = on_two(&["--interface", "nonsense7"], "exit 0");
    assert_eq!(status, 125);
    assert!(
        said.contains("the host alpha has no address that --interface nonsense7 allows"),
        "{said}"
    );
}

#[test]
fn two_names_for_one_host_are_refused() {
    let hosts = Hosts::new("twice", "");
    let (status, _, said) = hosts.run(&[], &["true"]);
    assert_eq!(status, 125);
    assert!(
        said.contains("alpha and beta are two names for one host"),
        "{said}"
    );
    let (status, _, said) = told(&run(&["--host", "alpha,alpha", "true"]));
    assert!(
        status == 2 && said.contains("alpha is named twice"),
        "{said}"
    );
}

#[test]
fn a_host_that_does_not_answer_is_given_up_with_a_sentence() {
    let hosts = Hosts::new("mute", "[ $host = beta ] && exec sleep 600");
    let (status, _, said) = hosts.run(&["--connect-timeout", "0.7"], &["true"]);
    assert_eq!(status, 125);
    assert!(
        said.contains("the host beta has not answered within 0.7 s"),
        "{said}"
    );
}

#[test]
fn a_sentence_of_another_command_of_ours_has_its_prefix_once() {
    let scratch = Scratch::new("closed");
    let script = b"#!/bin/sh\necho 'regatta: this host is closed' >&2\nexit 3\n";
    let closed = scratch.file("rsh", 0o755, script);
    let (status, _, said) = told(&run(&["--host", "alpha", "--rsh", &closed, "true"]));
    assert_eq!((status, &*said), (125, "regatta: this host is closed\n"));
}

#[test]
fn a_command_that_is_not_there_is_named() {
    let (status, _, said) = told(&run(&["--host", "alpha", "--rsh", "/no/such/rsh", "true"]));
    assert_eq!(status, 125);
    assert!(
        said.contains("the host alpha cannot be reached: /no/such/rsh was not found"),
        "{said}"
    );
}

#[test]
fn what_a_shell_says_when_it_starts_does_no_harm() {
    let hosts = Hosts::new(
        "noise",
        "echo 'Welcome to the machine'; printf 'no newline'",
    );
    let (status, output, said) = told(&run(&[
        "--host", "alpha:1", "--rsh", &hosts.rsh, "echo", "fine",
    ]));
    assert_eq!((status, output.as_str()), (0, "fine\n"), "{said}");
}

#[test]
fn another_version_is_refused_with_both_named() {
    let hosts = Hosts::new(
        "version",
        "printf 'regatta-agent 9.9.9 (channel 7)\\n'; exec cat",
    );
    let (status, _, said) = told(&run(&["--host", "alpha:1", "--rsh", &hosts.rsh, "true"]));
    assert_eq!(status, 125);
    assert!(
        said.contains("the host alpha runs regatta 9.9.9 (channel 7), but this host runs regatta "),
        "{said}"
    );
    assert!(said.contains(env!("CARGO_PKG_VERSION")), "{said}");
}

/// Sends our own program, stripped of debug information so that it is small enough for a test.
#[test]
fn a_host_without_regatta_gets_this_one_and_keeps_nothing() {
    let scratch = Scratch::new("sent");
    let body = format!("export TMPDIR={} XDG_RUNTIME_DIR=", scratch.0.display());
    let hosts = Hosts::new("sending", &body);
    let task = ["sh", "-c", "echo $REGATTA_JOB | cut -d: -f3"];
    let options = ["--host", "alpha:1", "--rsh", &hosts.rsh, "--send-agent"];
    let (status, output, said) = told(&run(&[&options[..], &task].concat()));
    assert_eq!((status, output.as_str()), (0, "0\n"), "{said}");
    assert!(
        said.contains("the host alpha has no regatta") && said.contains("was sent there"),
        "{said}"
    );
    let left: Vec<_> = std::fs::read_dir(&scratch.0).expect("the folder").collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Returns a folder of programs that precede the system's in a host's PATH.
fn with_programs(name: &str, programs: &[(&str, &str)]) -> (Scratch, String) {
    let scratch = Scratch::new(name);
    for (name, body) in programs {
        scratch.file(name, 0o755, format!("#!/bin/sh\n{body}\n").as_bytes());
    }
    let export = format!("export PATH={}:$PATH", scratch.0.display());
    (scratch, export)
}

#[test]
fn another_architecture_is_refused() {
    let (_programs, export) = with_programs(
        "machines",
        &[("uname", "[ $1 = -s ] && echo Linux || echo riscv64")],
    );
    let hosts = Hosts::new("machine", &export);
    let options = [
        "--host",
        "alpha:1",
        "--rsh",
        &hosts.rsh,
        "--send-agent",
        "true",
    ];
    let (status, _, said) = told(&run(&options));
    assert_eq!(status, 125);
    assert!(
        said.contains("the host alpha is a Linux riscv64")
            && said.contains("install Regatta there"),
        "{said}"
    );
}

#[test]
fn a_full_disk_is_told_before_and_while_the_program_is_sent() {
    let (_programs, export) =
        with_programs("full", &[("df", "echo title; echo disk 100 100 0 100% /")]);
    let hosts = Hosts::new("full-before", &export);
    let options = [
        "--host",
        "alpha:1",
        "--rsh",
        &hosts.rsh,
        "--send-agent",
        "true",
    ];
    let (status, _, said) = told(&run(&options));
    assert_eq!(status, 125);
    assert!(
        said.contains("the host alpha") && said.contains("no directory there has"),
        "{said}"
    );

    let (_programs, export) = with_programs("filling", &[("head", "echo part; exit 1")]);
    let hosts = Hosts::new("full-while", &export);
    let options = [
        "--host",
        "alpha:1",
        "--rsh",
        &hosts.rsh,
        "--connect-timeout",
        "60",
        "--send-agent",
        "true",
    ];
    let (status, _, said) = told(&run(&options));
    assert_eq!(status, 125);
    assert!(
        said.contains("could not be written") && said.contains("is the disk full?"),
        "{said}"
    );
}

#[test]
fn a_directory_that_a_host_lacks_is_named() {
    let (status, _, said) = on_two(&["--directory", "/no/such/directory"], "exit 0");
    assert_eq!(status, 125);
    assert!(
        said.contains("the directory /no/such/directory cannot be used on this host"),
        "{said}"
    );
    let (status, output, _) = on_two(&["--directory", "/"], "pwd");
    assert_eq!((status, output.as_str()), (0, "/\n/\n/\n/\n"));
}

#[test]
fn the_doctor_examines_hosts() {
    let output = Command::new(REGATTA)
        .args(["doctor", "--json", "--rsh", "sh -c", "--host", "alpha,beta"])
        .output()
        .expect("regatta doctor");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
    let findings = report["findings"].as_array().expect("findings");
    let of = |name: &str| {
        let found = findings
            .iter()
            .find(|finding| finding["area"] == "hosts" && finding["name"] == name);
        found
            .unwrap_or_else(|| panic!("nothing about {name}"))
            .clone()
    };
    for name in ["alpha", "alpha, address", "beta", "beta, address"] {
        assert_eq!(of(name)["state"], "ok", "{}", of(name));
    }
    let output = Command::new(REGATTA)
        .args(["doctor", "--json", "--rsh", "false", "--host", "alpha,beta"])
        .output()
        .expect("regatta doctor");
    assert_eq!(output.status.code(), Some(1));
    let report = support::text(&output.stdout);
    assert!(
        report.contains("no agent could be started on the host alpha")
            && report.contains("no agent could be started on the host beta")
    );
}

#[test]
fn an_interrupt_while_hosts_are_awaited_ends_it_at_once() {
    let hosts = Hosts::new(
        "awaited",
        "echo \"$host asked\" >&2; [ $host = beta ] && exec sleep 600",
    );
    let options = [
        "--host",
        "alpha,beta",
        "--rsh",
        &hosts.rsh,
        "--connect-timeout",
        "600",
        "true",
    ];
    let mut job = Running::start(&options);
    look_until("the mute host is asked", || {
        (!named(&job, "sleep").is_empty()).then_some(())
    });
    let processes = job.processes();
    job.signal(Signal::INT);
    await_ends(&processes);
    assert!(job.child.wait().is_ok());
    let (status, said) = job.end();
    assert_eq!(status, 130, "{said}");
    assert!(said.contains("nothing was started"), "{said}");
}

#[test]
fn this_host_alone_needs_no_channel() {
    let (status, output, said) = told(&run(&["--host", "localhost:3", "echo", "here"]));
    assert_eq!(
        (status, output.as_str()),
        (0, "here\nhere\nhere\n"),
        "{said}"
    );
}

#[test]
fn an_agent_and_a_launcher_whose_file_limits_fall_below_what_they_have_open_go_on_and_sleep() {
    let scratch = Scratch::new("files");
    let fifo = scratch.0.join("go").display().to_string();
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .is_ok_and(|status| status.success())
    );
    let body = script(&format!("echo ready $rank; read -r word <{fifo}; exit 0"));
    let options = ["--host", "alpha:1,beta:1", "--rsh", "sh -c"];
    let mut running = Running::start(&[&options[..], &["sh", "-c", &body]].concat());
    running.read_lines(2, "ready");
    let processes = running.processes();
    let limited = processes
        .iter()
        .filter(|process| ["regatta-agent", "regatta-job"].contains(&process.name.as_str()));
    let limited: Vec<String> = limited
        .map(|process| process.pid.as_raw_nonzero().to_string())
        .collect();
    assert_eq!(limited.len(), 3, "{processes:?}");
    // A process that spins never gives up its processor by itself, so its voluntary context switches do not grow.
    let sleeps = |pid: &str| -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.expect("a count").trim().parse().expect("a number")
    };
    for pid in &limited {
        let status = Command::new("prlimit")
            .args(["--pid", pid, "--nofile=1"])
            .status();
        assert!(status.is_ok_and(|status| status.success()), "prlimit");
        let before = sleeps(pid);
        look_until("a process that goes to sleep twice", || {
            (sleeps(pid) >= before + 2).then_some(())
        });
    }
    // One line for each, to readers that exist now or later.
    let mut go = std::fs::File::options()
        .read(true)
        .write(true)
        .open(&fifo)
        .expect("a pipe");
    go.write_all(b"go\ngo\n").expect("readers");
    assert_eq!(running.end().0, 0);
    await_ends(&processes);
}
