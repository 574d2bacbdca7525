//! A network of hosts for virtual machines: namespaces at a bridge, each with a directory for its sockets.
//!
//! All of it is created for one test, and removed with it: the namespaces with their last process, and the processes,
//! found by the mark in their environment, when this is dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::{MARK, Process, REGATTA, fresh_mark, marked, told};

/// The script of the process that holds the namespaces. It creates the hosts.
const NETWORK: &str = "set -e
mount -t tmpfs tmpfs /run
mkdir /run/netns /run/work
ip link set lo up
ip link add br0 type bridge
ip address add 10.77.0.254/24 dev br0
ip link set br0 up
number=0
for host in \"$@\"; do
    number=$((number + 1))
    ip netns add $host
    ip link add v-$host type veth peer name eth0 netns $host
    ip link set v-$host master br0 up
    ip -n $host link set lo up
    ip -n $host address add 10.77.0.$number/24 dev eth0
    ip -n $host link set eth0 up
    mkdir -p /run/of/$host
    chmod 700 /run/of/$host
done
echo ready
exec cat";
const RSH: &str = "env XDG_RUNTIME_DIR=/run/of/{host} ip netns exec {host}";

/// A bridge, with a namespace for each host. They end when this is dropped.
pub struct Lan {
    holder: Child,
    _input: ChildStdin,
    mark: String,
}

impl Lan {
    pub fn new(hosts: &[&str]) -> Self {
        super::needs::namespaces();
        let mark = fresh_mark();
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "--net"])
            .args(["sh", "-c", NETWORK, "sh"])
            .args(hosts)
            .env(MARK, &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare");
        let input = holder.stdin.take().expect("its input");
        let mut line = String::new();
        let mut lines = BufReader::new(holder.stdout.take().expect("its output"));
        lines.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n", "no network could be made");
        Self {
            holder,
            _input: input,
            mark,
        }
    }

    /// Returns a command that runs where the bridge is.
    pub fn beside(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &self.holder.id().to_string()])
            .args(["--user", "--mount", "--net", "--preserve-credentials", "--"])
            .args(words)
            .env(MARK, &self.mark)
            .env("REGATTA_RSH", RSH)
            .env_remove("REGATTA_VM")
            .stdin(Stdio::null());
        command
    }

    /// Returns a command that runs on a host.
    pub fn on(&self, host: &str, words: &[&str]) -> Command {
        let runtime = format!("XDG_RUNTIME_DIR=/run/of/{host}");
        // The log of a job whose launcher is lost is removed with the test.
        let there = [
            "env",
            "-C",
            "/run/work",
            &runtime,
            "ip",
            "netns",
            "exec",
            host,
        ];
        self.beside(&[&there[..], words].concat())
    }

    /// Runs `regatta` on a host to its end.
    pub fn regatta(&self, host: &str, arguments: &[&str]) -> (i32, String, String) {
        let words = [&[REGATTA], arguments].concat();
        told(&self.on(host, &words).output().expect("nsenter"))
    }

    /// Runs `regatta` on a host, which must succeed, and returns its output.
    pub fn good(&self, host: &str, arguments: &[&str]) -> String {
        let (status, output, said) = self.regatta(host, arguments);
        assert_eq!(status, 0, "{arguments:?} on {host}: {output}{said}");
        output
    }

    /// Runs a shell script where the bridge is, and returns its output.
    pub fn sh(&self, script: &str) -> String {
        let output = self
            .beside(&["sh", "-c", script])
            .output()
            .expect("nsenter");
        let (status, output, said) = told(&output);
        assert_eq!(status, 0, "{script}: {said}");
        output
    }

    /// Returns the machine as seen by a host.
    pub fn report(&self, host: &str) -> Value {
        serde_json::from_str(&self.good(host, &["hosts", "--json"])).expect("a report")
    }

    /// Returns the state of each host that is not gone, as seen by another.
    pub fn living(&self, host: &str) -> Vec<(String, String)> {
        states(&self.report(host))
            .into_iter()
            .filter(|(_, state)| !["dead", "left"].contains(&state.as_str()))
            .collect()
    }

    /// Starts watching everything that happens in the machine.
    pub fn watch(&self, host: &str) -> Watch {
        let mut child = self
            .on(host, &[REGATTA, "hosts", "--watch", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("nsenter");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        let (tell, reports) = channel();
        let reader = std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Watch {
            child,
            reports,
            last: String::new(),
            reader: Some(reader),
        }
    }

    /// Waits until `holds` is true for the machine as seen by a host.
    pub fn await_report(&self, host: &str, holds: impl FnMut(&Value) -> bool) -> Value {
        self.watch(host).until(holds)
    }

    /// Waits until a host sees this many others, none of them suspected, and may take on work.
    pub fn await_whole(&self, host: &str, others: usize) {
        self.await_report(host, |report| {
            let hosts = report["hosts"].as_array().into_iter().flatten();
            // A host has no name here until it has reported its number of cores.
            let up = hosts.filter(|host| host["state"] == "up" && host["cores"].is_u64());
            up.count() == others
                && report["standing"] == "majority"
                && report["known"] == others + 1
        });
    }

    /// Returns all processes that the test has started and that still run, except the holder.
    pub fn processes(&self) -> Vec<Process> {
        let holder = self.holder.id();
        let all = marked(&self.mark).into_iter();
        all.filter(|process| process.pid.as_raw_nonzero().get() as u32 != holder)
            .collect()
    }

    /// Returns the daemon of a host.
    pub fn daemon(&self, host: &str) -> Process {
        let home = format!("XDG_RUNTIME_DIR=/run/of/{host}\0");
        let is_it = |process: &Process| {
            let path = format!("/proc/{}/environ", process.pid.as_raw_nonzero());
            let environment = std::fs::read_to_string(path).unwrap_or_default();
            process.name == "regatta-daemon" && environment.contains(&home)
        };
        let mut found: Vec<Process> = self.processes().into_iter().filter(is_it).collect();
        assert_eq!(found.len(), 1, "daemons of {host}");
        found.remove(0)
    }

    /// Checks that nothing is left of any machine: no process, no socket, no directory.
    pub fn assert_clean(&self) {
        super::await_ends(&self.processes());
        assert_eq!(self.sh("find /run/of -mindepth 2"), "");
    }
}

impl Drop for Lan {
    fn drop(&mut self) {
        for process in self.processes() {
            let _ = kill_process(process.pid, Signal::KILL);
        }
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Returns each host of a report with its state.
pub fn states(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let hosts = report["hosts"].as_array().cloned().unwrap_or_default();
    hosts
        .iter()
        .map(|host| (text(&host["name"]), text(&host["state"])))
        .collect()
}

/// Returns the state of one host in a report, or an empty text if it is not listed.
pub fn state_of(report: &Value, host: &str) -> String {
    let found = states(report).into_iter().find(|(name, _)| name == host);
    found.map_or_else(String::new, |(_, state)| state)
}

/// A running `regatta hosts --watch`.
pub struct Watch {
    child: Child,
    reports: Receiver<String>,
    /// The last report received.
    last: String,
    reader: Option<JoinHandle<()>>,
}

impl Watch {
    /// Waits for a report for which `holds` is true, with a time limit.
    pub fn until(&mut self, mut holds: impl FnMut(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            self.last = match self.reports.recv_timeout(left) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => panic!("it never came to that: {}", self.last),
                Err(RecvTimeoutError::Disconnected) => panic!("the daemon has ended"),
            };
            let report: Value = serde_json::from_str(&self.last).expect("a report");
            if holds(&report) {
                return report;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
