//! Sessions with PVM consoles (Regatta's and PVM's own), and the comparable part of their output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Runs a console, writes these lines to its input at once, and returns its output.
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

/// Returns the words of a text, with everything replaced that differs from run to run: task, process and host numbers,
/// and the host's name.
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

/// A command that makes a console answer. PVM's own console shows the output of tasks only when it handles a command.
const NUDGE: &str = "still here";
/// Time limit for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);

/// A running console and its terminal.
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

    /// Waits for the next line of output.
    fn read_line(&mut self) -> String {
        let heard = self.heard.recv_timeout(ANSWER_TIMEOUT);
        let heard = heard.unwrap_or_else(|why| panic!("{why}: {:#?}", self.said));
        heard.trim_end().trim_start_matches("pvm> ").to_owned()
    }

    /// Types a line and waits until the console has read it. PVM's own console takes everything that one read returns
    /// for one line.
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

    /// Types a command whose answer is known, and waits for the answer.
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

/// Returns a console's output. Each line is typed only after the expected answer to the previous line has arrived.
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
