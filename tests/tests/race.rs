//! `regatta race` between hosts: a real race of seconds in namespaces of its own, and its end in every way; and of tasks that come
//! and go, on one host.
//!
//! Races between hosts need namespaces, like the tests of hosts: where there are none they fail.

use std::path::PathBuf;

use regatta_tests::{Job, Running, look_until};
use rustix::process::Signal;

/// A folder for results, removed at the end.
struct Out(PathBuf);

impl Out {
    fn new(name: &str) -> Out {
        Out(std::env::temp_dir().join(format!("regatta-race-test-{name}-{}", std::process::id())))
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.join(file)).expect("what the race wrote")
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn race(out: &Out, network: &str, environments: &str, more: &[&str]) -> Job {
    let folder = out.0.display().to_string();
    let common = [
        "race",
        "--network",
        network,
        "--environment",
        environments,
        "--suite",
        "primitives",
        "--quick",
        "--quiet",
        "--budget",
        "2",
        "--seed",
        "1",
        "--out",
        &folder,
    ];
    Job::command(&[&common[..], more].concat()).limit(100)
}

/// Each line of results.csv, as its first words and all of it.
fn rows(out: &Out) -> Vec<(String, String)> {
    let text = out.read("results.csv");
    let key = |line: &str| line.split(',').take(6).collect::<Vec<_>>().join(" ");
    text.lines()
        .skip(1)
        .map(|line| (key(line), line.to_owned()))
        .collect()
}

fn races_on(network: &str, environments: &[&str]) {
    let out = Out::new(network);
    let points = [
        "--operation",
        "one-to-one,barrier,global-sum",
        "--tasks",
        "2",
        "--bytes",
        "8,65536",
        "--launches",
        "1",
    ];
    race(&out, network, &environments.join(","), &points)
        .run()
        .passed();
    let rows = rows(&out);
    for environment in environments {
        for (operation, bytes) in [
            ("one-to-one", 8),
            ("one-to-one", 65536),
            ("barrier", 0),
            ("global-sum", 8),
        ] {
            let key = format!("primitives {operation} {environment} {network} 2 {bytes}");
            let found = rows.iter().find(|row| row.0 == key);
            let line = &found.unwrap_or_else(|| panic!("no {key:?} in {rows:#?}")).1;
            assert!(!line.contains("launches:"), "a failure: {line}");
            assert!(line.contains(",us,"), "{line}");
        }
    }
    let json = out.read("results.json");
    assert!(
        json.contains(&format!("network {network}: ")),
        "what the network is"
    );
    assert!(
        json.contains("the kernel counted between hosts"),
        "the evidence"
    );
    assert!(out.read("report.html").contains(&format!("over {network}")));
}

#[test]
fn bare_sockets_and_regatta_race_between_two_hosts() {
    races_on("hosts", &["limit", "regatta", "regatta-trusted"]);
}

#[test]
fn a_slowed_network_takes_the_time_of_its_bytes() {
    races_on("ethernet10", &["limit", "regatta-trusted"]);
    let out = Out::new("slow");
    let points = [
        "--operation",
        "one-to-one",
        "--tasks",
        "2",
        "--bytes",
        "65536",
        "--launches",
        "1",
    ];
    race(&out, "ethernet10", "limit", &points).run().passed();
    let rows = rows(&out);
    let median: f64 = rows[0]
        .1
        .split(',')
        .nth(8)
        .and_then(|text| text.parse().ok())
        .expect("a median");
    // 64 KiB at 10 Mbit/s are 52 ms, and heads.
    assert!((50e3..80e3).contains(&median), "{median} us");
}

#[test]
fn loopback_is_one_host_without_shared_memory() {
    races_on("loopback", &["limit", "regatta-trusted"]);
}

#[test]
fn tasks_that_start_others_are_raced_and_those_that_cannot_are_named() {
    let out = Out::new("family");
    let folder = out.0.display().to_string();
    let words = "race --quick --quiet --seed 1 --launches 1 --operation spawn,notify --environment regatta,limit --tasks 3,12 --out";
    let words: Vec<&str> = words.split(' ').chain([folder.as_str()]).collect();
    let raced = Job::command(&words).limit(100).run();
    raced.passed().said("notify is raced without limit");
    let rows = rows(&out);
    for (operation, tasks) in [("spawn", 3), ("spawn", 12), ("notify", 3), ("notify", 12)] {
        let key = format!("start {operation} regatta local {tasks} 0");
        let found = rows.iter().find(|row| row.0 == key);
        let line = &found.unwrap_or_else(|| panic!("no {key:?} in {rows:#?}")).1;
        assert!(!line.contains("launches:"), "a failure: {line}");
        let median: f64 = line
            .split(',')
            .nth(8)
            .and_then(|text| text.parse().ok())
            .expect("a median");
        assert!(median > 1.0, "{median} us is no time for a process: {line}");
    }
    assert_eq!(rows.len(), 4, "limit starts nobody: {rows:#?}");
}

#[test]
fn a_number_of_tasks_must_suit_every_operation() {
    let out = Out::new("number");
    race(
        &out,
        "local",
        "limit",
        &["--operation", "barrier,spawn", "--tasks", "100"],
    )
    .run()
    .ended_with(1)
    .said("name them with --operation");
}

/// A race that would take long, once one of its programs runs.
fn under_way(out: &Out) -> Running {
    let points = [
        "--operation",
        "one-to-one",
        "--tasks",
        "2",
        "--launches",
        "500",
    ];
    let running = race(out, "hosts", "limit,regatta", &points).start();
    let is_raced = |line: &String| line.contains("primitives-regatta");
    look_until("a program is raced", || {
        running.processes().iter().any(is_raced).then_some(())
    });
    running
}

#[test]
fn a_killed_race_leaves_nothing() {
    let out = Out::new("killed");
    let running = under_way(&out);
    running.signal(Signal::KILL);
    // Looks for processes left behind; with the last of them the hosts are gone.
    running.end().ended_with(137);
}

#[test]
fn an_interrupted_race_ends_with_what_it_has() {
    let out = Out::new("interrupted");
    let running = under_way(&out);
    running.signal(Signal::INT);
    running.end().passed();
    assert!(
        out.read("results.json")
            .contains("the race was interrupted")
    );
}

#[test]
fn what_cannot_be_raced_is_told() {
    let out = Out::new("told");
    let uneven = race(&out, "hosts", "limit", &["--tasks", "3"]);
    uneven
        .run()
        .ended_with(1)
        .said("3 tasks cannot be dealt evenly to 2 hosts");
    let without = race(&out, "hosts", "limit", &[]).env("PATH", "/nonexistent");
    without
        .run()
        .ended_with(1)
        .said("takes the command unshare");
}

#[test]
fn a_race_without_participants_is_refused() {
    let arguments = ["race", "--environment", "limit", "--operation", "spawn"];
    Job::command(&arguments)
        .run()
        .ended_with(1)
        .said("nothing to race")
        .said("spawn is raced without limit");
}

fn pvm_race(out: &Out, more: &[&str]) -> Job {
    let folder = out.0.display().to_string();
    let common = "race --quick --quiet --seed 1 --launches 1 --environment regatta-pvm";
    let common: Vec<&str> = common.split(' ').chain(["--out", &folder]).collect();
    Job::command(&[&common[..], more].concat()).limit(100)
}

#[test]
fn the_program_of_pvm_races_on_regatta() {
    let out = Out::new("pvm");
    let operations = [
        ("ping-pong-blocking", "pvm"),
        ("ping-pong-asynchronous", "pvm"),
        ("ping-pong-blocking-pack-default-double", "pvm"),
        ("ping-pong-blocking-pack-raw", "pvm"),
        ("ping-pong-blocking-pack-in-place-int", "pvm"),
        ("global-sum", "primitives"),
    ];
    let names: Vec<&str> = operations.iter().map(|operation| operation.0).collect();
    let names = names.join(",");
    let points = ["--operation", &names, "--tasks", "2", "--bytes", "8,65536"];
    pvm_race(&out, &[&points[..], &["--budget", "2"]].concat())
        .run()
        .passed();
    let rows = rows(&out);
    for (operation, suite) in operations {
        for bytes in [8, 65536] {
            let wanted = format!("{operation} regatta-pvm local 2 {bytes}");
            let found = rows.iter().find(|row| row.0.ends_with(&wanted));
            let (key, line) = found.unwrap_or_else(|| panic!("no {wanted:?} in {rows:#?}"));
            assert!(!line.contains("launches:"), "a failure: {line}");
            assert!(
                key.starts_with(suite) || key.starts_with("oversubscribed"),
                "{key}"
            );
        }
    }
    let json = out.read("results.json");
    assert!(
        json.contains("on Regatta (regatta "),
        "whose library it was"
    );
}

/// The machine of PVM's programs ends with the race, though it is a process of its own.
#[test]
fn a_killed_race_leaves_no_machine() {
    let out = Out::new("pvm-killed");
    let points = ["--operation", "one-to-one", "--tasks", "2"];
    // Files that a killed race leaves stay in its folder for temporary files, which goes with the results.
    std::fs::create_dir_all(&out.0).expect("a folder");
    let folder = out.0.display().to_string();
    let race = pvm_race(&out, &[&points[..], &["--budget", "2000"]].concat());
    let running = race.env("TMPDIR", &folder).start();
    let is_raced = |line: &String| line.contains("primitives-");
    look_until("a program is raced", || {
        running.processes().iter().any(is_raced).then_some(())
    });
    running.signal(Signal::KILL);
    running.end().ended_with(137);
}
