//! PVM's own console, as Debian has built it, has the same output on Regatta's library as on PVM's, except for numbers
//! of tasks and processes and the texts of error codes.

use std::path::Path;
use std::process::Command;

use regatta_tests::console::{comparable, converse, talk};
use regatta_tests::programs;
use regatta_tests::pvm_machine::Machine;

const CONSOLE: &str = "/usr/bin/pvm";

/// Runs `console` on Regatta's library and PVM's own console on PVM. Returns both outputs.
fn on_both(
    name: &str,
    console: &Path,
    session: impl Fn(Command) -> Vec<String>,
) -> (Vec<String>, Vec<String>) {
    regatta_tests::needs::file(CONSOLE, "pvm");
    let machine = Machine::new(name);
    for name in ["hello", "hello_other"] {
        machine.example(name);
    }
    // Line-buffered even without a terminal.
    let lines = |mut command: Command, console: &Path| {
        command.arg("-oL").arg(console);
        session(command)
    };
    let theirs = {
        let original = machine.original();
        let command = machine.on_original(&original, "stdbuf".as_ref());
        lines(command, CONSOLE.as_ref())
    };
    // Files that a job is written to must not exist yet.
    for written in ["heard", "written"] {
        let _ = std::fs::remove_file(machine.place().join(written));
    }
    let ours = lines(machine.by_hand("stdbuf".as_ref()), console);
    machine.halt();
    (ours, theirs)
}

/// Replaces PVM's error texts in a line by Regatta's.
fn in_our_words(line: &str) -> String {
    let sentences = [
        ("Bad parameter", "An argument is not valid"),
        ("No such file", "There is no such program"),
        ("No such host", "There is no such host"),
        ("No such task", "There is no such task"),
    ];
    let of = |line: String, (theirs, ours): (&str, &str)| line.replace(theirs, ours);
    sentences.into_iter().fold(line.to_owned(), of)
}

fn same(ours: &[String], theirs: &[String], least: usize) {
    let theirs = theirs.iter().map(|line| in_our_words(line));
    let theirs: Vec<String> = theirs.collect();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "on Regatta, then on PVM");
    }
    assert_eq!(ours.len(), theirs.len(), "{ours:#?} {theirs:#?}");
    assert!(ours.len() >= least, "too little is said: {ours:#?}");
}

/// Every command that shows or changes the machine, with valid and invalid arguments. (Regatta lists the mailbox in the
/// order of names, PVM in the order of first use.)
const COMMANDS: &[&str] = &[
    "version",
    "conf",
    "id",
    "ps -x",
    "ps -al",
    "ps -nnosuch",
    "ps -h40000",
    "ps -z",
    "put many 2 7",
    "put many 2 8",
    "put over 4 9",
    "put over 4 10",
    "put stone 0 7",
    "put stone 0 8",
    "put tail 1 9",
    "names",
    "names stone",
    "reset info",
    "reset info stone",
    "reset info stone 0",
    "reset nosuch",
    "names",
    "alias hello echo hi",
    "hello there",
    "alias",
    "unalias hello",
    "hello",
    "echo \"a b\" 'c  d' e\\ f a#b",
    "setenv COLOUR blue sky",
    "setenv COLOUR",
    "setenv NOSUCH",
    "export COLOUR",
    "export COLOUR SHAPE",
    "export",
    "unexport COLOUR",
    "export",
    "getopt",
    "setopt PvmRoute 3",
    "getopt PvmRoute",
    "getopt nosuch",
    "setopt nosuch 1",
    "setopt PvmAutoErr 9",
    "getopt PvmAutoErr",
    "setopt PvmAutoErr 1",
    "trace",
    "trace - *",
    "trace + nosuch",
    "trace send recv",
    "trace",
    "trace buf 100",
    "trace buf",
    "trace opt time",
    "trace opt",
    "trace opt nosuch",
    "trace xpvm",
    "mstat",
    "mstat nosuch",
    "pstat",
    "pstat 40999 zz",
    "kill",
    "kill 49999",
    "kill -c 49999",
    "kill -y 49999",
    "sig 10",
    "sig 10 49999",
    "spawn",
    "spawn -2",
    "spawn nosuch",
    "spawn -2 nosuch",
    "spawn -nosuch hello",
    "spawn -NOSUCH hello",
    "jobs",
    "jobs -l",
    "add",
    "delete",
    "delete nosuch",
    "tickle",
    "tickle 4",
    "tickle 5",
    "tickle 6 3",
    "tickle 5",
    "tickle 6 0",
    "tickle 99",
    "idump",
    "idump 1",
    "help",
    "help spawn",
    "help nosuch",
    "frob",
    "reset",
    "names",
];

#[test]
fn each_command_does_what_it_does_on_pvm() {
    let session = |mut console: Command| comparable(&talk(&mut console, COMMANDS));
    let (ours, theirs) = on_both("pvm-original-forms", CONSOLE.as_ref(), session);
    same(&ours, &theirs, 280);
}

/// Sorts lines whose order is not fixed.
fn sorted(lines: &[String]) -> Vec<String> {
    let mut lines = comparable(&lines.join("\n"));
    lines.sort();
    lines
}

#[test]
fn tasks_are_started_heard_and_ended() {
    let lines = [
        ("spawn -2 -> hello", "[1] finished"),
        ("jobs", ""),
        ("spawn ->heard hello", "[2] finished"),
        ("spawn ->heard hello", "[3]"),
        ("spawn -3 hello", "t4"),
        ("spawn -:/ -> /bin/pwd", "[4] finished"),
        ("spawn -2 /bin/sleep 1000", "t4"),
        ("reset", ""),
        ("spawn -> hello", "[5] finished"),
        ("names", "NO_RESET"),
    ];
    let session = |mut console: Command| sorted(&converse(&mut console, &lines));
    let (ours, theirs) = on_both("pvm-original-tasks", CONSOLE.as_ref(), session);
    same(&ours, &theirs, 50);
}

/// Returns recorded events without times and without numbers of tasks and buffers.
fn events(said: &[String]) -> Vec<String> {
    let bare = |line: &String| {
        let (_, event) = line.split_once("] ")?;
        let name = event.split(' ').next()?;
        if !(line.starts_with("[T") && event.starts_with('"') && event.contains("{ ")) {
            return None;
        }
        let has_buffer = name == "\"recv(1.1)\"";
        let mut number = 0;
        let words = event.split(' ').map(|word| {
            let plain = word.trim_end_matches(',');
            number += usize::from(plain.parse::<i64>().is_ok());
            let large = plain.parse::<i64>().is_ok_and(|number| number > 0x400);
            let second = number == 2 || has_buffer && number == 4;
            match (large || second, plain.strip_prefix('t')) {
                (true, _) => "N",
                (false, Some(tid)) if tid.starts_with('4') => "T",
                _ => word,
            }
        });
        Some(words.collect::<Vec<_>>().join(" "))
    };
    let mut events: Vec<String> = said.iter().filter_map(bare).collect();
    events.sort();
    events
}

/// Compares the traces that `console` prints on Regatta with those of PVM's own console on PVM.
fn same_traces(name: &str, console: &Path) {
    // PVM's library traces message handlers of its own.
    let lines = [
        ("trace - mhf_invoke", ""),
        ("spawn -@ hello", "[1] finished"),
        ("trace opt count", ""),
        ("spawn -@ -> hello", "[3] finished"),
        ("spawn -@written hello", "[5] finished"),
        ("jobs", ""),
    ];
    let session = |mut console: Command| {
        let said = converse(&mut console, &lines);
        let mut events = events(&said);
        events.retain(|event| !event.starts_with("\"host_add") && !event.contains("hello, world"));
        events
    };
    let (ours, theirs) = on_both(name, console, session);
    same(&ours, &theirs, 40);
    let told = |name: &str| ours.iter().filter(|line| line.starts_with(name)).count();
    assert_eq!(told("\"newtask(0)\""), 4, "{ours:#?}");
    assert_eq!(told("\"profiling(0)\""), 2, "{ours:#?}");
}

#[test]
fn tasks_are_traced() {
    same_traces("pvm-original-traced", CONSOLE.as_ref());
}

#[test]
fn regatta_s_own_console_traces_them_as_well() {
    let command = programs::built("regatta", "regatta-cli");
    let console = programs::link(&command, "pvm").join("pvm");
    same_traces("pvm-console-traced", &console);
}
