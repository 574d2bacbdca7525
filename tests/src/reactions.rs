//! Measures how soon tasks are notified of failures and other events (`tests/programs/reaction.c`). The virtual machine
//! consists of nine network namespaces and has its default settings.
//!
//! `make reactions` measures it repeatedly. A test runs the same measurements once, so that they keep working.

use std::time::Duration;

use crate::network::{Network, ON_FIRST};
use crate::skipped::skip;
use crate::{command, programs};

/// Number of hosts with a task in collectives. One more host is added later.
const HOSTS: u32 = 8;
/// `STRUCK` is the host that fails; `ADDED` is added by ssh.
const STRUCK: &str = "h3";
const ADDED: &str = "h8";

/// A measured reaction and its target.
pub struct Measured {
    /// Name of the measurement.
    pub what: &'static str,
    /// Longest time the reaction may take.
    pub target: Duration,
    /// Measured times in ascending order.
    pub took: Vec<Duration>,
}

impl Measured {
    /// Returns the median time.
    pub fn median(&self) -> Duration {
        self.took[self.took.len() / 2]
    }

    /// Returns the longest time.
    pub fn worst(&self) -> Duration {
        self.took[self.took.len() - 1]
    }
}

/// Measures every reaction `times` times. Calls `tell` with the name of each measurement. Measurements that need root
/// are left out for other users.
pub fn measure(times: u32, mut tell: impl FnMut(&str)) -> Vec<Measured> {
    let is_root = rustix::process::geteuid().is_root();
    let mut network = Network::with(HOSTS + 1, !is_root);
    let others: Vec<String> = (1..HOSTS).map(|n| format!("h{n}:1")).collect();
    network.regatta(&format!("up --as h0:1 {}", others.join(" ")));
    let mut all = Vec::new();
    let mut add = |what, target, took: Vec<Duration>| {
        tell(what);
        let mut took = took;
        assert_eq!(took.len(), times as usize, "{what}");
        took.sort_unstable();
        let target = Duration::from_millis(target);
        all.push(Measured { what, target, took });
    };
    // This command runs in a task on a host. It enters the network namespace that has the bridge.
    let beside = "nsenter --net=/proc/1/ns/net ip link set v3";
    let (cut, heal) = (
        format!("{beside} nomaster"),
        format!("{beside} master bridge"),
    );
    // Some listed processes end before `kill` reaches them, because others have been killed.
    let kill = format!("ip netns pids {STRUCK} | xargs -r kill -9 2>/dev/null || true");

    let took = run(&mut network, 1, &format!("killed {STRUCK} {times}"));
    add(
        "a task on another host is killed: its watcher knows",
        50,
        took,
    );
    let words = format!("silent {STRUCK} {times} '{cut}' '{heal}'");
    let took = run(&mut network, 1, &words);
    add(
        "a host is cut off silently: a watcher of its task knows",
        2500,
        took,
    );
    let took = survive(&mut network, times, &kill);
    add(
        "all processes of a host are killed in collectives: all survivors go on",
        3000,
        took,
    );
    let took = survive(&mut network, times, &format!("{cut}; {kill}"));
    add(
        "a host's power fails in collectives: all survivors go on",
        3000,
        took,
    );
    if is_root {
        let took = add_by_ssh(&mut network, times);
        add("a host is added by ssh: a task runs there", 2000, took);
        network.end_all(HOSTS);
    } else {
        skip("only root can start a server of ssh on a host");
    }
    network.regatta("down");
    let left = network.left();
    assert!(left.is_empty(), "left behind: {left}");
    all
}

/// Adds and removes a host `times` times. Returns how long each addition took.
fn add_by_ssh(network: &mut Network, times: u32) -> Vec<Duration> {
    let ssh = network.serve_ssh(HOSTS);
    let regatta = command().display().to_string();
    let words = format!(
        "added {ADDED} {times} 'env -u REGATTA_RSH PATH={ssh}:$PATH {regatta} add {ADDED}:1' '{regatta} remove {ADDED}'"
    );
    run(network, 1, &words)
}

/// Strikes a host `times` times while tasks are in collectives. Returns the times until all other tasks had gone on.
fn survive(network: &mut Network, times: u32, strike: &str) -> Vec<Duration> {
    let mut took = Vec::new();
    for _ in 0..times {
        took.extend(run(network, HOSTS, &format!("collectives '{strike}'")));
        network.bring_back(3, &format!("{STRUCK}:1"), HOSTS);
    }
    took
}

/// Runs a job of the program on the machine's hosts. Returns the times that it measured.
fn run(network: &mut Network, tasks: u32, words: &str) -> Vec<Duration> {
    let line = format!(
        "{ON_FIRST} LD_LIBRARY_PATH={library} {regatta} run -n {tasks} --on-failure continue {program} {words}",
        library = programs::library().display(),
        regatta = command().display(),
        program = programs::program("reaction").display(),
    );
    network.start(&line);
    let (_, said) = network.outcome();
    for word in ["FAIL", "HUNG"] {
        assert!(!said.contains(word), "{words}: {said}");
    }
    let took: Vec<Duration> = said
        .lines()
        .filter_map(|line| line.strip_prefix("took ")?.parse().ok())
        .map(Duration::from_secs_f64)
        .collect();
    assert!(!took.is_empty(), "{words}: {said}");
    took
}
