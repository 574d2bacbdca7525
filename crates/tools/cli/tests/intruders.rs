//! Callers that a virtual machine must refuse: unknown programs on the network, other users, other machines' daemons,
//! other versions.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use regatta_wire::framing::{self, FrameReader};
use regatta_wire::session::{FromDaemon, FromJob, PREAMBLE, PROTOCOL};
use serde_json::Value;
use support::lan::{Lan, state_of};
use support::{REGATTA, Scratch, told};

const STRANGERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/strangers.py");

/// Returns two hosts, and the address and port of the second one's daemon.
fn pair() -> (Lan, [String; 2]) {
    let lan = Lan::new(&["alpha", "beta", "gamma"]);
    lan.good("alpha", &["up", "--as", "alpha", "beta"]);
    let found = place(&lan.report("beta"), "beta");
    (lan, found)
}

fn place(report: &Value, host: &str) -> [String; 2] {
    let hosts = report["hosts"].as_array().expect("hosts");
    let found = hosts
        .iter()
        .find(|found| found["name"] == host)
        .expect("a host");
    let address = found["address"].as_str().expect("an address");
    let (ip, port) = address.rsplit_once(':').expect("a port");
    [ip.to_owned(), port.to_owned()]
}

/// Runs the program of a stranger, and returns its output.
fn stranger(lan: &Lan, arguments: &[&str]) -> String {
    let words = [&["python3", STRANGERS], arguments].concat();
    let (status, output, said) = told(&lan.beside(&words).output().expect("nsenter"));
    assert_eq!(status, 0, "{said}");
    output
}

/// Checks that the machine was not affected, and still works.
fn assert_unmoved(lan: &Lan) {
    for (host, other) in [("alpha", "beta"), ("beta", "alpha")] {
        let report = lan.report(host);
        assert_eq!(state_of(&report, other), "up");
        assert_eq!(report["standing"], "majority");
        let events = report["events"].to_string();
        assert!(!events.contains("is lost"), "{events}");
    }
    lan.good("alpha", &["add", "gamma"]);
    lan.good("beta", &["run", "true"]);
    lan.good("gamma", &["down"]);
    lan.assert_clean();
}

#[test]
fn scanners_and_garbage_get_no_answer_and_change_nothing() {
    let (lan, [ip, port]) = pair();
    assert!(stranger(&lan, &["scan", &ip, &port]).contains("no answer"));
    stranger(&lan, &["garbage", &ip, &port]);
    assert_unmoved(&lan);
}

#[test]
fn half_open_connections_are_bounded_and_keep_nobody_out() {
    let (lan, [ip, port]) = pair();
    let files = |lan: &Lan| {
        let path = format!("/proc/{}/fd", lan.daemon("beta").pid.as_raw_nonzero());
        std::fs::read_dir(path).expect("its files").count()
    };
    let before = files(&lan);
    let mut flood = lan
        .beside(&["python3", STRANGERS, "half-open", &ip, &port])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("nsenter");
    let mut line = String::new();
    let mut lines = BufReader::new(flood.stdout.take().expect("its output"));
    lines.read_line(&mut line).expect("a line");
    assert_eq!(line, "held\n");
    assert!(files(&lan) <= before + 64 + 8, "{} files", files(&lan));
    // While the flood lasts, all that have the key are let in.
    lan.good("alpha", &["run", "true"]);
    drop(flood.stdin.take());
    flood.wait().expect("its end");
    assert_unmoved(&lan);
}

#[test]
fn datagrams_sent_again_change_nothing() {
    let (lan, [ip, port]) = pair();
    // Another machine of the same user on the same hosts has another key.
    lan.good("alpha", &["up", "--vm", "other", "--as", "alpha", "beta"]);
    let other: Value =
        serde_json::from_str(&lan.good("beta", &["hosts", "--vm", "other", "--json"]))
            .expect("a report");
    let [_, other_port] = place(&other, "beta");
    let scratch = Scratch::new("replay");
    let file = scratch.0.join("heard").display().to_string();
    let heard = stranger(&lan, &["overhear", "v-beta", "60", &file]);
    assert!(heard.contains("heard 60"), "{heard}");
    stranger(&lan, &["replay", &file, &ip, &port]);
    stranger(&lan, &["replay", &file, &ip, &other_port]);
    lan.good("alpha", &["down", "--vm", "other"]);
    assert_unmoved(&lan);
}

/// Root can become another user for a moment. Other users cannot.
#[test]
fn another_user_cannot_speak_with_the_daemon() {
    if !rustix::process::geteuid().is_root() {
        support::skipped::skip("only root can run a command as another user");
        return;
    }
    let scratch = Scratch::new("users");
    let home = scratch.0.display().to_string();
    let regatta = |arguments: &[&str]| {
        let mut command = Command::new(REGATTA);
        let output = command
            .args(arguments)
            .env("XDG_RUNTIME_DIR", &home)
            .env_remove("REGATTA_VM")
            .stdin(Stdio::null())
            .output();
        told(&output.expect("regatta"))
    };
    let (status, _, said) = regatta(&["up", "--interface", "127.0.0.1"]);
    assert_eq!(status, 0, "{said}");
    let socket = format!("{home}/regatta/default.socket");
    // The scratch directory itself is open to all, so that it is the daemon's own that keeps others out.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&scratch.0, open).expect("its mode");
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args(["ls", &socket])
        .env("LC_ALL", "C")
        .output()
        .expect("setpriv");
    let (_, output, said) = told(&output);
    assert_eq!(output, "");
    assert!(said.contains("Permission denied"), "{said}");
    let (status, _, said) = regatta(&["down"]);
    assert_eq!(status, 0, "{said}");
    assert!(!scratch.0.join("regatta").exists());
    // A directory that another user has created first is not used either.
    let theirs = scratch.0.join("regatta");
    std::fs::create_dir(&theirs).expect("a directory");
    std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)).expect("its owner");
    let (status, _, said) = regatta(&["up", "--interface", "127.0.0.1"]);
    assert_eq!(status, 125);
    assert!(
        said.contains("because it belongs to the user 65534"),
        "{said}"
    );
}

/// Returns the last answer of a daemon to `said`, from a process of its user, or `None` if it hangs up.
fn answer(socket: &str, said: &[u8]) -> Option<FromDaemon> {
    let mut stream = UnixStream::connect(socket).expect("the daemon");
    stream.write_all(said).expect("room");
    stream.shutdown(Shutdown::Write).expect("an open socket");
    let mut bytes = Vec::new();
    // If it hangs up with unread bytes, reading returns an error.
    let _ = stream.read_to_end(&mut bytes);
    let mut frames = FrameReader::default();
    frames.push(&bytes);
    let next = || frames.next_message().expect("a message");
    std::iter::from_fn(next).last()
}

#[test]
fn a_daemon_says_why_to_a_process_of_another_version_and_nothing_to_nonsense() {
    let scratch = Scratch::new("session");
    let home = scratch.0.display().to_string();
    let regatta = |arguments: &[&str]| {
        let mut command = Command::new(REGATTA);
        command.args(arguments).env("XDG_RUNTIME_DIR", &home);
        let output = command.env_remove("REGATTA_VM").stdin(Stdio::null());
        assert_eq!(told(&output.output().expect("regatta")).0, 0);
    };
    regatta(&["up", "--interface", "127.0.0.1"]);
    let socket = format!("{home}/regatta/default.socket");
    let session = |protocol: u32, identity: &str, request: &FromJob| {
        let identity = identity.to_owned();
        let mut bytes = PREAMBLE.to_vec();
        let hello = FromJob::Hello { protocol, identity };
        framing::put(&hello, &mut bytes).expect("a short message");
        framing::put(request, &mut bytes).expect("a short message");
        bytes
    };
    let refused = |said: &[u8]| match answer(&socket, said) {
        Some(FromDaemon::Refused { sentence }) => sentence,
        other => panic!("{other:?}"),
    };
    let ours = regatta_launch::identity();
    let watch = FromJob::Watch {};
    for (protocol, identity) in [(PROTOCOL, "9.9.9"), (PROTOCOL + 1, &*ours)] {
        let sentence = refused(&session(protocol, identity, &watch));
        let both = [identity, &ours].map(|part| sentence.contains(part));
        assert_eq!(both, [true, true], "{sentence}");
    }
    // Only a process of its session may report for an agent.
    let lost = FromJob::OwnerLost {
        session: 1,
        successors: Vec::new(),
    };
    let sentence = refused(&session(PROTOCOL, &ours, &lost));
    assert!(sentence.contains("no such session"), "{sentence}");
    let mut endless = PREAMBLE.to_vec();
    endless.extend_from_slice(&u32::MAX.to_le_bytes());
    for nonsense in [
        &endless[..],
        &PREAMBLE[..4],
        b"\0garbage and more",
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        assert_eq!(answer(&socket, nonsense), None);
    }
    regatta(&["down"]);
}
