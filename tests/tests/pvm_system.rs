//! Tasks that do a daemon's work do it on Regatta as on PVM 3.4 itself.

use regatta_tests::pvm;
use regatta_tests::pvm_machine::{Machine, said};

/// Lines without the numbers of tasks that begin them.
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

/// What a program says on Regatta, which must be what it says on PVM.
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
