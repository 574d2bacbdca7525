//! Tasks that do a daemon's work (hosters, taskers, resource managers, tracers) behave on Regatta as on PVM 3.4.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use regatta_tests::lan::{APART, AS_ROOT, make_hosts};
use regatta_tests::pvm_machine::{Machine, said};
use regatta_tests::{await_files, needs, pvm};

/// Returns the lines without the task numbers at their beginning.
fn lines(text: &str) -> Vec<String> {
    let bare = |line: &str| match line.strip_prefix("[t") {
        Some(rest) => rest
            .split_once("] ")
            .map_or("", |(_, said)| said)
            .to_owned(),
        None => line.to_owned(),
    };
    text.lines().map(bare).collect()
}

/// A program that runs in the background and is killed when dropped.
struct Beside(Child);

impl Beside {
    fn start(command: &mut Command) -> Beside {
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        Beside(quiet.spawn().expect("a program"))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Compares a program's output on Regatta with its output on PVM.
fn same(machine: &Machine, name: &str, least: usize) {
    let original = machine.original();
    let program = machine.install(&pvm::program(name), name);
    let theirs = lines(&said(&mut machine.on_original(&original, &program)));
    let ours = lines(&said(&mut machine.by_hand(&program)));
    assert_eq!(ours, theirs, "{name}: Regatta's, then PVM's");
    assert!(ours.len() >= least, "{name} says too little: {ours:?}");
}

#[test]
fn a_tasker_starts_the_tasks_of_its_host() {
    let machine = Machine::new("pvm-tasker");
    same(&machine, "pvm_tasker", 20);
    machine.halt();
}

/// First host of PVM itself. PVM does not add hosts to one whose own address is 127.0.0.1.
const FIRST: &str = "127.0.0.2";
/// Second host, which PVM starts at this address.
const SECOND: &str = "127.0.0.3";

#[test]
fn a_hoster_starts_hosts_and_what_it_answers_is_what_becomes_of_them() {
    let machine = Machine::new("pvm-hoster");
    let program = machine.install(&pvm::program("pvm_hoster"), "pvm_hoster");
    let original = machine.original_at(FIRST);
    let theirs = lines(&said(machine.on_original(&original, &program).arg(SECOND)));
    let ours = lines(&said(machine.by_hand(&program).arg(SECOND)));
    assert_eq!(ours, theirs, "Regatta's, then PVM's");
    assert!(ours.len() > 50, "too little is said: {ours:?}");
    machine.halt();
}

/// A hoster never answers. Requests for other hosts must not wait for it (on PVM they do).
#[test]
fn a_hoster_that_does_not_answer_keeps_nobody_else_waiting() {
    let machine = Machine::new("pvm-silent");
    let program = machine.install(&pvm::program("pvm_hoster"), "pvm_hoster");
    let said = lines(&said(machine.by_hand(&program).args([SECOND, "silent"])));
    let wanted = "  hosts wanted by a daemon: 1, 1, a number to answer: 1, in 0 as 10000000";
    assert_eq!(said[1], wanted);
    assert_eq!(
        said[said.len() - 2..],
        ["another one: 0 -28", "asked in vain: -25"]
    );
    machine.halt();
}

/// The second host has a network of its own, and its name does not resolve to an address there.
#[test]
fn a_host_that_a_hoster_has_started_is_called_over_the_network_and_can_be_lost() {
    let machine = Machine::new("pvm-hoster-hosts");
    let program = machine.install(&pvm::program("pvm_hoster"), "pvm_hoster");
    let reach = machine.script(
        "reach",
        "#!/bin/sh\nhost=$1\nshift\nexec ip netns exec \"$host\" \"$@\"\n",
    );
    let script = format!(
        "set -e\n{}exec ip netns exec h0 env REACH={} LOSE='ip netns pids h1 | xargs kill -9 || true' {} h1",
        make_hosts(2),
        reach.display(),
        program.display()
    );
    let mut command = machine.by_hand("unshare".as_ref());
    command
        .args(AS_ROOT)
        .args(APART)
        .args(["sh", "-c", &script]);
    let said = lines(&said(&mut command));
    let joined = said.iter().filter(|line| line.starts_with("started"));
    assert_eq!(
        joined.collect::<Vec<_>>(),
        ["started: 1 0", "started again: 1 0"]
    );
    let used = said.iter().filter(|line| line.starts_with("from there"));
    assert_eq!(
        used.collect::<Vec<_>>(),
        ["from there: 41, on another host: 1"; 2]
    );
    machine.is_over();
}

/// The unmodified simple resource manager of PVM's examples.
const MANAGER: &str = "/usr/bin/srm.pvm";

#[test]
fn pvms_own_resource_manager_decides_where_tasks_are_started() {
    let manager = Path::new(MANAGER);
    needs::file(manager, "pvm-examples");
    let machine = Machine::new("pvm-manager");
    let program = machine.install(&pvm::program("pvm_managed"), "pvm_managed");
    let original = machine.original();
    let theirs = {
        let _manager = Beside::start(&mut machine.on_original(&original, manager));
        lines(&said(&mut machine.on_original(&original, &program)))
    };
    let ours = {
        let _manager = Beside::start(&mut machine.by_hand(manager));
        lines(&said(&mut machine.by_hand(&program)))
    };
    assert_eq!(ours, theirs, "Regatta's, then PVM's");
    assert!(ours.len() > 12, "too little is said: {ours:?}");
    machine.halt();
}

#[test]
fn a_tracer_hears_of_tasks_and_what_they_want_it_to_hear() {
    let machine = Machine::new("pvm-traced");
    let program = machine.install(&pvm::program("pvm_traced"), "pvm_traced");
    let original = machine.original();
    let sorted = |text: String| {
        let mut lines = lines(&text);
        lines.sort();
        lines
    };
    let theirs = sorted(said(&mut machine.on_original(&original, &program)));
    let ours = sorted(said(&mut machine.by_hand(&program)));
    assert_eq!(ours, theirs, "Regatta's, then PVM's");
    assert!(ours.len() > 12, "too little is said: {ours:?}");
    machine.halt();
}

/// Returns a tracer's output with the lines about a handler last, because the call in which the handler runs depends on
/// timing.
fn told(tracer: &mut Command) -> Vec<String> {
    // One line says that the handler is called; each of its twelve calls has a begin and an end.
    const HANDLED: usize = 1 + 2 * 12;
    let mut all = lines(&said(tracer));
    let called = |line: &String| line.starts_with("mhf_invoke");
    if let Some(at) = all.iter().position(called) {
        all[at..].rotate_left(HANDLED);
    }
    all
}

#[test]
fn a_tracer_hears_of_calls_and_of_all_that_goes_with_them() {
    let machine = Machine::new("pvm-calls");
    let program = machine.install(&pvm::group_program("pvm_calls"), "pvm_calls");
    let both = |words: &[&str]| {
        // After a task has done PVM's daemon's work, that daemon cannot start tasks any more, so each run has a new
        // one.
        let original = machine.original();
        let theirs = told(machine.on_original(&original, &program).args(words));
        let ours = told(machine.by_hand(&program).args(words));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs, "Regatta's, then PVM's");
        }
        assert_eq!(ours.len(), theirs.len());
        ours
    };
    // Events are sent one at a time, or as many as fit into a message.
    for room in ["0", "1500"] {
        let ours = both(&[room]);
        assert!(ours.len() > 290, "too little is said: {ours:?}");
    }
    // Statistics instead of events: durations of calls, numbers of calls.
    for asked in ["2", "3"] {
        let ours = both(&["0", asked]);
        let [line] = &ours[..] else {
            panic!("one event says it all: {ours:?}")
        };
        assert!(line.contains("\"send\"") && line.contains("PRF"), "{line}");
    }
    machine.halt();
}

/// PVM's own tracer.
const TRACER: &str = "/usr/bin/tracer";

/// Returns what PVM's tracer prints about the start and exit of tasks, without task numbers and times.
fn traced(tracer: &mut Command, program: &mut Command, file: &Path) -> Vec<String> {
    let _ = std::fs::remove_file(file);
    let mut child = tracer
        .arg("-T")
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("PVM's tracer");
    let mut input = child.stdin.take().expect("its input");
    let output = child.stdout.take().expect("its output");
    let _tracer = Beside(child);
    let mut begun = std::io::BufReader::new(output).lines();
    let ready = begun.find(|line| {
        line.as_ref()
            .is_ok_and(|line| line.contains("connected as"))
    });
    assert!(ready.is_some(), "PVM's tracer has ended");
    said(program.arg("parent"));
    // Once the tracer has written this, both tasks have ended. It writes what it receives at once.
    let ends = |text: &str| {
        text.lines()
            .filter(|line| line.starts_with("\"endtask"))
            .count()
    };
    let text = await_files(file.parent().expect("a folder"), || {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        (ends(&text) >= 2).then_some(text)
    });
    let _ = input.write_all(b"quit\n");
    let blocks = text.split("\n\n").flat_map(|block| {
        match block.contains("#1150") || block.contains("#1152") {
            true => vec![block.to_owned()],
            false => Vec::new(),
        }
    });
    let records = text.lines().filter(|line| {
        line.starts_with("\"newtask(0)\" {") || line.starts_with("\"endtask(0)\" {")
    });
    let bare = records.map(|line| {
        let words = line.split(' ').map(|word| {
            let number = word.trim_end_matches(',').parse::<i64>();
            match number.is_ok_and(|number| number > 0x400) {
                true => "N",
                false => word,
            }
        });
        words.collect::<Vec<_>>().join(" ")
    });
    let mut all: Vec<String> = blocks.chain(bare).collect();
    all.sort();
    all
}

#[test]
fn pvms_own_tracer_writes_down_the_lives_of_tasks() {
    let tracer = Path::new(TRACER);
    needs::file(tracer, "pvm-dev");
    let machine = Machine::new("pvm-tracer");
    let program = machine.install(&pvm::program("pvm_traced"), "pvm_traced");
    let original = machine.original();
    let file = machine.place().join("trace");
    let theirs = traced(
        &mut machine.on_original(&original, tracer),
        &mut machine.on_original(&original, &program),
        &file,
    );
    let ours = traced(
        &mut machine.by_hand(tracer),
        &mut machine.by_hand(&program),
        &file,
    );
    assert_eq!(ours, theirs, "Regatta's, then PVM's");
    assert!(ours.len() >= 6, "too little is written: {ours:?}");
    machine.halt();
}

#[test]
fn a_daemon_is_tickled() {
    let machine = Machine::new("pvm-tickled");
    same(&machine, "pvm_debugged", 8);
    machine.halt();
}

#[test]
fn a_debugger_gets_the_program_and_its_arguments() {
    let machine = Machine::new("pvm-debugged");
    let program = machine.install(&pvm::program("pvm_debugged"), "pvm_debugged");
    let debugger = machine.script("debugger", "#!/bin/sh\necho debugs ${1##*/} $2 $3\n");
    let mut command = machine.by_hand(&program);
    command.arg("pvm_debugged").env("PVM_DEBUGGER", &debugger);
    let said = lines(&said(&mut command));
    let all = [
        "BEGIN",
        "debugs pvm_debugged one two",
        "EOF",
        "spawned: 1, ended: 1",
    ];
    assert!(said.ends_with(&all.map(str::to_owned)), "{said:?}");
    machine.halt();
}
