//! Hosts that cannot be added, and the reasons. A failed attempt leaves nothing, and the machine goes on.

mod support;

use std::io::Write;
use std::process::Stdio;

use rustix::process::Signal;
use support::lan::{Lan, state_of, states};
use support::{REGATTA, Running, Scratch, await_ends, told};

fn pair() -> Lan {
    let lan = Lan::new(&["alpha", "beta", "gamma", "delta"]);
    lan.good("alpha", &["up", "--as", "alpha", "beta"]);
    lan
}

/// Checks that the attempt fails with an error that has all `parts`, leaves nothing, and does not change the machine.
fn assert_refused(lan: &Lan, arguments: &[&str], parts: &[&str]) {
    let (status, output, said) = lan.regatta("alpha", arguments);
    assert_eq!((status, output.as_str()), (125, ""), "{said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
    assert_unchanged(lan);
}

fn assert_unchanged(lan: &Lan) {
    lan.await_whole("alpha", 1);
    lan.await_whole("beta", 1);
    let (kept, others): (Vec<_>, Vec<_>) = lan.processes().into_iter().partition(|process| {
        [lan.daemon("alpha").pid, lan.daemon("beta").pid].contains(&process.pid)
    });
    assert_eq!(kept.len(), 2);
    await_ends(&others);
    assert_eq!(
        lan.sh("ls /run/of/gamma /run/of/delta | grep -v : || true")
            .trim(),
        ""
    );
}

#[test]
fn one_host_that_cannot_be_reached_keeps_all_out() {
    let lan = pair();
    assert_refused(
        &lan,
        &["add", "gamma", "nowhere"],
        &[
            "no agent could be started on the host nowhere",
            "no host was added",
        ],
    );
    assert_refused(
        &lan,
        &["add", "gamma", "beta"],
        &["the host beta is already in the virtual machine"],
    );
    let (status, _, said) = lan.regatta("alpha", &["add", "gamma", "gamma"]);
    assert_eq!(status, 2);
    assert!(said.contains("the host gamma is named twice"), "{said}");
    lan.good("alpha", &["add", "gamma", "delta"]);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

/// Makes a host drop some input by a routing rule, which also works with a kernel without firewalls.
fn firewall(lan: &Lan, host: &str, what: &str) {
    lan.sh(&format!(
        "ip -n {host} rule add pref 10 lookup local
ip -n {host} rule del pref 0
ip -n {host} rule add pref 5 iif eth0 {what} blackhole"
    ));
}

/// Removes that rule.
fn no_firewall(lan: &Lan, host: &str) {
    lan.sh(&format!(
        "ip -n {host} rule add pref 0 lookup local
ip -n {host} rule del pref 10
ip -n {host} rule del pref 5"
    ));
}

#[test]
fn a_firewall_is_told_by_what_it_stops() {
    let lan = pair();
    firewall(&lan, "gamma", "ipproto tcp");
    assert_refused(
        &lan,
        &["add", "gamma"],
        &["the host gamma cannot be reached from", "firewall"],
    );
    no_firewall(&lan, "gamma");
    // Connections are accepted, datagrams are dropped.
    firewall(&lan, "gamma", "ipproto udp");
    assert_refused(
        &lan,
        &["add", "gamma"],
        &[
            "datagrams do not arrive (UDP",
            "firewall",
            "no host was added",
        ],
    );
    no_firewall(&lan, "gamma");
    // The adding host is let through, another host of the machine is not.
    firewall(&lan, "gamma", "from 10.77.0.2 ipproto tcp");
    assert_refused(
        &lan,
        &["add", "gamma"],
        &[
            "gamma cannot connect to the host beta at 10.77.0.2:",
            "firewall",
        ],
    );
    no_firewall(&lan, "gamma");
    lan.good("alpha", &["add", "gamma"]);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

#[test]
fn a_host_with_another_version_or_no_place_for_a_socket_is_refused() {
    let lan = pair();
    let scratch = Scratch::new("other-version");
    let other = scratch.file(
        "other",
        0o755,
        b"#!/bin/sh\nprintf '\\nregatta-agent 9.9.9 (channel 9)\\n'\nexec cat >/dev/null\n",
    );
    assert_refused(
        &lan,
        &["add", "--rsh", &format!("env {other} {{host}}"), "gamma"],
        &[
            "the host gamma runs regatta 9.9.9 (channel 9)",
            "install the same release on both",
        ],
    );
    lan.sh("mount -t tmpfs -o ro tmpfs /run/of/gamma");
    assert_refused(
        &lan,
        &["add", "gamma"],
        &[
            "on the host gamma: cannot create the directory",
            "XDG_RUNTIME_DIR",
        ],
    );
    lan.sh("umount /run/of/gamma");
    lan.good("alpha", &["add", "gamma"]);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

#[test]
fn a_command_of_another_version_is_told_so_and_can_still_end_everything() {
    let lan = pair();
    let script = "import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect('/run/of/beta/regatta/default.socket')
s.sendall(sys.argv[1].encode() + b'\\n')
print(s.makefile().readline())
";
    let ask = |line: &str| {
        let mut child = lan
            .on("beta", &["python3", "-", line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("nsenter");
        child
            .stdin
            .take()
            .expect("its input")
            .write_all(script.as_bytes())
            .expect("room");
        told(&child.wait_with_output().expect("its end")).1
    };
    let said = ask(r#"{"identity":"9.9.9","ask":"invitation"}"#);
    assert!(
        said.contains("the program that connected to it is regatta 9.9.9: use the same release"),
        "{said}"
    );
    // Requests that only daemons may make are refused, and malformed ones end the connection.
    for line in [
        r#"{"identity":"9.9.9","ask":"end"}"#,
        "nonsense",
        r#"{"identity":"9.9.9","ask":{"shell_here":{"job":""}}}"#,
    ] {
        assert_eq!(ask(line).trim(), "", "{line}");
    }
    assert_unchanged(&lan);
    assert!(ask(r#"{"identity":"9.9.9","ask":"down"}"#).contains("done"));
    lan.assert_clean();
}

#[test]
fn an_attempt_that_is_killed_in_the_middle_leaves_nothing() {
    let lan = pair();
    // Delta cannot join, so gamma, which can, is not told to stay yet.
    firewall(&lan, "delta", "ipproto udp");
    let mut watch = lan.watch("beta");
    let attempt = Running::start_command(&mut lan.on("alpha", &[REGATTA, "add", "gamma", "delta"]));
    watch.until(|report| state_of(report, "gamma") == "up");
    attempt.signal(Signal::KILL);
    watch.until(|report| state_of(report, "gamma") == "left");
    attempt.end();
    drop(watch);
    assert_unchanged(&lan);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

#[test]
fn a_machine_that_cannot_come_up_is_not_up_in_part() {
    let lan = Lan::new(&["alpha", "beta"]);
    let (status, output, said) = lan.regatta("alpha", &["up", "beta", "nowhere"]);
    assert_eq!((status, output.as_str()), (125, ""), "{said}");
    assert!(
        said.contains("no agent could be started on the host nowhere"),
        "{said}"
    );
    lan.assert_clean();
}

#[test]
fn machines_with_one_host_name_are_told_apart_by_what_they_are_called_here() {
    let lan = pair();
    let names = |host: &str| told(&lan.on(host, &["hostname"]).output().expect("hostname")).1;
    assert_eq!(names("alpha"), names("beta"));
    let known = states(&lan.report("alpha"));
    assert_eq!(
        known
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        ["alpha", "beta"]
    );
    lan.good("alpha", &["remove", "beta"]);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

#[test]
fn a_daemon_without_free_files_stays_in_the_machine_and_recovers() {
    let lan = pair();
    let daemon = lan.daemon("beta").pid.as_raw_nonzero().to_string();
    let limit = |most: &str| {
        lan.sh(&format!("prlimit --pid {daemon} --nofile={most}:"));
    };
    let open = std::fs::read_dir(format!("/proc/{daemon}/fd"))
        .expect("its files")
        .count();
    limit(&(open + 1).to_string());
    let (status, _, said) = lan.regatta("alpha", &["run", "true"]);
    assert_ne!(status, 0, "{said}");
    assert!(said.contains("beta"), "{said}");
    assert_eq!(state_of(&lan.report("alpha"), "beta"), "up");
    limit("1024");
    lan.good("alpha", &["run", "true"]);
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

/// Makes the wall clock jump by years, forward and back, at each reading.
const JUMPY: &str = "#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
int clock_gettime(clockid_t clock, struct timespec *at)
{
    static unsigned looks;
    int status = (int)syscall(SYS_clock_gettime, clock, at);
    if (clock == CLOCK_REALTIME)
        at->tv_sec += (looks++ % 2 ? 1 : -1) * 40000000L * (1 + looks % 7);
    return status;
}
";

#[test]
fn a_clock_that_jumps_changes_nothing() {
    let lan = Lan::new(&["alpha", "beta"]);
    let scratch = Scratch::new("clock");
    let source = scratch.file("clock.c", 0o600, JUMPY.as_bytes());
    let library = scratch.0.join("clock.so").display().to_string();
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o", &library, &source])
        .status();
    assert!(built.expect("cc").success());
    let jumpy = format!("LD_PRELOAD={library}");
    let rsh = format!("env {jumpy} XDG_RUNTIME_DIR=/run/of/{{host}} ip netns exec {{host}}");
    lan.good("alpha", &["up", "--as", "alpha", "--rsh", &rsh, "beta"]);
    // A second run of the daemon reads an earlier year than the first.
    for _ in 0..3 {
        lan.daemon("beta").kill();
        lan.await_whole("alpha", 0);
        lan.good("alpha", &["add", "--rsh", &rsh, "beta"]);
        lan.await_whole("beta", 1);
    }
    lan.good("beta", &["run", "true"]);
    let events = lan.report("beta")["events"].to_string();
    assert!(!events.contains("suspected"), "{events}");
    lan.good("alpha", &["down"]);
    lan.assert_clean();
}

#[test]
fn a_machine_whose_beginning_is_killed_while_hosts_are_added_leaves_nothing() {
    let lan = Lan::new(&["alpha", "beta"]);
    lan.sh("mkfifo /run/asked");
    // A shell that leads nowhere: it records that it was run, and ends with the command.
    let script = b"#!/bin/sh\necho asked >/run/asked\nexec cat >/dev/null\n";
    let scratch = Scratch::new("beginning");
    let rsh = scratch.file("nowhere", 0o755, script);
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        let words = [REGATTA, "up", "--as", "alpha", "--rsh", &rsh, "beta"];
        let up = Running::start_command(&mut lan.on("alpha", &words));
        assert_eq!(lan.sh("cat /run/asked").trim(), "asked");
        lan.await_whole("alpha", 0);
        up.signal(signal);
        let (status, said) = up.end();
        assert_ne!(status, 0, "{said}");
        await_ends(&lan.processes());
        lan.assert_clean();
    }
    lan.good("alpha", &["up", "--as", "alpha", "beta"]);
    lan.good("beta", &["down"]);
    lan.assert_clean();
}

#[test]
fn hosts_that_were_added_are_known_by_their_names_when_the_command_returns() {
    let others = ["beta", "gamma", "delta", "epsilon", "zeta"];
    let lan = Lan::new(&[&["alpha"], &others[..]].concat());
    // Names are sent separately from hosts, and used to arrive later in about every fourth machine.
    for _ in 0..6 {
        lan.good("alpha", &[&["up", "--as", "alpha"], &others[..]].concat());
        let report = lan.report("alpha");
        let hosts = report["hosts"].as_array().expect("hosts");
        for other in others {
            let found = hosts.iter().find(|host| host["name"] == other);
            assert!(
                found.is_some_and(|host| host["cores"].is_u64()),
                "{other}: {hosts:?}"
            );
        }
        lan.good("alpha", &["down"]);
    }
    lan.assert_clean();
}
