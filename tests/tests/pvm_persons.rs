//! Hosts that need a person to be added: to type a command on them (`so=ms`), or a password (`so=pw`).
//!
//! The test plays the person, at the other end of a pseudo-terminal. The hosts are other addresses of this machine.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use regatta_tests::pvm;
use regatta_tests::pvm_machine::{Machine, said};
use rustix::event::{PollFd, PollFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Time limit for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);

/// A program on a pseudo-terminal, and the text that the terminal has shown.
struct Session {
    screen: File,
    shown: String,
    program: Child,
}

impl Session {
    fn start(command: &mut Command) -> Session {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&screen).expect("a terminal");
        unlockpt(&screen).expect("a terminal");
        let name = ptsname(&screen, Vec::new()).expect("its name");
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let keys = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).expect("its other end");
        let output: OwnedFd = keys.try_clone().expect("its other end");
        let program = command.stdin(keys).stdout(output).stderr(Stdio::null());
        let program = program.spawn().expect("the program");
        Session {
            screen: screen.into(),
            shown: String::new(),
            program,
        }
    }

    /// Waits for these words. Returns the output before them, and consumes both.
    fn until(&mut self, words: &str) -> String {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        loop {
            if let Some(at) = self.shown.find(words) {
                let rest = self.shown.split_off(at + words.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let left = rustix::time::Timespec::try_from(left).expect("a short time");
            let mut fds = [PollFd::new(&self.screen, PollFlags::IN)];
            let ready = rustix::event::poll(&mut fds, Some(&left));
            assert_eq!(ready, Ok(1), "no {words:?} in {:?}", self.shown);
            let mut bytes = [0; 4096];
            let count = self.screen.read(&mut bytes).expect("the terminal");
            self.shown += &String::from_utf8_lossy(&bytes[..count]);
        }
    }

    fn type_line(&mut self, line: &str) {
        writeln!(self.screen, "{line}").expect("the terminal");
    }

    /// Waits for the next prompt. Returns the host that it names and the command to type there.
    fn asked(&mut self) -> (String, String) {
        let prompt = self.until("Type response: ").replace('\r', "");
        let (_, prompt) = prompt
            .split_once("*** Manual startup ***\nLogin to \"")
            .expect("PVM's words");
        let (host, rest) = prompt.split_once("\" and type:\n").expect("PVM's words");
        let (command, _) = rest.split_once('\n').expect("a command");
        (host.to_owned(), command.to_owned())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn program(machine: &Machine) -> PathBuf {
    machine.install(&pvm::program("pvm_add"), "pvm_add")
}

#[test]
fn a_person_starts_a_host_by_hand_and_is_asked_for_one_at_a_time() {
    let machine = Machine::new("pvm-by-hand");
    let program = program(&machine);
    let lines = ["127.0.0.3 so=ms", "127.0.0.4 so=ms"];
    let mut session = Session::start(machine.by_hand(&program).args(lines));
    let (host, command) = session.asked();
    assert_eq!(host, "127.0.0.3");
    let line = said(machine.by_hand("sh".as_ref()).args(["-c", &command]));
    assert!(
        line.starts_with("ddpro<") && line.lines().count() == 1,
        "{line}"
    );
    session.type_line(line.trim());
    session.until("Thanks");
    assert_eq!(session.asked().0, "127.0.0.4");
    session.type_line("good morning");
    session.until("added: 1 0 -29, hosts: 2");
    drop(session);
    machine.halt();
}

#[test]
fn who_has_gone_is_not_asked_any_more() {
    let machine = Machine::new("pvm-gone");
    let program = program(&machine);
    let mut gone = Session::start(machine.by_hand(&program).arg("127.0.0.3 so=ms"));
    gone.asked();
    drop(gone);
    let mut session = Session::start(machine.by_hand(&program).arg("127.0.0.4 so=ms"));
    assert_eq!(session.asked().0, "127.0.0.4");
    // End of input (Ctrl-D).
    session.screen.write_all(&[4]).expect("the terminal");
    session.until("added: 0 -29, hosts: 1");
    drop(session);
    let mut waiting = Session::start(machine.by_hand(&program).arg("127.0.0.3 so=ms"));
    waiting.asked();
    // Halting the machine ends waiting programs, too.
    machine.halt();
}

/// A script in place of ssh: prompts as ssh does without a terminal, then runs the command here with an empty
/// environment.
const SSH: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift 2
[ "$SSH_ASKPASS_REQUIRE" = force ] || exit 255
word=$("$SSH_ASKPASS" "joe's password: ") && [ "$word" = "open sesame" ] &&
    exec env -u REGATTA_ASK_AT "$@"
echo "joe@there: Permission denied (password)." >&2
exit 255
"#;

#[test]
fn a_person_types_the_password_that_ssh_asks_for() {
    let machine = Machine::new("pvm-password");
    let program = program(&machine);
    let folder = machine.script("ssh", SSH);
    let folder = folder.parent().expect("its folder").display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    for (word, end) in [
        ("let me in", "added: 0 -29, hosts: 1"),
        ("open sesame", "added: 1 0, hosts: 2"),
    ] {
        let mut command = machine.by_hand(&program);
        command.arg("127.0.0.3 so=pw").env("PATH", &path);
        let mut session = Session::start(command.env_remove("PVM_RSH"));
        session.until("joe's password: ");
        session.type_line(word);
        let shown = session.until(end);
        assert!(!shown.contains(word), "the password was shown: {shown}");
    }
    machine.halt();
}

#[test]
fn where_nobody_sits_nobody_is_asked() {
    let machine = Machine::new("pvm-nobody");
    let program = program(&machine);
    let mut command = machine.by_hand(&program);
    command.args(["127.0.0.3 so=ms", "127.0.0.4 so=pw"]);
    assert_eq!(said(&mut command), "added: 0 -29 -29, hosts: 1\n");
    machine.halt();
}
