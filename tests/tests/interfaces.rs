//! The examples of several interfaces: one program on three of them, and the elimination of 1991 on two.

use std::sync::{Mutex, PoisonError};

use regatta_tests::{Ended, Job, interfaces};

/// Their programs are made under names of this test.
static MAKING: Mutex<()> = Mutex::new(());

#[test]
fn one_program_uses_three_interfaces_at_once() {
    let made = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let program = interfaces::three();
    drop(made);
    for (nodes, sum) in [("1", 1), ("2", 3), ("5", 15)] {
        let said = format!("{nodes} nodes: the sum is {sum}, by NX, Express and PVM");
        Job::at(&program, &[nodes]).run().passed().said(&said);
    }
    // In a job as well as by hand.
    Job::of(1, &program, &["3"]).run().passed().said("sum is 6");
}

/// The line that begins with this word.
fn line<'a>(ended: &'a Ended, word: &str) -> &'a str {
    let found = ended.text.lines().find(|line| line.contains(word));
    found.unwrap_or_else(|| panic!("no {word:?} in\n{}", ended.story()))
}

/// Operations in one order give the same bits, whoever has the rows.
#[test]
fn the_elimination_of_1991_has_the_same_answer_by_nx_and_by_express() {
    let made = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let [plain, nx, express] = ["gauss", "gauss_nx", "gauss_express"].map(interfaces::gauss);
    drop(made);
    for unknowns in ["1", "7", "200"] {
        let alone = Job::at(&plain, &[unknowns]).run().passed();
        let answer = line(&alone, "answer");
        for nodes in [1, 2, 4] {
            for program in [&nx, &express] {
                let ended = Job::of(nodes, program, &[unknowns]).run().passed();
                assert_eq!(line(&ended, "answer"), answer, "{}", ended.story());
                // The race: both times, side by side.
                println!("{}: {}", program.display(), line(&ended, "unknowns"));
            }
        }
    }
}
