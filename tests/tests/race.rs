//! `regatta race`: short races between hosts in namespaces of their own, which are ended in every way; races of tasks
//! that come and go; and races of interfaces over Regatta's own, on one host.
//!
//! Races over a network need namespaces, as the tests of hosts do.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use regatta_tests::{Job, Running, await_files, executable, look_until, needs};
use rustix::process::Signal;

/// A folder for results, which is removed when dropped.
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
        "--unoptimised",
        "--budget",
        "2",
        "--seed",
        "1",
        "--out",
        &folder,
    ];
    Job::command(&[&common[..], more].concat()).limit(100)
}

/// Returns each line of results.csv, as its leading columns and the whole line.
fn rows(out: &Out) -> Vec<(String, String)> {
    let text = out.read("results.csv");
    let key = |line: &str| line.split(',').take(6).collect::<Vec<_>>().join(" ");
    text.lines()
        .skip(1)
        .map(|line| (key(line), line.to_owned()))
        .collect()
}

fn races_on(network: &str, environments: &[&str]) {
    needs::namespaces();
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
fn the_ping_pongs_of_maniezzo_and_sanna_are_raced_between_hosts_with_the_bypass_and_without() {
    needs::namespaces();
    let out = Out::new("gamma");
    let more = [
        "--network",
        "hosts",
        "--operation",
        "netpipe,ping-pong-blocking,exchange-isend",
        "--bytes",
        "64,1048576",
    ];
    let environments = "limit,regatta,regatta-no-bypass";
    let raced = suite_race(&out, "maniezzo-sanna", environments, &more).run();
    raced.passed().said("Figure 11 of Maniezzo and Sanna");
    let rows = rows(&out);
    for (operation, environment) in [
        ("netpipe", "limit"),
        ("netpipe", "regatta"),
        ("netpipe", "regatta-no-bypass"),
        ("ping-pong-blocking", "regatta-no-bypass"),
        ("exchange-isend", "regatta"),
    ] {
        let key = format!("maniezzo-sanna {operation} {environment} hosts 2 64");
        let found = rows.iter().find(|row| row.0 == key);
        let line = &found.unwrap_or_else(|| panic!("no {key:?} in {rows:#?}")).1;
        assert!(has_figure(line) && !line.contains("not used yet"), "{line}");
        let without = line.contains("no bypass: REGATTA_BYPASS=off");
        assert_eq!(without, environment == "regatta-no-bypass", "{line}");
    }
}

/// On one host, the network cannot be bypassed.
#[test]
fn environments_that_differ_between_hosts_alone_take_no_part_on_one() {
    let out = Out::new("one-host");
    let more = ["--operation", "netpipe", "--bytes", "64"];
    let environments = "regatta,regatta-no-bypass,regatta-trusted";
    let raced = suite_race(&out, "maniezzo-sanna", environments, &more).run();
    raced.passed();
    let rows = rows(&out);
    let raced: Vec<&str> = rows.iter().map(|row| row.0.as_str()).collect();
    assert_eq!(raced, ["maniezzo-sanna netpipe regatta local 2 64"]);
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
    let fastest: f64 = rows[0]
        .1
        .split(',')
        .nth(12)
        .and_then(|text| text.parse().ok())
        .expect("a minimum");
    // 64 KiB at 10 Mbit/s take 52 ms, plus headers. A sample may take longer if TCP retransmits.
    assert!((50e3..80e3).contains(&fastest), "{fastest} us");
}

#[test]
fn loopback_is_one_host_without_shared_memory() {
    races_on("loopback", &["limit", "regatta-trusted"]);
}

#[test]
fn tasks_that_start_others_are_raced_and_those_that_cannot_are_named() {
    let out = Out::new("family");
    let folder = out.0.display().to_string();
    let words = "race --quick --quiet --unoptimised --seed 1 --launches 1 --operation spawn,notify --environment regatta,limit --tasks 3,12 --out";
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

/// Starts a long race, and returns once one of its programs runs.
fn under_way(out: &Out) -> Running {
    needs::namespaces();
    let points = [
        "--operation",
        "one-to-one",
        "--tasks",
        "2",
        "--launches",
        "500",
    ];
    let running = race(out, "hosts", "limit,regatta", &points).start();
    let is_compiled = |line: &String| line.contains(" -o ");
    let is_raced = |line: &String| line.contains("primitives-regatta") && !is_compiled(line);
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
    // Checks for leftover processes. When the last of them has ended, the hosts are gone.
    running.end().ended_with(137);
}

#[test]
fn an_interrupted_race_ends_with_what_it_has() {
    let out = Out::new("interrupted");
    let running = under_way(&out);
    running.signal(Signal::INT);
    running.end().ended_with(130);
    assert!(
        out.read("results.json")
            .contains("the race was interrupted")
    );
}

/// A peer's launcher that ignores SIGTERM. Its child, in a session of its own, ignores it too. The last process to
/// start creates a file.
const DEAF: &str = "#!/bin/sh
trap '' TERM
setsid sh -c 'echo up >\"$0\"; sleep 1000; sleep 1000' \"${0%/*}/started\" &
sleep 1000
sleep 1000
";
/// A compiler that creates an empty program.
const COMPILER: &str = "#!/bin/sh
while [ \"$1\" != -o ]; do shift; done
: >\"$2\"
";

/// Starts a race on one host between `limit` and a peer that hangs. Returns once all processes of the peer run.
fn hanging(out: &Out, more: &[&str]) -> Running {
    let bin = out.0.join("peers/mpich/bin");
    std::fs::create_dir_all(&bin).expect("a folder");
    for (name, text) in [("mpirun", DEAF), ("mpicc", COMPILER)] {
        let file = bin.join(name);
        executable::script(&file, text, 0o755);
    }
    let (peers, folder) = (out.0.join("peers"), out.0.display().to_string());
    let peers = peers.display().to_string();
    let more = [more, &["--peers", &peers, "--tasks", "2"]].concat();
    let running = race(out, "local", "mpich,limit", &more);
    // A folder left behind would be found in `folder`.
    let running = running.env("TMPDIR", &folder).start();
    await_files(&bin, || bin.join("started").exists().then_some(()));
    running
}

fn leaves_no_folder(out: &Out) -> bool {
    let all = std::fs::read_dir(&out.0).expect("the results' folder");
    let names = all.flatten().map(|entry| entry.file_name());
    names
        .into_iter()
        .all(|name| !name.to_string_lossy().starts_with("regatta-race-"))
}

const HEAT: [&str; 4] = ["--operation", "one-to-one", "--bytes", "8"];
/// This operation is launched repeatedly and timed from outside, without the race's driver.
const JOIN_LEAVE: [&str; 4] = ["--operation", "join-leave", "--suite", "start"];

#[test]
fn a_launcher_that_ignores_signals_does_not_outlive_a_killed_race() {
    for (name, points) in [("killed-heat", HEAT), ("killed-launch", JOIN_LEAVE)] {
        let out = Out::new(name);
        let running = hanging(&out, &points);
        running.signal(Signal::KILL);
        // Checks for leftover processes.
        running.end().ended_with(137);
        assert!(leaves_no_folder(&out));
    }
}

#[test]
fn an_interrupted_race_has_the_status_of_the_signal_and_waits_for_nobody() {
    for (name, signal, status) in [("int", Signal::INT, 130), ("term", Signal::TERM, 143)] {
        let out = Out::new(name);
        let running = hanging(&out, &HEAT);
        let asked = Instant::now();
        running.signal(signal);
        let said = "interrupted: finished measurements are kept";
        running.end().ended_with(status).said(said);
        // A launch may take 40 seconds.
        assert!(asked.elapsed() < Duration::from_secs(15));
        assert!(leaves_no_folder(&out));
    }
}

#[test]
fn a_second_interruption_ends_a_race_at_once_and_leaves_nothing() {
    let out = Out::new("twice");
    let running = hanging(&out, &JOIN_LEAVE);
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    let ended = running.end();
    assert!([130, 143].contains(&ended.status), "{}", ended.story());
    assert!(leaves_no_folder(&out));
}

#[test]
fn what_cannot_be_raced_is_told() {
    let out = Out::new("told");
    let uneven = race(&out, "hosts", "limit", &["--tasks", "3"]);
    uneven
        .run()
        .ended_with(1)
        .said("3 tasks cannot be distributed evenly over 2 hosts");
    let without = race(&out, "hosts", "limit", &[]).env("PATH", "/nonexistent");
    without
        .run()
        .ended_with(1)
        .said("needs the command unshare");
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

#[test]
fn a_library_without_optimisation_is_raced_only_on_request() {
    if !cfg!(debug_assertions) {
        // not a skip: the libraries of an optimised build are raced as they are.
        return;
    }
    let out = Out::new("unoptimised");
    let folder = out.0.display().to_string();
    let common = "race --quick --operation one-to-one --environment regatta --out";
    let arguments: Vec<&str> = common.split(' ').chain([&folder[..]]).collect();
    Job::command(&arguments)
        .run()
        .ended_with(1)
        .said("built without optimisation");
}

fn pvm_race(out: &Out, more: &[&str]) -> Job {
    let folder = out.0.display().to_string();
    let common =
        "race --quick --quiet --unoptimised --seed 1 --launches 1 --environment regatta-pvm";
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

/// The virtual machine of PVM programs ends with the race, although it is a process of its own.
#[test]
fn a_killed_race_leaves_no_machine() {
    let out = Out::new("pvm-killed");
    let points = ["--operation", "one-to-one", "--tasks", "2"];
    // A killed race leaves temporary files. They are in the folder of the results, which is removed.
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

/// Creates a race of interfaces over Regatta's own, with minimal measuring time.
fn interfaces_race(out: &Out, suite: &str, more: &[&str]) -> Job {
    // The race looks for the libraries beside the command.
    let libraries = [
        regatta_tests::nx::library(),
        regatta_tests::express::library(),
    ];
    assert!(libraries.iter().all(|library| library.exists()));
    let folder = out.0.display().to_string();
    let common = "race --quick --quiet --unoptimised --seed 1 --launches 1 --budget 1 --environment regatta,regatta-nx,regatta-express --suite";
    let common = common.split(' ').chain([suite, "--out", &folder]);
    let all: Vec<&str> = common.chain(more.iter().copied()).collect();
    Job::command(&all).limit(100)
}

/// Checks that results.csv has a row without failures for each of these operations, task counts and sizes, and each
/// interface that has the operation.
fn has_rows(out: &Out, suite: &str, points: &[(&str, u32, u64)]) {
    let rows = rows(out);
    let mut expected = 0;
    for environment in ["regatta", "regatta-nx", "regatta-express"] {
        // In Regatta's own interface a send may wait for its receive.
        let has = |operation: &str| operation != "exchange-plain" || environment != "regatta";
        for (operation, tasks, bytes) in points.iter().filter(|point| has(point.0)) {
            expected += 1;
            let key = format!("{suite} {operation} {environment} local {tasks} {bytes}");
            let found = rows.iter().find(|row| row.0 == key);
            let line = &found.unwrap_or_else(|| panic!("no {key:?} in {rows:#?}")).1;
            assert!(!line.contains("launches:"), "a failure: {line}");
        }
    }
    assert_eq!(rows.len(), expected, "{rows:#?}");
}

/// Payloads are verified, so a call that does not do what the program expects fails the race.
#[test]
fn the_question_of_1991_is_asked_of_both_interfaces() {
    let out = Out::new("question");
    let suite = "ahmad-wu-1991";
    let small = ["--tasks", "1,2,3", "--bytes", "2048"];
    let raced = interfaces_race(&out, suite, &small).run();
    // The race takes microseconds, printed beside the 2 s that Express took for the vectors.
    let said = raced.passed().said("Then: Express against NX on an iPSC/2");
    let line = said.text.lines().find(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.first() == Some(&"vector-exchange") && words.contains(&"221x")
    });
    let ratios = line.map(|line| {
        let words = line.split_whitespace();
        words
            .filter(|word| word.trim_end_matches('?').ends_with('x'))
            .count()
    });
    assert_eq!(ratios, Some(3), "then, and now of both: {line:?}");
    let mut points = Vec::new();
    for operation in ["host-node-send", "host-node-recv", "host-node-exchange"] {
        points.push((operation, 1, 2048));
    }
    for operation in [
        "one-to-one",
        "one-to-one-send",
        "one-to-one-recv",
        "exchange",
        "exchange-plain",
        "vector-send-recv",
        "vector-exchange",
    ] {
        points.push((operation, 2, 2048));
    }
    let of_all = [
        "broadcast",
        "global-sum",
        "global-product",
        "global-max",
        "concatenation",
    ];
    for operation in of_all {
        points.extend([(operation, 2, 2048), (operation, 3, 2048)]);
    }
    points.extend([1, 2, 3].map(|nodes| ("host-broadcast", nodes, 2048)));
    has_rows(&out, suite, &points);
    assert!(out.read("report.html").contains("What portability costs"));
}

/// Runs a race on Regatta, NX and MPI. Checks that every point is measured. Returns the rows of results.csv and the
/// race's output.
fn whole_race(suite: &str, tasks: &str) -> (Vec<(String, String)>, String) {
    let out = Out::new(suite);
    let folder = out.0.display().to_string();
    let race = "race --quick --quiet --unoptimised --seed 1 --launches 1 --budget 1 --bytes 64";
    let who = "--environment regatta,regatta-nx,regatta-mpi --suite";
    let more = [suite, "--tasks", tasks, "--out", &folder];
    let all = race.split(' ').chain(who.split(' ')).chain(more);
    let raced = Job::command(&all.collect::<Vec<_>>()).limit(100).run();
    let text = raced.passed().text;
    let rows = rows(&out);
    for (key, line) in &rows {
        assert!(!line.contains("launches:"), "{key}: a failure: {line}");
    }
    (rows, text)
}

/// With MPI, the first task plays the host, so the launcher has to start one task more.
#[test]
fn one_node_is_enough_for_the_host_of_every_interface() {
    let (rows, _) = whole_race("ahmad-wu-1991", "1,2");
    let of_one_node = ["host-node-recv", "host-node-send", "host-broadcast"];
    for environment in ["regatta", "regatta-nx", "regatta-mpi"] {
        for operation in of_one_node {
            let key = format!("ahmad-wu-1991 {operation} {environment} local 1 64");
            let found = rows.iter().any(|row| row.0 == key);
            assert!(found, "no {key:?} in {rows:#?}");
        }
    }
}

/// Tables 6.1 to 6.4 of 1991: 4 to 32 nodes, on every interface.
#[test]
fn a_host_sends_to_as_many_nodes_as_it_did_in_1991() {
    let out = Out::new("tables-6");
    let environments = "regatta,regatta-nx,regatta-express,regatta-mpi,regatta-pvm";
    let raced = suite_race(
        &out,
        "ahmad-wu-1991",
        environments,
        &["--operation", "host-broadcast", "--bytes", "2048"],
    );
    raced.run().passed().said("host-broadcast");
    let rows = rows(&out);
    for environment in environments.split(',') {
        for nodes in [4, 8, 16, 32] {
            let key = format!("ahmad-wu-1991 host-broadcast {environment} local {nodes} 2048");
            let found = rows.iter().find(|row| row.0 == key);
            let line = &found.unwrap_or_else(|| panic!("no {key:?} in {rows:#?}")).1;
            assert!(has_figure(line), "{line}");
        }
    }
}

/// Creates a race of these environments with minimal measuring time.
fn suite_race(out: &Out, suite: &str, environments: &str, more: &[&str]) -> Job {
    let folder = out.0.display().to_string();
    let common = "race --quick --quiet --unoptimised --seed 1 --launches 1 --budget 1 --suite";
    let common = common.split(' ');
    let named = [suite, "--environment", environments, "--out", &folder];
    let all: Vec<&str> = common.chain(named).chain(more.iter().copied()).collect();
    Job::command(&all).limit(200)
}

/// Returns whether this line of results.csv has a measured value and no failed launches.
fn has_figure(line: &str) -> bool {
    let launches = line.split(',').nth(14).and_then(|text| text.parse().ok());
    launches.is_some_and(|launches: u32| launches > 0) && !line.contains("launches:")
}

/// Payloads are verified, and the output shows the paper's own numbers above the measured ones.
#[test]
fn the_routes_of_pvm_are_raced_beside_those_of_1994() {
    let out = Out::new("routes");
    let environments = "regatta-pvm,regatta-pvm-daemon,ttcp";
    let messages = ["--operation", "one-to-one,stream"];
    let raced = suite_race(&out, "white-1994", environments, &messages).run();
    let said = raced.passed().said("Table 6 of White").said("358.48");
    let today = said.text.split("Today, Regatta as PVM").nth(1);
    let today = today.expect("lines of today").lines();
    let names = today.filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names
        .filter(|name| ["Daemon", "Fsend", "TTCP"].contains(name))
        .collect();
    assert_eq!(names, ["Daemon", "Fsend", "TTCP"]);
    let rows = rows(&out);
    assert_eq!(rows.len(), 3 * 2 * 4, "{rows:#?}");
    for (key, line) in &rows {
        assert!(has_figure(line), "{key}: {line}");
    }
}

#[test]
fn messages_of_pvm_itself_go_through_its_daemons_unless_the_program_asks_for_another_route() {
    regatta_tests::needs::file("/usr/lib/pvm3/lib/pvmd", "pvm");
    regatta_tests::needs::file("/usr/include/pvm3.h", "pvm-dev");
    let out = Out::new("daemons");
    let point = ["--operation", "one-to-one", "--bytes", "100"];
    let race = suite_race(&out, "white-1994", "pvm,pvm-daemon", &point);
    race.run().passed();
    let rows = rows(&out);
    for (environment, route) in [
        ("pvm", "direct route"),
        ("pvm-daemon", "through the daemons"),
    ] {
        let key = format!("white-1994 one-to-one {environment} local 2 100");
        let found = rows.iter().find(|row| row.0 == key);
        let line = &found.unwrap_or_else(|| panic!("no {key:?} in {rows:#?}")).1;
        assert!(has_figure(line) && line.contains(route), "{line}");
    }
}

#[test]
fn all_papers_are_raced_at_once_and_stand_on_one_page() {
    let out = Out::new("papers");
    let small = ["--operation", "one-to-one,netpipe", "--bytes", "64"];
    suite_race(&out, "papers", "regatta", &small).run().passed();
    let rows = rows(&out);
    for (suite, operation) in [
        ("ahmad-wu-1991", "one-to-one"),
        ("white-1994", "one-to-one"),
        ("ahmad-1997", "one-to-one"),
        ("maniezzo-sanna", "netpipe"),
    ] {
        let key = format!("{suite} {operation} regatta local 2 64");
        let found = rows.iter().find(|row| row.0 == key);
        let line = &found.unwrap_or_else(|| panic!("no {key:?} in {rows:#?}")).1;
        assert!(has_figure(line), "{line}");
    }
    assert_eq!(rows.len(), 4, "each point once: {rows:#?}");
    let page = out.read("report.html");
    for paper in ["Ahmad, 1997: Express versus PVM", "Maniezzo and Sanna"] {
        assert!(page.contains(paper), "no {paper}");
    }
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

#[test]
fn messages_of_sixty_megabytes_are_raced_by_every_way_to_send() {
    let out = Out::new("large");
    let operations = "ping-pong-blocking,ping-pong-blocking-double,ping-pong-blocking-pack-in-place-int,exchange-isend-float,exchange-sendrecv-double,netpipe";
    let environments = "regatta-pvm,regatta-mpi";
    let more = ["--operation", operations];
    let raced = suite_race(&out, "maniezzo-sanna", environments, &more).run();
    let said = raced
        .passed()
        .said("exchange-sendrecv-double is raced without regatta-pvm");
    for figure in ["Figure 5 of", "Figure 6 of", "Figure 7 of", "Figure 11 of"] {
        assert!(said.text.contains(figure), "no {figure}: {}", said.text);
    }
    let rows = rows(&out);
    for (key, line) in &rows {
        assert!(has_figure(line), "{key}: {line}");
    }
    for environment in environments.split(',') {
        for (operation, bytes) in [
            ("ping-pong-blocking", 60_000_000),
            ("ping-pong-blocking-double", 64_000_000),
            ("exchange-isend-float", 32_000_000),
            ("netpipe", (8 << 20) + 3),
        ] {
            let key = format!("maniezzo-sanna {operation} {environment} local 2 {bytes}");
            let found = rows.iter().any(|row| row.0 == key);
            assert!(found, "no {key:?} in {rows:#?}");
        }
    }
}

#[test]
fn what_an_interface_cannot_do_is_told_and_does_not_cost_it_the_rest() {
    let (rows, text) = whole_race("pvm", "2");
    for without in ["regatta", "regatta-nx"] {
        let reason = format!("raced without {without}: its messages are bytes");
        assert!(text.contains(&reason), "{text}");
    }
    for environment in ["regatta", "regatta-nx", "regatta-mpi"] {
        let key = format!("pvm ping-pong-blocking {environment} local 2 64");
        let found = rows.iter().any(|row| row.0 == key);
        assert!(found, "no {key:?} in {rows:#?}");
    }
}

#[test]
fn bounds_of_interfaces_are_held_against_regatta_s_own() {
    let out = Out::new("bounds");
    let points = [
        "--operation",
        "one-to-one,vector-send-recv,barrier",
        "--tasks",
        "2,32",
    ];
    let raced = interfaces_race(&out, "interfaces", &points).run();
    let said = raced.passed().said("Bounds of the interfaces");
    // Three sizes and a barrier for each of the two environments, and vectors for one of them.
    let verdict = said
        .text
        .lines()
        .find(|line| line.contains("not decided") && line.contains("kept,"));
    let counts = verdict.map(|line| {
        let numbers = line
            .split_whitespace()
            .filter_map(|word| word.parse::<u32>().ok());
        numbers.sum::<u32>()
    });
    assert_eq!(counts, Some(9), "{verdict:?}");
    let sizes = [8, 65536, 4 << 20, 32768].map(|bytes| ("one-to-one", 2, bytes));
    let others = [("vector-send-recv", 2, 32768), ("barrier", 32, 0)];
    has_rows(&out, "interfaces", &[&sizes[..], &others].concat());
}
