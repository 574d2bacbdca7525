//! One of the two sides that are compared: a home folder with the programs, and the virtual machine that they run in.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::build::Maker;
use super::running::Running;
use super::{Scenario, Step, words};
use crate::pvm::{self, Original};
use crate::pvm_machine::Machine;
use crate::{left, programs};

/// Time limit for a step that repeats a command.
const AWAIT_TIMEOUT: Duration = Duration::from_secs(180);
/// A command that makes a console answer. PVM's own console shows the output of tasks only when it handles a command.
const NUDGE: &str = "still here";
/// Interval at which that command is repeated.
const NUDGE_INTERVAL: Duration = Duration::from_millis(50);

/// The part of a program's output that is the same in every run.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub command: &'static str,
    pub status: Option<i32>,
    pub out: Vec<String>,
    pub err: Vec<String>,
}

/// A machine of Regatta or of PVM, with programs.
pub struct Side {
    // Declared before `machine`, so that it is dropped first: its tasks use the home folder.
    original: Option<Original>,
    machine: Machine,
    console: PathBuf,
    /// A program that waits until it is the only running task.
    alone: PathBuf,
}

impl Side {
    /// Creates a machine. `fill` installs programs into its home folder.
    pub fn new(name: &str, maker: Maker, fill: &dyn Fn(&Machine, Maker)) -> Side {
        let machine = Machine::new(&format!("{name}-{maker:?}").to_lowercase());
        fill(&machine, maker);
        let (original, console) = match maker {
            Maker::Pvm => (Some(machine.original()), PathBuf::from("/usr/bin/pvm")),
            Maker::Regatta => (None, console()),
        };
        Side {
            original,
            machine,
            console,
            alone: pvm::program("pvm_alone"),
        }
    }

    fn command(&self, program: &Path) -> Command {
        match &self.original {
            Some(original) => self.machine.on_original(original, program),
            None => self.machine.by_hand(program),
        }
    }

    /// Plays all steps of a scenario and returns their output. No task runs any more when it returns.
    pub fn play(&self, scenario: &'static Scenario) -> Vec<Answer> {
        let mut play = Play {
            side: self,
            scenario,
            running: HashMap::new(),
            answers: Vec::new(),
        };
        for step in scenario.steps {
            play.step(step);
        }
        assert!(
            play.running.is_empty(),
            "{}: a program is never waited for",
            scenario.name
        );
        let mut alone = Running::start(&mut self.command(&self.alone));
        play.end("the tasks that are left", &mut alone);
        play.answers
    }

    /// Ends the machine, and checks that nothing of it is left.
    pub fn end(self) {
        match self.original {
            Some(original) => drop(original),
            None => self.machine.halt(),
        }
    }
}

/// Returns Regatta's console: the command, under PVM's name.
fn console() -> PathBuf {
    programs::link(&programs::built("regatta", "regatta-cli"), "pvm").join("pvm")
}

/// The state of a scenario that is being played.
struct Play<'a> {
    side: &'a Side,
    scenario: &'static Scenario,
    running: HashMap<&'static str, Running>,
    answers: Vec<Answer>,
}

impl Play<'_> {
    fn step(&mut self, step: &'static Step) {
        match step {
            Step::Run(line, input) => {
                let mut running = self.start(line);
                running.type_in(input);
                running.hush();
                self.answer(line, running);
            }
            Step::Together(lines) => {
                let all: Vec<_> = lines.iter().map(|line| (*line, self.start(line))).collect();
                let from = self.answers.len();
                for (line, running) in all {
                    self.answer(line, running);
                }
                // Which command gets which part of the work is chance.
                self.answers[from..].sort_by(|one, other| one.out.cmp(&other.out));
            }
            Step::Start(line) => {
                let running = self.start(line);
                self.running.insert(line, running);
            }
            Step::Ended(line) => {
                let mut running = self.take(line);
                running.hush();
                self.answer(line, running);
            }
            Step::Type(line, text, whose, part) => {
                let before = self.running[whose].words().out.len();
                let mut typist = self.take(line);
                typist.type_in(text);
                self.running.insert(line, typist);
                if !self.running[whose].has_printed(|words| words.out[before..].contains(part)) {
                    self.hang(
                        &format!("{text:?} typed to {line}, {part:?} from {whose}"),
                        None,
                    );
                }
            }
            Step::Until(line, part) => self.until(line, part),
            Step::Console(line) => self.console(line),
        }
    }

    /// Starts a program of the home folder.
    fn start(&self, line: &str) -> Running {
        let mut command = self
            .side
            .command(&self.side.machine.programs().join(name(line)));
        Running::start(command.args(line.split(' ').skip(1)))
    }

    fn take(&mut self, line: &str) -> Running {
        self.running
            .remove(line)
            .unwrap_or_else(|| panic!("{}: {line} was not started", self.scenario.name))
    }

    /// Waits for the end of a program. Fails the test if it does not end in time.
    fn end(&self, line: &str, running: &mut Running) -> (Option<i32>, words::Texts) {
        match running.end() {
            Some((status, words)) => (status, (words.out, words.err)),
            None => self.hang(line, Some(running)),
        }
    }

    fn answer(&mut self, command: &'static str, mut running: Running) {
        let (status, (out, err)) = self.end(command, &mut running);
        self.note(command, status, &out, &err);
    }

    fn note(&mut self, command: &'static str, status: Option<i32>, out: &str, err: &str) {
        let home = self.side.machine.place().display().to_string();
        self.answers.push(Answer {
            command,
            status,
            out: words::comparable(out, &home, self.scenario),
            err: words::comparable(err, &home, self.scenario),
        });
    }

    fn until(&self, line: &str, part: &str) {
        let deadline = Instant::now() + AWAIT_TIMEOUT;
        loop {
            let mut running = self.start(line);
            running.hush();
            let (_, (out, _)) = self.end(line, &mut running);
            if out.contains(part) {
                return;
            }
            if Instant::now() > deadline {
                self.hang(&format!("{part:?} in what {line} says"), Some(&running));
            }
        }
    }

    /// Runs a job from the console, until the console reports that it is finished.
    fn console(&mut self, line: &'static str) {
        let mut console = Running::start(&mut self.side.command(&self.side.console));
        console.type_in(&format!("{line}\n"));
        let deadline = Instant::now() + AWAIT_TIMEOUT;
        while !console
            .has_printed_within(NUDGE_INTERVAL, |words| words.out.contains("[1] finished"))
        {
            console.type_in(&format!("echo {NUDGE}\n"));
            if Instant::now() > deadline {
                self.hang(line, Some(&console));
            }
        }
        console.type_in("quit\n");
        console.hush();
        let (status, (out, _)) = self.end(line, &mut console);
        // Which task prints first is chance, and so is where the answers to the nudges appear.
        let mut lines: Vec<_> = out
            .lines()
            .map(|line| line.trim_start_matches("pvm> ").trim_end())
            .filter(|line| !line.contains(NUDGE) && !line.starts_with("pvmd already"))
            .collect();
        lines.sort_unstable();
        self.note(line, status, &lines.join("\n"), "");
        let last = self.answers.last_mut().expect("what was just noted");
        last.out.sort();
    }

    /// Panics, because `line` did not end in time. The message has the output of all running programs.
    fn hang(&self, line: &str, running: Option<&Running>) -> ! {
        let mut said = String::new();
        for running in self.running.values().chain(running) {
            let words = running.words();
            let lines = words.out.lines().chain(words.err.lines());
            let lines: Vec<_> = lines.filter(|line| !line.contains(NUDGE)).collect();
            said += &format!("{}\n", lines.join("\n"));
        }
        let machine = &self.side.machine;
        let (kind, mark) = match self.side.original {
            Some(_) => ("PVM", machine.original_mark()),
            None => ("Regatta", machine.mark().to_owned()),
        };
        panic!(
            "{} on {kind}: {line} does not come to an end.\nSaid by now:\n{said}\nThese wait:\n{}{}\n{}",
            self.scenario.name,
            left::waiting(machine.mark()),
            left::waiting(&mark),
            machine.log()
        );
    }
}

/// Returns the program's name of a command.
fn name(line: &str) -> &str {
    line.split(' ').next().unwrap_or(line)
}

/// Plays the same scenarios on both sides, and checks that their whole output is the same.
pub fn compare(
    name: &str,
    scenarios: &'static [Scenario],
    fill: &(dyn Fn(&Machine, Maker) + Sync),
) {
    let all = |maker| {
        let side = Side::new(name, maker, fill);
        let answers: Vec<_> = scenarios
            .iter()
            .map(|scenario| side.play(scenario))
            .collect();
        side.end();
        answers
    };
    let (ours, theirs) = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| all(Maker::Pvm));
        let ours = all(Maker::Regatta);
        (ours, theirs.join().expect("what PVM says: see above"))
    });
    let mut differ = String::new();
    for (scenario, (ours, theirs)) in scenarios.iter().zip(ours.into_iter().zip(theirs)) {
        for (ours, theirs) in ours.iter().zip(&theirs) {
            differ += &difference(scenario.name, ours, theirs);
        }
        let said = ours
            .iter()
            .map(|answer| answer.out.len() + answer.err.len());
        assert!(said.sum::<usize>() > 0, "{} says nothing", scenario.name);
    }
    assert!(differ.is_empty(), "{differ}");
}

/// Describes the difference between two answers. Returns an empty string if they are the same.
fn difference(scenario: &str, ours: &Answer, theirs: &Answer) -> String {
    if ours == theirs {
        return String::new();
    }
    let both = [(&ours.out, &theirs.out), (&ours.err, &theirs.err)];
    let first = both.map(|(ours, theirs)| {
        let same = ours
            .iter()
            .zip(theirs)
            .take_while(|(one, other)| one == other);
        let place = same.count();
        let line = |lines: &[String]| lines.get(place).cloned().unwrap_or_default();
        format!(
            "  line {place}: {:?}, PVM: {:?}\n",
            line(ours),
            line(theirs)
        )
    });
    format!(
        "{scenario}: {}: status {:?}, PVM: {:?}\n{}all: {:?} {:?}\nPVM: {:?} {:?}\n\n",
        ours.command,
        ours.status,
        theirs.status,
        first.concat(),
        ours.out,
        ours.err,
        theirs.out,
        theirs.err
    )
}
