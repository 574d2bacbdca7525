//! Sessions with consoles of PVM's, with that of Regatta and with PVM's own, and what of their words can be compared.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The output of a console for lines that come one after the other on its input.
pub fn talk(console: &mut Command, lines: &[&str]) -> String {
    let mut child = console
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a console");
    let mut input = child.stdin.take().expect("its input");
    for line in lines {
        writeln!(input, "{line}").expect("a line");
    }
    drop(input);
    let output = child.wait_with_output().expect("its end");
    String::from_utf8(output.stdout).expect("text")
}

/// Without what differs from run to run: numbers of tasks, processes and hosts, and what a host is called.
pub fn comparable(text: &str) -> Vec<String> {
    let plain = |word: &str| {
        let number = word
            .trim_start_matches(['t', '[', '('])
            .trim_end_matches([']', ':', ')']);
        let number = number.rsplit([':', '=']).next().unwrap_or(number);
        let number = number.trim_start_matches('t');
        let is_tid = number.len() >= 5 && number.chars().all(|c| c.is_ascii_hexdigit());
        let is_owner = word.starts_with("owner=");
        if is_tid || is_owner {
            "TID".to_owned()
        } else {
            word.to_owned()
        }
    };
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let host = host.trim();
    let line = |line: &str| {
        let words = line
            .split_whitespace()
            .map(|word| if word == host { "localhost" } else { word });
        words.map(plain).collect::<Vec<_>>().join(" ")
    };
    let same = |line: &str| !line.starts_with("pvmd already running");
    text.lines().filter(|line| same(line)).map(line).collect()
}

/// A command that makes a console answer. PVM's own shows the output of tasks only when it is asked for something.
const NUDGE: &str = "still here";
/// Time limit for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);

/// A console that is typed to.
struct Typed {
    child: Child,
    input: ChildStdin,
    heard: Receiver<String>,
    said: Vec<String>,
}

impl Typed {
    fn start(console: &mut Command) -> Typed {
        let mut child = console
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("a console");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            lines
                .take_while(|line| tell.send(line.clone()).is_ok())
                .count()
        });
        Typed {
            child,
            input,
            heard,
            said: Vec::new(),
        }
    }

    /// The next line that it says.
    fn read_line(&mut self) -> String {
        let heard = self.heard.recv_timeout(ANSWER_TIMEOUT);
        let heard = heard.unwrap_or_else(|why| panic!("{why}: {:#?}", self.said));
        heard.trim_end().trim_start_matches("pvm> ").to_owned()
    }

    /// Type a line, and wait until it has been taken: what is read at once is one line to PVM's own.
    fn type_in(&mut self, line: &str) {
        let whole = format!("{line}\n");
        self.input.write_all(whole.as_bytes()).expect("a line");
        if line == "halt" {
            return;
        }
        loop {
            let heard = self.read_line();
            let taken = heard == line;
            if !heard.contains(NUDGE) {
                self.said.push(heard);
            }
            if taken {
                break;
            }
        }
    }

    /// Ask for a sign of life, and wait for it.
    fn nudge(&mut self) {
        self.type_in(&format!("echo {NUDGE}"));
        loop {
            let heard = self.read_line();
            if heard == NUDGE {
                break;
            }
            self.said.push(heard);
        }
    }
}

/// The output of a console line by line: each is typed when the expected answer to the one before has come.
pub fn converse(console: &mut Command, lines: &[(&str, &str)]) -> Vec<String> {
    let mut console = Typed::start(console);
    for (line, last) in lines {
        console.type_in(line);
        let from = console.said.len();
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        let answered = |said: &[String]| said.iter().any(|said| said.contains(last));
        while *line != "halt" && !last.is_empty() && !answered(&console.said[from..]) {
            assert!(
                Instant::now() < deadline,
                "{line:?} is not answered: {:#?}",
                console.said
            );
            console.nudge();
        }
    }
    drop(console.input);
    console.child.wait().expect("its end");
    console.said
}
