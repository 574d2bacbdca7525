//! The virtual machine: daemons on hosts with a network between them, that are added, removed and killed.

mod support;

use std::time::{Duration, Instant};

use support::lan::{Lan, state_of};
use support::{REGATTA, Running, await_ends, slowness};

/// A task that does not join and lives until it is ended.
const LONG: [&str; 4] = ["sh", "-c", "echo started; exec sleep 600", "task"];

/// Starts a job of three tasks on `host` with further options, which run until they are ended. Returns when all have
/// begun.
fn long_job(lan: &Lan, host: &str, options: &str) -> Running {
    let run = [REGATTA, "run", "--label", "-n", "3", "--map", "round"];
    let options: Vec<&str> = options.split_whitespace().collect();
    let mut job =
        Running::start_command(&mut lan.on(host, &[&run[..], &options, &LONG[..]].concat()));
    job.read_lines(3, "started");
    job
}

fn trio() -> Lan {
    let lan = Lan::new(&["alpha", "beta", "gamma", "delta"]);
    lan.good("alpha", &["up", "--as", "alpha:1", "beta:1", "gamma:1"]);
    // A host that is cut off now reports on all three.
    for host in ["alpha", "beta", "gamma"] {
        lan.await_whole(host, 2);
    }
    lan
}

fn pairs(states: &[(&str, &str)]) -> Vec<(String, String)> {
    let pair = |(name, state): &(&str, &str)| ((*name).to_owned(), (*state).to_owned());
    states.iter().map(pair).collect()
}

#[test]
fn hosts_come_and_go_and_jobs_run_on_all_of_them() {
    let lan = trio();
    let all = [("alpha", "up"), ("beta", "up"), ("gamma", "up")];
    for host in ["alpha", "beta", "gamma"] {
        let others = all.iter().filter(|(name, _)| *name != host);
        let seen: Vec<_> = [&(host, "here")]
            .into_iter()
            .chain(others)
            .copied()
            .collect();
        assert_eq!(lan.living(host), pairs(&seen));
    }
    // A fourth host is added from the third, which was added itself.
    let said = lan.good("gamma", &["add", "delta:1"]);
    assert_eq!(said, "delta has joined, at 10.77.0.4\n");
    let command = [
        "sh",
        "-c",
        "ip -o -4 address show dev eth0 | awk '{print $4}'",
    ];
    let output = lan.good("delta", &[&["run"], &command[..]].concat());
    let mut addresses: Vec<&str> = output.lines().collect();
    addresses.sort_unstable();
    assert_eq!(
        addresses,
        [
            "10.77.0.1/24",
            "10.77.0.2/24",
            "10.77.0.3/24",
            "10.77.0.4/24"
        ]
    );
    // As many tasks as each host was given, or one for each core.
    let output = lan.good("alpha", &["run", "echo", "task"]);
    assert_eq!(output.lines().count(), 4);

    assert_eq!(lan.good("alpha", &["remove", "beta"]), "beta has left\n");
    assert_eq!(state_of(&lan.report("alpha"), "beta"), "left");
    lan.await_whole("delta", 2);
    let (status, _, said) = lan.regatta("beta", &["hosts"]);
    assert_eq!(status, 125);
    assert!(
        said.contains("no virtual machine named default runs on this host"),
        "{said}"
    );
    // A daemon that is ended by SIGTERM leaves in good order, too.
    lan.daemon("delta").signal(rustix::process::Signal::TERM);
    lan.await_report("alpha", |report| state_of(report, "delta") == "left");
    lan.await_whole("gamma", 1);
    lan.good("gamma", &["down"]);
    lan.assert_clean();
}

#[test]
fn jobs_and_tasks_are_listed_and_ended_from_any_host() {
    let lan = trio();
    let job = long_job(&lan, "alpha", "--host-timeout 30 --on-failure continue");
    let listed = || -> Vec<serde_json::Value> {
        let report: serde_json::Value =
            serde_json::from_str(&lan.good("gamma", &["ps", "--json"])).expect("a report");
        assert_eq!(report["silent"], serde_json::json!([]));
        report["tasks"].as_array().expect("tasks").clone()
    };
    let tasks = listed();
    let hosts: Vec<_> = tasks
        .iter()
        .map(|task| {
            (
                task["rank"].as_u64(),
                task["host"].as_str(),
                task["program"].as_str(),
            )
        })
        .collect();
    let sleeps = |rank, host| (Some(rank), Some(host), Some("sleep"));
    assert_eq!(
        hosts,
        [sleeps(0, "alpha"), sleeps(1, "beta"), sleeps(2, "gamma")]
    );
    let name = tasks[0]["job"].as_str().expect("a job").to_owned();
    // The list has the pids of the tasks themselves.
    for task in &tasks {
        let path = format!("/proc/{}/cmdline", task["pid"]);
        assert_eq!(std::fs::read(path).expect("a process"), b"sleep\x00600\x00");
    }
    lan.good("beta", &["kill", &format!("{name}.2")]);
    assert!(listed().iter().all(|task| task["rank"] != 2));
    let (status, _, said) = lan.regatta("beta", &["kill", &format!("{name}.7")]);
    assert_eq!(status, 125);
    assert!(
        said.contains("no job or task of this machine is called"),
        "{said}"
    );
    lan.good("gamma", &["kill", &name]);
    let (status, said) = job.end();
    assert_eq!(status, 128 + 15, "{said}");
    assert!(listed().is_empty());
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

/// Scripts of tasks that go on after a request to end: they ignore it, handle it, or have stopped.
const WAYS_TO_STAY: [&str; 3] = [
    "trap '' HUP INT QUIT TERM; echo started; sleep 600; :",
    "trap : HUP INT QUIT TERM; echo started; (trap '' HUP INT QUIT TERM; exec sleep 600)",
    "trap '' HUP INT QUIT TERM; echo started; kill -STOP $$; sleep 600; :",
];

/// Starts a job with a task of this script on each of two hosts, from alpha. Returns when both have begun.
fn stubborn_job(lan: &Lan, script: &str) -> Running {
    let run = [REGATTA, "run", "-n", "2", "--map", "round", "--grace=0.2"];
    let words = [&run[..], &["sh", "-c", script]].concat();
    let mut job = Running::start_command(&mut lan.on("alpha", &words));
    job.read_lines(2, "started");
    job
}

#[test]
fn a_job_is_ended_in_time_whatever_its_tasks_do_with_signals() {
    let lan = Lan::new(&["alpha", "beta"]);
    lan.good("alpha", &["up", "--as", "alpha:1", "beta:1"]);
    lan.await_whole("alpha", 1);
    for script in WAYS_TO_STAY {
        let job = stubborn_job(&lan, script);
        let report = lan.good("beta", &["ps", "--json"]);
        let report: serde_json::Value = serde_json::from_str(&report).expect("a report");
        let name = report["tasks"][0]["job"].as_str().expect("a job");
        lan.good("beta", &["kill", name]);
        let (status, said) = job.end();
        assert_eq!(status, 128 + 15, "{script}: {said}");
    }
    for host in ["alpha", "beta"] {
        let jobs = WAYS_TO_STAY.map(|script| stubborn_job(&lan, script));
        let began = Instant::now();
        lan.good(host, &["down"]);
        for job in jobs {
            let (status, said) = job.end();
            // The launcher may first be told that the machine ends, or that its tasks were killed.
            assert!([125, 128 + 9].contains(&status), "{status}: {said}");
        }
        let took = began.elapsed();
        assert!(
            took < Duration::from_secs(10).mul_f64(slowness()),
            "the machine went down in {took:?}"
        );
        lan.assert_clean();
        if host == "alpha" {
            lan.good("alpha", &["up", "--as", "alpha:1", "beta:1"]);
            lan.await_whole("alpha", 1);
        }
    }
}

#[test]
fn a_job_on_the_host_of_its_launcher_alone_is_ended_by_its_name() {
    let lan = Lan::new(&["alpha"]);
    lan.good("alpha", &["up", "--as", "alpha:1"]);
    let words = [REGATTA, "run", "-n", "1", "--grace=0.2", "sh", "-c"];
    let words = [&words[..], &[WAYS_TO_STAY[0]]].concat();
    let mut job = Running::start_command(&mut lan.on("alpha", &words));
    job.read_lines(1, "started");
    let report = lan.good("alpha", &["ps", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).expect("a report");
    let name = report["tasks"][0]["job"].as_str().expect("a job");
    lan.good("alpha", &["kill", name]);
    let (status, said) = job.end();
    assert_eq!(status, 128 + 15, "{said}");
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

#[test]
fn the_first_daemon_may_be_killed_and_its_host_come_back() {
    let lan = trio();
    let job = long_job(&lan, "beta", "--grace 0");
    let cut_off = long_job(&lan, "alpha", "--grace 0");
    let mut watch = lan.watch("beta");
    watch.until(|_| true);
    let slow = slowness();
    let killed = Instant::now();
    lan.daemon("alpha").kill();
    let report = watch.until(|report| state_of(report, "alpha") == "dead");
    let found = killed.elapsed();
    let cause = report["hosts"][2]["cause"].as_str().expect("a cause");
    assert!(
        cause.contains("its daemon has ended; the host itself answers"),
        "{report}"
    );
    assert!(
        found < Duration::from_millis(1900).mul_f64(slow.max(slowness())),
        "found out after {found:?}"
    );
    // The job is told of it, with the cause.
    let (status, said) = job.end();
    assert_eq!(status, 137, "{said}");
    assert!(said.contains("the host alpha is lost: "), "{said}");
    // A job whose launcher was there has lost its channels to all hosts, and is left to them.
    let (status, said) = cut_off.end();
    assert_eq!(status, 125, "{said}");
    assert!(said.contains("the daemon of this host has ended"), "{said}");
    lan.await_whole("beta", 1);
    lan.good("gamma", &["run", "true"]);
    // Its tasks were ended with it.
    let mut left = lan.processes();
    left.retain(|process| process.name == "sleep");
    await_ends(&left);
    lan.good("gamma", &["add", "alpha"]);
    lan.await_whole("alpha", 2);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

/// Checks that the host gamma, which alone is no majority, takes on no work and says why.
fn assert_takes_no_work(lan: &Lan, report: &serde_json::Value) {
    let reason = report["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("only 1 of 3 hosts answer, which is not a majority"),
        "{reason}"
    );
    for arguments in [&["run", "true"][..], &["add", "delta"]] {
        let (status, _, said) = lan.regatta("gamma", arguments);
        assert_eq!(status, 125);
        assert!(said.contains("only 1 of 3 hosts answer"), "{said}");
    }
}

#[test]
fn a_host_that_is_cut_off_is_suspected_then_dead_and_comes_back_as_another() {
    let lan = trio();
    let job = long_job(&lan, "alpha", "--grace 0 --host-timeout 30");
    let (mut watch, mut other) = (lan.watch("alpha"), lan.watch("gamma"));
    watch.until(|_| true);
    let slow = slowness();
    let cut = Instant::now();
    lan.sh("ip link set v-gamma down");
    watch.until(|report| state_of(report, "gamma") == "suspected");
    let report = watch.until(|report| state_of(report, "gamma") == "dead");
    let silent = cut.elapsed();
    println!("a silent host was dead after {silent:?}");
    assert!(
        silent > Duration::from_millis(1000),
        "dead after {silent:?} already"
    );
    assert!(
        silent < Duration::from_millis(3500).mul_f64(slow.max(slowness())),
        "dead after {silent:?} only"
    );
    let gone = report["hosts"]
        .as_array()
        .expect("hosts")
        .iter()
        .find(|host| host["name"] == "gamma");
    let cause = gone
        .and_then(|host| host["cause"].as_str())
        .expect("a cause");
    assert!(cause.contains("silent for too long"), "{cause}");
    // The launcher was told by the daemon, long before its own timeout.
    let (status, said) = job.end();
    assert_eq!(status, 137, "{said}");
    assert!(
        said.contains("the host gamma is lost: it has been silent for too long"),
        "{said}"
    );
    assert!(cut.elapsed() < Duration::from_secs(30));

    let report = other.until(|report| report["standing"] == "minority");
    assert_takes_no_work(&lan, &report);
    lan.await_whole("alpha", 1);
    lan.good("beta", &["run", "true"]);
    // The tasks on the other side have ended there as well.
    lan.sh("ip link set v-gamma up");
    lan.await_whole("gamma", 2);
    lan.await_whole("alpha", 2);
    let mut left = lan.processes();
    left.retain(|process| process.name == "sleep");
    await_ends(&left);
    let events = lan.report("gamma")["events"].to_string();
    assert!(
        events.contains("the other hosts declared this host dead"),
        "{events}"
    );
    lan.good("gamma", &["run", "true"]);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

#[test]
fn a_daemon_is_of_no_login() {
    let lan = Lan::new(&["alpha"]);
    lan.good("alpha", &["up"]);
    let daemon = lan.daemon("alpha").pid;
    assert_eq!(rustix::process::getsid(Some(daemon)), Ok(daemon));
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

#[test]
fn a_host_that_is_stopped_for_a_moment_is_cleared() {
    let lan = trio();
    let mut watch = lan.watch("alpha");
    watch.until(|_| true);
    let daemon = lan.daemon("beta");
    daemon.signal(rustix::process::Signal::STOP);
    watch.until(|report| state_of(report, "beta") == "suspected");
    daemon.signal(rustix::process::Signal::CONT);
    let report = watch.until(|report| state_of(report, "beta") != "suspected");
    assert_eq!(state_of(&report, "beta"), "up");
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

#[test]
fn of_two_the_younger_goes_on_only_when_somebody_vouches() {
    let lan = Lan::new(&["alpha", "beta"]);
    lan.good("alpha", &["up", "--as", "alpha", "beta"]);
    let (mut old, mut young) = (lan.watch("alpha"), lan.watch("beta"));
    lan.sh("ip link set v-beta down");
    // The older one has the majority by the rule for equal halves.
    let report = old.until(|report| state_of(report, "beta") == "dead");
    assert_eq!(report["standing"], "majority");
    young.until(|report| report["standing"] == "minority");
    assert!(
        lan.good("alpha", &["vouch"])
            .contains("nothing to vouch for")
    );
    let said = lan.good("beta", &["vouch"]);
    assert!(said.contains("treats these as dead: alpha"), "{said}");
    lan.await_report("beta", |report| {
        report["standing"] == "majority" && report["known"] == 1
    });
    lan.good("beta", &["run", "true"]);
    // Each considers the other dead, and cannot know that it is not.
    for (host, other) in [("alpha", "beta"), ("beta", "alpha")] {
        let (status, _, said) = lan.regatta(host, &["down"]);
        assert_ne!(status, 0, "{said}");
        assert!(
            said.contains(&format!("the host {other} does not answer"))
                || said.contains(&format!("the host {other} cannot be reached")),
            "{said}"
        );
        let ends = |byte: u8| b".?!".contains(&byte);
        let pairs: Vec<&[u8]> = said.as_bytes().windows(2).collect();
        let twice = |pair: &&[u8]| ends(pair[0]) && (ends(pair[1]) || b";,".contains(&pair[1]));
        assert!(!pairs.iter().any(twice), "{said}");
    }
    lan.assert_clean();
}

/// The operator is wrong: the others are alive, and go on.
#[test]
fn a_wrong_vouch_ends_nothing_but_what_runs_on_the_host_that_was_cut_off() {
    let lan = Lan::new(&["alpha", "beta", "gamma", "delta"]);
    lan.good(
        "alpha",
        &["up", "--as", "alpha:1", "beta:1", "gamma:1", "delta:1"],
    );
    for host in ["alpha", "beta", "gamma", "delta"] {
        lan.await_whole(host, 3);
    }
    lan.sh("ip link set v-delta down");
    lan.await_report("delta", |report| report["standing"] == "minority");
    lan.await_report("alpha", |report| report["known"] == 3);
    let job = long_job(&lan, "alpha", "--grace 0");
    let said = lan.good("delta", &["vouch"]);
    assert!(
        said.contains("treats these as dead: alpha, beta, gamma"),
        "{said}"
    );
    let run = [&[REGATTA, "run", "-n", "1"], &LONG[..]].concat();
    let mut alone = Running::start_command(&mut lan.on("delta", &run));
    alone.read_lines(1, "started");
    lan.sh("ip link set v-delta up");
    // The host that was vouched for ends its work, and says why.
    let (status, said) = alone.end();
    assert_ne!(status, 0, "{said}");
    assert!(
        said.contains("they are alive, and a majority of them continues"),
        "{said}"
    );
    for host in ["alpha", "delta"] {
        lan.await_whole(host, 3);
    }
    let events = lan.report("delta")["events"].to_string();
    assert!(
        events.contains("`regatta vouch` on this side of a split declared"),
        "{events}"
    );
    // The others have noticed only that a host joins.
    for host in ["alpha", "beta", "gamma"] {
        let events = lan.report(host)["events"].to_string();
        assert!(!events.contains("no majority"), "{events}");
        assert!(
            !events.contains("this host rejoins as a new host"),
            "{events}"
        );
    }
    let listed: serde_json::Value =
        serde_json::from_str(&lan.good("beta", &["ps", "--json"])).expect("a report");
    assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(3));
    let name = listed["tasks"][0]["job"].as_str().expect("a job");
    lan.good("beta", &["kill", name]);
    let (status, said) = job.end();
    assert_eq!(status, 128 + 15, "{said}");
    lan.good("delta", &["down"]);
    lan.assert_clean();
}

#[test]
fn a_machine_that_ends_without_a_host_that_is_cut_off_says_so_and_that_host_ends_later() {
    let lan = trio();
    lan.sh("ip link set v-gamma down");
    lan.await_report("gamma", |report| report["standing"] == "minority");
    lan.await_report("alpha", |report| report["known"] == 2);
    let mut watch = lan.watch("gamma");
    let daemon = lan.daemon("gamma");
    let (status, _, said) = lan.regatta("alpha", &["down"]);
    assert_ne!(status, 0, "{said}");
    assert!(
        said.contains("is down on the hosts that answer, but the host gamma"),
        "{said}"
    );
    lan.sh("ip link set v-gamma up");
    watch.until(|report| {
        let events = report["events"].to_string();
        events.contains("the daemons of the other hosts ended, and with them the machine")
    });
    await_ends(&[daemon]);
    lan.good("alpha", &["up", "--as", "alpha:1", "beta:1", "gamma:1"]);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

/// The hosts of the old machine are out of reach for good, so the remaining daemon cannot find out that it was ended.
#[test]
fn a_daemon_that_was_left_over_makes_way_for_a_new_machine() {
    let lan = trio();
    lan.sh("ip link set v-gamma down");
    lan.await_report("gamma", |report| report["standing"] == "minority");
    lan.await_report("alpha", |report| report["known"] == 2);
    assert_ne!(lan.regatta("alpha", &["down"]).0, 0);
    let said = lan.regatta("gamma", &["up", "--as", "gamma:1"]).2;
    assert!(
        said.contains("and cut off from all its other hosts; it has been ended"),
        "{said}"
    );
    lan.good("gamma", &["run", "true"]);
    lan.good("gamma", &["down"]);
    lan.assert_clean();
}

#[test]
fn a_machine_that_is_down_has_left_nothing_on_its_host_and_makes_way_at_once() {
    let lan = Lan::new(&["alpha", "beta"]);
    for _ in 0..5 {
        lan.good("alpha", &["up", "--as", "alpha", "beta"]);
        let daemon = lan.daemon("alpha");
        lan.good("alpha", &["down"]);
        assert!(daemon.has_ended(), "{daemon:?} outlives `regatta down`");
    }
    lan.assert_clean();
}

#[test]
fn machines_live_side_by_side() {
    let lan = trio();
    lan.good("beta", &["up", "--vm", "other", "--as", "beta", "gamma"]);
    assert_eq!(lan.living("beta").len(), 3);
    let other = lan.good("gamma", &["hosts", "--vm", "other", "--json"]);
    assert!(other.contains(r#""known":2"#), "{other}");
    let (status, _, said) = lan.regatta("gamma", &["up", "--vm", "other"]);
    assert_eq!(status, 125);
    assert!(
        said.contains("the virtual machine other is already running"),
        "{said}"
    );
    lan.good("gamma", &["down"]);
    lan.good("gamma", &["run", "--vm", "other", "-n", "2", "true"]);
    lan.good("gamma", &["down", "--vm", "other"]);
    lan.assert_clean();
}

#[test]
fn a_machine_of_this_host_alone_grows_to_an_address_the_others_reach() {
    let lan = Lan::new(&["alpha", "beta"]);
    // The likeliest address is one that no other host reaches.
    lan.sh("ip -n alpha address del 10.77.0.1/24 dev eth0
ip -n alpha link add aside0 type bridge
ip -n alpha address add 10.99.0.1/24 dev aside0
ip -n alpha link set aside0 up
ip -n alpha address add 10.77.0.1/24 dev eth0");
    lan.good("alpha", &["up", "--as", "alpha"]);
    lan.good("alpha", &["run", "-n", "2", "true"]);
    lan.good("alpha", &["add", "beta"]);
    let address = lan.report("beta")["hosts"][1]["address"].to_string();
    assert!(address.contains("10.77.0.1:"), "{address}");
    lan.good("beta", &["down"]);
    lan.assert_clean();
}
