//! The doctor's report.

mod support;

use std::process::Command;

use support::{REGATTA, text};

fn report(shell: &str) -> serde_json::Value {
    let output = Command::new("bash")
        .args(["-c", &format!("{shell} {REGATTA} doctor --json")])
        .output()
        .expect("bash");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn finding<'r>(report: &'r serde_json::Value, name: &str) -> &'r serde_json::Value {
    let findings = report["findings"].as_array().expect("findings");
    findings
        .iter()
        .find(|finding| finding["name"] == name)
        .unwrap_or_else(|| panic!("nothing about {name}"))
}

#[test]
fn every_area_is_examined() {
    let report = report("");
    for area in [
        "kernel",
        "cores",
        "limits",
        "path of a pair on this host",
        "surroundings",
        "tools",
        "peers",
    ] {
        let findings = report["findings"].as_array().expect("findings");
        assert!(
            findings.iter().any(|finding| finding["area"] == area),
            "{area}"
        );
    }
    assert_eq!(report["works"], true);
    assert_eq!(finding(&report, "shared memory")["state"], "ok");
}

#[test]
fn what_is_missing_comes_with_the_way_to_get_it() {
    let report = report("PATH=/no/such/place");
    let compiler = finding(&report, "cc");
    assert_eq!(compiler["state"], "missing");
    assert!(
        compiler["next"].as_str().expect("a step").contains("gcc"),
        "{compiler}"
    );
}

#[test]
fn a_limit_that_forbids_shared_memory_stops_us() {
    let output = Command::new("bash")
        .args([
            "-c",
            &format!("set -o pipefail; ulimit -f 1; {REGATTA} doctor | cat"),
        ])
        .output()
        .expect("bash");
    assert_eq!(output.status.code(), Some(1));
    let report = text(&output.stdout);
    assert!(
        report.contains("Regatta cannot work here without: shared memory."),
        "{report}"
    );
}

/// Root of a user namespace may not open one in the network namespace of its parent, but may in one of its own.
#[test]
fn the_right_to_open_packet_sockets_is_tried() {
    support::needs::namespaces();
    let sockets = |shell| finding(&report(shell), "packet sockets").clone();
    let refused = sockets("unshare --user --map-root-user");
    assert_eq!(refused["state"], "info");
    let next = refused["next"].as_str().expect("a step");
    assert!(next.contains("CAP_NET_RAW"), "{refused}");
    assert_eq!(
        sockets("unshare --user --map-root-user --net")["state"],
        "ok"
    );
}

#[test]
fn a_foreign_launcher_is_noticed() {
    let report = report("OMPI_COMM_WORLD_RANK=0");
    assert!(
        finding(&report, "launcher")["value"]
            .as_str()
            .expect("text")
            .contains("Open MPI")
    );
}

#[test]
fn colours_are_for_terminals() {
    let piped = Command::new(REGATTA)
        .arg("doctor")
        .output()
        .expect("regatta");
    assert!(!text(&piped.stdout).contains('\x1b'));
    let screen = |environment: &str| {
        let command = format!("{environment} {REGATTA} doctor");
        let output = Command::new("script")
            .args(["-qefc", &command, "/dev/null"])
            .output()
            .expect("script");
        text(&output.stdout)
    };
    assert!(screen("TERM=xterm").contains("\x1b[32m"));
    assert!(!screen("TERM=xterm NO_COLOR=1").contains('\x1b'));
}

#[test]
fn a_reader_who_leaves_is_no_error() {
    let output = Command::new("bash")
        .args(["-c", &format!("{REGATTA} doctor | head -n 1")])
        .output()
        .expect("bash");
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
}
