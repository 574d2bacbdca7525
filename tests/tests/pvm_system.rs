//! Tasks that do a daemon's work do it on Regatta as on PVM 3.4 itself.

use std::path::Path;
use std::process::{Child, Command, Stdio};

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

/// A program that runs beside the test's own, and ends with the test.
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

/// The simple resource manager that comes with PVM's examples, as it is.
const MANAGER: &str = "/usr/bin/srm.pvm";

#[test]
fn pvms_own_resource_manager_decides_where_tasks_are_started() {
    let manager = Path::new(MANAGER);
    assert!(
        manager.exists(),
        "this test runs PVM's resource manager, which is not here: scripts/need test, or apt-get install pvm-examples"
    );
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
