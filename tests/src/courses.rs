//! Random programs of several tasks (`tests/programs/pvm_course*.c`), run on PVM itself and on Regatta. The output of
//! all tasks must be the same.
//!
//! `make courses` runs thousands, the tests some hundreds. A course whose output differs is shortened before it is
//! reported.

use std::path::PathBuf;
use std::process::Command;

use crate::pvm;
use crate::pvm_machine::{self, Machine};

const FILES: [&str; 5] = [
    "pvm_course",
    "pvm_course_plan",
    "pvm_course_play",
    "pvm_course_data",
    "pvm_course_odd",
];
/// Number of episodes in a course.
const EPISODES: u32 = 60;
/// Number of attempts on PVM, for courses that fail or hang there.
const TRIES: u32 = 3;
/// Number of courses that one set of tasks plays in a row.
const AT_ONCE: u64 = 40;

/// Counts of what was played.
#[derive(Default)]
pub struct Played {
    /// Number of courses.
    pub courses: u64,
    /// Number of steps, over all tasks and courses.
    pub steps: u64,
}

/// Plays `count` courses, with seeds from `first` on. If one differs, panics with its shortened form.
pub fn play(name: &str, first: u64, count: u64, mut progress: impl FnMut(&Played)) -> Played {
    let mut played = Played::default();
    while played.courses < count {
        let from = first + played.courses;
        let some = AT_ONCE.min(count - played.courses);
        let (theirs, ours) = both(name, from, some, EPISODES, &[]);
        if let Some(at) = differ(&theirs, &ours) {
            let before = theirs.lines().take(at + 1);
            let started = before.filter(|line| line.starts_with("course ")).count() as u64;
            explain(name, from + started.saturating_sub(1));
            panic!(
                "courses {from} to {}: line {at} differs, and no single course does.\nPVM: {}\nRegatta: {}",
                from + some - 1,
                theirs.lines().nth(at).unwrap_or("nothing"),
                ours.lines().nth(at).unwrap_or("nothing")
            );
        }
        same_looks(name, from, some);
        played.courses += some;
        played.steps += theirs.lines().count() as u64 - some;
        progress(&played);
    }
    played
}

/// Compares which messages a receive takes from the connection. In courses that never matters: either all messages have
/// arrived before a task receives, or the task waits. So `tests/programs/pvm_looks.c` plays `count` random episodes of
/// its own.
fn same_looks(name: &str, first: u64, count: u64) {
    let machine = Machine::new(name);
    let program = machine.install(&pvm::group_program("pvm_looks"), "pvm_looks");
    let original = machine.original();
    let arguments = ["random".to_owned(), first.to_string(), count.to_string()];
    let theirs = pvm_machine::said(machine.on_original(&original, &program).args(&arguments));
    let ours = pvm_machine::said(machine.by_hand(&program).args(&arguments));
    pvm_machine::same_lines(&ours, &theirs, 2 * count as usize);
    machine.halt();
}

/// Plays the same courses on PVM and on Regatta, each on a machine of its own, and returns both outputs. PVM sometimes
/// hangs, mostly in reductions; the courses are then played again.
fn both(name: &str, first: u64, count: u64, episodes: u32, left_out: &[u32]) -> (String, String) {
    let machine = Machine::new(name);
    let program = program();
    let list = left_out.iter().map(u32::to_string).collect::<Vec<_>>();
    let numbers = [first.to_string(), count.to_string(), episodes.to_string()];
    let with = |mut command: Command| {
        command.args(&numbers).arg(list.join(","));
        let output = pvm_machine::output(&mut command);
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            said += &String::from_utf8_lossy(&output.stderr);
        }
        (said, output.status.success())
    };
    let play_theirs = || {
        let original = machine.original();
        with(machine.on_original(&original, &program))
    };
    let mut theirs = play_theirs();
    for _ in 1..TRIES {
        if !theirs.1 {
            theirs = play_theirs();
        }
    }
    let (theirs, ours) = (theirs.0, with(machine.by_hand(&program)).0);
    machine.halt();
    (theirs, ours)
}

fn program() -> PathBuf {
    pvm::group_program_of("pvm_course", &FILES)
}

/// Returns the index of the first line that differs.
fn differ(theirs: &str, ours: &str) -> Option<usize> {
    let same = theirs.lines().zip(ours.lines()).take_while(|(a, b)| a == b);
    let same = same.count();
    let ended = theirs.lines().count() == same && ours.lines().count() == same;
    (!ended).then_some(same)
}

/// Plays a course that differs with fewer and fewer episodes, then panics with the shortest form that still differs.
fn explain(name: &str, seed: u64) {
    let mut shortest = (EPISODES, Vec::new());
    let differs = |episodes: u32, left_out: &[u32]| {
        let (theirs, ours) = both(name, seed, 1, episodes, left_out);
        differ(&theirs, &ours).map(|at| (theirs, ours, at))
    };
    let Some(mut found) = differs(EPISODES, &[]) else {
        return;
    };
    // First shortens the course from its end, then removes parts from the rest, each half as long as the part before.
    let (mut least, mut most) = (0, EPISODES);
    while least < most {
        let half = (least + most) / 2;
        match differs(half, &[]) {
            Some(shorter) => (most, found) = (half, shorter),
            None => least = half + 1,
        }
    }
    shortest.0 = most;
    let mut length = most.div_ceil(2);
    while length > 0 {
        for start in (0..most).step_by(length as usize) {
            let part = (start..(start + length).min(most))
                .filter(|episode| !shortest.1.contains(episode))
                .collect::<Vec<_>>();
            let without = [&shortest.1[..], &part[..]].concat();
            if part.is_empty() {
                continue;
            }
            if let Some(shorter) = differs(most, &without) {
                (shortest.1, found) = (without, shorter);
            }
        }
        length /= 2;
    }
    let (theirs, ours, at) = found;
    let near = |said: &str| {
        let lines = said.lines().skip(at.saturating_sub(3)).take(8);
        lines.collect::<Vec<_>>().join("\n")
    };
    let list = shortest.1.iter().map(u32::to_string).collect::<Vec<_>>();
    panic!(
        "pvm_course {seed} 1 {} {}\nsays on PVM\n{}\n\nand on Regatta\n{}\n\nall of it on PVM\n{theirs}",
        shortest.0,
        list.join(","),
        near(&theirs),
        near(&ours)
    );
}
