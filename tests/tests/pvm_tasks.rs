//! PVM programs that are started by hand and spawn each other behave as on PVM 3.4.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use regatta_tests::await_files;
use regatta_tests::pvm;
use regatta_tests::pvm_machine::{Machine, said, same_lines};

/// Returns the words of a text, with everything replaced that differs from run to run: task numbers, and the order in
/// which workers answer.
fn comparable(text: &str) -> Vec<String> {
    let plain = |line: &str| {
        let words = line.split_whitespace().map(|word| {
            let bare = word.trim_matches(['[', ']', ':']);
            let number = bare.trim_start_matches('t');
            let is_tid = bare.starts_with("t4") && i32::from_str_radix(number, 16).is_ok();
            let is_big = word.parse::<i32>().is_ok_and(|value| value >= 0x40000);
            if is_tid || is_big { "TID" } else { word }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let mut lines: Vec<String> = text.lines().map(plain).collect();
    lines.sort();
    lines
}

#[test]
fn programs_that_come_with_pvm_say_the_same_on_regatta() {
    let machine = Machine::new("pvm-examples");
    machine.example("hello_other");
    machine.example("slave1");
    let original = machine.original();
    for name in ["hello", "master1"] {
        let program = machine.example(name);
        let theirs = said(&mut machine.on_original(&original, &program));
        let ours = said(&mut machine.by_hand(&program));
        assert_eq!(comparable(&ours), comparable(&theirs), "{name}");
        assert!(ours.lines().count() >= 2, "{name} says too little: {ours}");
    }
    machine.halt();
}

#[test]
fn messages_are_chosen_and_output_is_caught_as_on_pvm() {
    let machine = Machine::new("pvm-courses");
    let original = machine.original();
    for name in ["pvm_choice", "pvm_catch"] {
        let program = machine.install(&pvm::program(name), name);
        let theirs = said(&mut machine.on_original(&original, &program));
        let ours = said(&mut machine.by_hand(&program));
        assert_eq!(comparable(&ours), comparable(&theirs), "{name}");
        assert!(ours.lines().count() >= 5, "{name} says too little: {ours}");
    }
    machine.halt();
}

#[test]
fn what_a_task_may_say_of_output_that_goes_to_its_parent_is_as_on_pvm() {
    let machine = Machine::new("pvm-inherited");
    let program = machine.install(&pvm::program("pvm_inherited"), "pvm_inherited");
    let original = machine.original();
    let theirs = said(&mut machine.on_original(&original, &program));
    let ours = said(&mut machine.by_hand(&program));
    assert_eq!(ours, theirs, "Regatta's, then PVM's");
    assert!(ours.lines().count() > 50, "it says too little: {ours}");
    machine.halt();
}

#[test]
fn every_question_has_the_answer_that_pvm_gives() {
    let machine = Machine::new("pvm-answers");
    let program = machine.install(&pvm::program("pvm_answers"), "pvm_answers");
    let original = machine.original();
    let theirs = said(&mut machine.on_original(&original, &program));
    let ours = said(&mut machine.by_hand(&program));
    same_lines(&ours, &theirs, 103);
    machine.halt();
}

#[test]
fn a_look_takes_in_one_message_as_on_pvm() {
    let machine = Machine::new("pvm-looks");
    let program = machine.install(&pvm::group_program("pvm_looks"), "pvm_looks");
    let original = machine.original();
    let theirs = said(&mut machine.on_original(&original, &program));
    let ours = said(&mut machine.by_hand(&program));
    same_lines(&ours, &theirs, 30);
    let random = ["random", "1", "200"];
    let theirs = said(machine.on_original(&original, &program).args(random));
    let ours = said(machine.by_hand(&program).args(random));
    same_lines(&ours, &theirs, 400);
    machine.halt();
}

#[test]
fn what_a_task_that_exits_has_not_sent_goes_in_a_time_that_grows_as_its_number() {
    let machine = Machine::new("pvm-drain");
    let program = machine.install(&pvm::program("pvm_drain"), "pvm_drain");
    assert_eq!(said(&mut machine.by_hand(&program)), "as their number\n");
    machine.halt();
}

/// Returns the lines that tasks have written to a log, without the task number and the time in each.
fn written(log: &str) -> Vec<String> {
    let of_tasks = log.lines().filter(|line| line.contains(" [t4"));
    let without_time = of_tasks.map(|line| {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let is_time = |word: &&str, mark: char| word.contains(mark);
        assert!(is_time(&words[1], '/') && is_time(&words[2], ':'), "{line}");
        let said = words[3].strip_prefix('[');
        let (number, text) = said.and_then(|said| said.split_once("] ")).expect(line);
        let text = text.strip_suffix(number);
        format!("{} {}", words[0], text.expect("the number of its task"))
    });
    let mut lines: Vec<String> = without_time.collect();
    lines.sort();
    lines
}

#[test]
fn a_task_begins_with_the_name_and_the_environment_that_it_has_on_pvm() {
    let machine = Machine::new("pvm-born");
    let program = machine.install(&pvm::group_program("pvm_born"), "pvm_born");
    let original = machine.original();
    let theirs = said(&mut machine.on_original(&original, &program));
    let ours = said(&mut machine.by_hand(&program));
    same_lines(&ours, &theirs, 20);
    // A task's output passes through pipes and may arrive after the task has ended.
    let two_lines = |log: String| {
        let lines = log.ends_with('\n').then(|| written(&log));
        lines.filter(|lines| lines.len() == 2)
    };
    let ours = await_files(&machine.log_folder(), || two_lines(machine.log()));
    let theirs = await_files(original.folder(), || two_lines(original.log()));
    assert_eq!(ours, theirs, "Regatta's log, then PVM's");
    machine.halt();
}

#[test]
fn the_log_ends_at_its_limit_as_on_pvm() {
    let machine = Machine::new("pvm-log-limit");
    let program = machine.install(&pvm::group_program("pvm_born"), "pvm_born");
    let mut command = machine.by_hand(&program);
    said(command.arg("much").env("PVMDLOGMAX", "20000"));
    let length = await_files(&machine.log_folder(), || {
        let log = machine.log();
        log.ends_with("\n*** logging truncated\n")
            .then_some(log.len())
    });
    assert!((20_000..21_000).contains(&length), "{length} bytes");
    // The log does not get lines that other tasks write later, either.
    said(&mut machine.by_hand(&program));
    assert_eq!(machine.log().len(), length);
    machine.halt();
}

/// Each task waits in a different way for a message that never arrives. After a moment it must still wait, and must
/// have slept.
#[test]
fn whoever_waits_for_a_task_that_is_gone_or_never_was_sleeps_as_on_pvm() {
    let machine = Machine::new("pvm-absent");
    let program = machine.install(&pvm::group_program("pvm_absent"), "pvm_absent");
    let original = machine.original();
    let ways = said(machine.by_hand(&program).arg("ways"));
    assert!(ways.lines().count() > 12, "too few ways: {ways}");
    for way in ways.lines() {
        let theirs = said(machine.on_original(&original, &program).arg(way));
        let ours = said(machine.by_hand(&program).arg(way));
        assert_eq!(ours, theirs, "{way}: Regatta's, then PVM's");
    }
    machine.halt();
}

/// Two programs that have met and wait for a message that is never sent. Their next lines can be read.
struct Two {
    both: [Child; 2],
    readers: [BufReader<ChildStdout>; 2],
}

impl Two {
    /// Starts two programs at the same time. Both start the machine, and must end up in the same one.
    fn meet(machine: &Machine, how: &str) -> Two {
        let start = || {
            let mut command = machine.by_hand(&pvm::program("pvm_meet"));
            command
                .arg(how)
                .stdout(Stdio::piped())
                .spawn()
                .expect("the program")
        };
        let mut both = [start(), start()];
        let readers = both
            .each_mut()
            .map(|child| BufReader::new(child.stdout.take().expect("its output")));
        let mut two = Two { both, readers };
        assert_eq!(two.read_lines(), ["met\n", "met\n"], "{}", machine.log());
        two
    }

    /// Reads the next line of each program.
    fn read_lines(&mut self) -> [String; 2] {
        self.readers.each_mut().map(|reader| {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            line
        })
    }

    fn end(self) -> [ExitStatus; 2] {
        self.both.map(|mut child| child.wait().expect("its end"))
    }
}

#[test]
fn programs_started_by_hand_meet_and_a_halt_ends_them() {
    let machine = Machine::new("pvm-by-hand");
    let two = Two::meet(&machine, "");
    machine.halt();
    for status in two.end() {
        assert!(!status.success(), "ended by the machine's end: {status}");
    }
}

/// The programs get the same error as when PVM's daemon is killed: `PvmSysErr`, "can't contact local daemon".
#[test]
fn programs_started_by_hand_do_not_wait_for_ever_when_their_machine_is_killed() {
    let machine = Machine::new("pvm-beheaded");
    // Done twice, to check that the next machine can start.
    for how in ["", "handler"] {
        let mut two = Two::meet(&machine, how);
        machine.behead();
        assert_eq!(two.read_lines(), ["-14\n", "-14\n"], "{how}");
        assert!(two.end().iter().all(ExitStatus::success));
        machine.is_over();
    }
}

#[test]
fn long_messages_are_sent_again_forwarded_and_held_as_on_pvm() {
    let machine = Machine::new("pvm-long");
    let program = machine.install(&pvm::program("pvm_long"), "pvm_long");
    let original = machine.original();
    let theirs = said(&mut machine.on_original(&original, &program));
    let ours = said(&mut machine.by_hand(&program));
    same_lines(&ours, &theirs, 151);
    machine.halt();
}

#[test]
fn the_memory_of_long_messages_is_used_again_whoever_dies() {
    let machine = Machine::new("pvm-long-lives");
    let program = machine.install(&pvm::program("pvm_long_lives"), "pvm_long_lives");
    assert_eq!(said(&mut machine.by_hand(&program)), "all is well\n");
    machine.halt();
}

#[test]
fn a_program_that_comes_while_the_machine_is_ended_begins_the_next_one() {
    let machine = Machine::new("pvm-next");
    let program = pvm::program("pvm_halt");
    for round in 0..20 {
        let status = machine.by_hand(&program).status().expect("the program");
        // The machine that the program halts may end it by a signal.
        assert_ne!(status.code(), Some(1), "round {round}: {}", machine.log());
    }
    machine.is_over();
}

#[test]
fn tasks_are_in_the_session_of_the_program_that_began_the_machine_but_not_at_its_terminal() {
    let machine = Machine::new("pvm-terminal");
    let program = machine.install(&pvm::program("pvm_terminal"), "pvm_terminal");
    let command = format!("{} begin", program.display());
    let text = format!("#!/bin/sh\nexec script -qec '{command}' /dev/null\n");
    let at_terminal = machine.script("at_terminal", &text);
    let began = said(&mut machine.by_hand(&at_terminal));
    assert_eq!(began, "the same session, no terminal\r\n");
    // The terminal has been closed by now.
    assert_eq!(said(machine.by_hand(&program).arg("end")), "it answers\n");
    machine.halt();
}

/// Arguments of PVM's daemon, and host files given to it.
#[test]
fn a_machine_is_started_with_whatever_arguments_as_on_pvm() {
    let machine = Machine::new("pvm-started");
    let program = machine.install(&pvm::program("pvm_started"), "pvm_started");
    machine.write("empty", "# nobody\n");
    machine.write("faulty", "& beta ep=\n*** x\n* sp=zero\n");
    machine.write("unknown", "no-such-host.invalid zz=1\n");
    machine.write("binary", "\0\u{1}\0");
    let cases: [&[&str]; 12] = [
        &[],
        &["nosuch"],
        &["/no/such/folder/hosts"],
        &["."],
        &["empty"],
        &["faulty"],
        &["unknown"],
        &["binary"],
        &["-x"],
        &["-d0", "empty"],
        &["empty", "empty"],
        &["-s", "empty"],
    ];
    for (number, arguments) in cases.iter().enumerate() {
        let folder = machine.place().join(format!("started-{number}"));
        let said = |command: &mut Command| {
            let output = command.args(*arguments).output().expect("the program");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let theirs = said(&mut machine.on_no_original(&program, &folder));
        let ours = said(&mut machine.by_hand(&program));
        assert_eq!(ours, theirs, "{arguments:?}: Regatta's, then PVM's");
        assert!(ours.starts_with("started: "), "{arguments:?}: {ours}");
        machine.is_over();
    }
}
