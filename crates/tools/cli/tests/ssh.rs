//! Hosts by ssh: a real server on a port of this machine, with keys created for the test.

mod support;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use support::{REGATTA, Scratch, needs, text, told};

/// An ssh server, and a command `ssh` that knows it as the host `alpha`.
struct Server {
    scratch: Scratch,
    child: Child,
}

/// Creates a pair of keys without a passphrase.
fn make_key(file: &str) {
    let made = Command::new(which("ssh-keygen"))
        .args(["-q", "-t", "ed25519", "-N", "", "-f", file])
        .status()
        .expect("ssh-keygen");
    assert!(made.success());
}

/// Returns the server's command. As root it needs a folder that may be missing on a system without a running server.
fn sshd() -> Command {
    let sshd = which("sshd");
    match rustix::process::geteuid().is_root() {
        false => Command::new(sshd),
        true => {
            let mut command = Command::new("unshare");
            let script = "mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec \"$@\"";
            command.args(["--mount", "sh", "-c", script, "sh", &sshd]);
            command
        }
    }
}

impl Server {
    fn start(name: &str) -> Self {
        let scratch = Scratch::new(&format!("ssh-{name}"));
        let folder = scratch.0.display().to_string();
        for key in ["server", "user", "stranger"] {
            make_key(&format!("{folder}/{key}"));
        }
        std::fs::copy(scratch.0.join("user.pub"), scratch.0.join("known-users")).expect("a copy");
        // A port that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|socket| socket.local_addr())
            .expect("a port")
            .port();
        let server = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/server\nPidFile none\nUsePAM no\nStrictModes no\n\
             AuthorizedKeysFile {folder}/known-users\nPasswordAuthentication yes\nLogLevel VERBOSE\nAcceptEnv REGATTA_TEST_MARK\n"
        );
        let server = scratch.file("server.conf", 0o600, server.as_bytes());
        let public = std::fs::read_to_string(scratch.0.join("server.pub")).expect("a key");
        scratch.file(
            "known-hosts",
            0o600,
            format!("[127.0.0.1]:{port} {public}").as_bytes(),
        );
        let client = format!(
            "Host alpha beta locked changed\n HostName 127.0.0.1\n Port {port}\n IdentitiesOnly yes\n\
             Host alpha beta changed\n IdentityFile {folder}/user\n\
             Host locked\n IdentityFile {folder}/stranger\n\
             Host closed\n HostName 127.0.0.1\n Port 1\n\
             Host changed\n UserKnownHostsFile {folder}/nothing\n\
             Host *\n UserKnownHostsFile {folder}/known-hosts\n GlobalKnownHostsFile none\n StrictHostKeyChecking yes\n"
        );
        let client = scratch.file("client.conf", 0o600, client.as_bytes());
        let real = which("ssh");
        scratch.file(
            "ssh",
            0o755,
            format!("#!/bin/sh\nexec {real} -F {client} \"$@\"\n").as_bytes(),
        );
        let mut child = sshd()
            .args(["-D", "-e", "-f", &server])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("sshd");
        let mut log = BufReader::new(child.stderr.take().expect("its log"));
        let mut line = String::new();
        while !line.contains("Server listening") {
            line.clear();
            assert!(
                log.read_line(&mut line).expect("a line") > 0,
                "sshd does not start"
            );
        }
        // The log must be read, or the server would block at some point.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { scratch, child }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(REGATTA);
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .args(arguments)
            .env("PATH", format!("{}:{path}", self.scratch.0.display()))
            .env_remove("SSH_AUTH_SOCK")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        told(
            &self
                .command(&[&["run"], arguments].concat())
                .output()
                .expect("regatta"),
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the path of a program of ssh.
fn which(program: &str) -> String {
    let package = match program {
        "sshd" => "openssh-server",
        _ => "openssh-client",
    };
    needs::program(program, package).display().to_string()
}

#[test]
fn a_job_runs_by_ssh() {
    let server = Server::start("job");
    let task = [
        "sh",
        "-c",
        "echo $REGATTA_JOB | cut -d: -f3,4; [ -n \"$SSH_CONNECTION\" ] && exit 4",
    ];
    let (status, output, said) =
        server.run(&[&["--label", "--host", "alpha:2"], &task[..]].concat());
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    assert_eq!(status, 4, "{said}");
    assert_eq!(lines, ["[0] 0:2", "[1] 1:2"], "{said}");
    assert!(said.contains("on alpha) exited with status 4"), "{said}");
}

#[test]
fn the_program_travels_by_ssh_when_the_host_has_none() {
    let server = Server::start("send");
    let (status, output, said) = server.run(&["--send-agent", "--host", "alpha:1", "echo", "here"]);
    assert_eq!((status, output.as_str()), (0, "here\n"), "{said}");
    assert!(said.contains("was sent there for the job"), "{said}");
}

#[test]
fn each_fault_of_ssh_has_a_sentence_with_a_remedy() {
    let server = Server::start("faults");
    for (host, what, remedy) in [
        (
            "locked",
            "asks for a password or refuses your key",
            "ssh-copy-id locked",
        ),
        ("closed", "does not run an ssh server", "start sshd there"),
        (
            "changed",
            "has a key that ssh does not know",
            "`ssh changed`",
        ),
        ("no-such-host.invalid", "is unknown here", "/etc/hosts"),
    ] {
        let (status, _, said) = server.run(&["--host", host, "true"]);
        assert_eq!(status, 125, "{host}: {said}");
        assert!(
            said.contains(host) && said.contains(what) && said.contains(remedy),
            "{said}"
        );
    }
}

#[test]
fn this_machine_by_another_name_is_recognised() {
    let server = Server::start("twice");
    for hosts in ["alpha,beta", "localhost,alpha"] {
        let (status, _, said) = server.run(&["--host", hosts, "true"]);
        assert_eq!(status, 125, "{said}");
        assert!(said.contains("are two names for one host"), "{said}");
    }
}

#[test]
fn the_doctor_tells_good_hosts_from_bad_ones() {
    let server = Server::start("doctor");
    let output = server
        .command(&["doctor", "--json", "--host", "alpha,locked"])
        .output()
        .expect("regatta");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
    let findings = report["findings"].as_array().expect("findings");
    let state = |name: &str| {
        let found = findings
            .iter()
            .find(|finding| finding["area"] == "hosts" && finding["name"] == name);
        found.map(|finding| finding["state"].clone())
    };
    assert_eq!(
        state("alpha"),
        Some("ok".into()),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(state("locked"), Some("missing".into()));
}

#[test]
fn a_machine_that_ssh_cannot_bring_up_says_why_and_leaves_nothing() {
    let server = Server::start("machine");
    let home = server.scratch.0.join("home");
    std::fs::create_dir(&home).expect("a directory");
    for (host, what) in [
        ("no-such-host.invalid", "is unknown here"),
        ("locked", "asks for a password or refuses your key"),
        ("closed", "does not run an ssh server"),
        // This machine by another name.
        ("alpha", "are two names for one host"),
    ] {
        let output = server
            .command(&["up", host])
            .env("XDG_RUNTIME_DIR", &home)
            .env_remove("REGATTA_VM")
            .env_remove("REGATTA_RSH")
            .output()
            .expect("regatta");
        let (status, output, said) = told(&output);
        assert_eq!((status, output.as_str()), (125, ""), "{host}: {said}");
        assert!(said.contains(host) && said.contains(what), "{said}");
        assert!(said.contains("no host was added"), "{said}");
        assert_eq!(std::fs::read_dir(&home).expect("a directory").count(), 0);
    }
}
