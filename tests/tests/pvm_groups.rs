//! Groups of PVM do what they do in PVM 3.4, and so does its Fortran library; the calls that PVM 3.4 has
//! not do what is said of them.

use regatta_tests::pvm;
use regatta_tests::pvm_machine::{Machine, said};

fn same_lines(ours: &str, theirs: &str, least: usize) {
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        assert_eq!(ours, theirs, "Regatta's, then PVM's");
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
    assert!(ours.lines().count() >= least, "too little was said: {ours}");
}

#[test]
fn every_question_about_groups_has_the_answer_that_pvm_gives() {
    let machine = Machine::new("pvm-groups");
    let program = machine.install(&pvm::group_program("pvm_groups"), "pvm_groups");
    let original = machine.original();
    let theirs = said(&mut machine.on_original(&original, &program));
    let ours = said(&mut machine.by_hand(&program));
    same_lines(&ours, &theirs, 150);
    machine.halt();
}

#[test]
fn tasks_leave_and_join_between_barriers() {
    let machine = Machine::new("pvm-churn");
    let program = machine.install(&pvm::group_program("pvm_groups"), "pvm_groups");
    let ours = said(machine.by_hand(&program).arg("60"));
    assert_eq!(ours, "60 rounds\n");
    machine.halt();
}

/// Two at once in one machine: groups with members in common, of which some are going to be killed.
#[test]
fn nobody_hangs_whatever_members_do() {
    let machine = Machine::new("pvm-storm");
    let program = machine.install(&pvm::group_program("pvm_storm"), "pvm_storm");
    std::thread::scope(|scope| {
        for (name, seed) in [("one", "7"), ("other", "1913")] {
            let mut storm = machine.by_hand(&program);
            storm.args([name, seed, "60"]);
            scope.spawn(move || assert_eq!(said(&mut storm), "60 rounds\n"));
        }
    });
    machine.halt();
}

#[test]
fn typed_data_go_from_memory_to_memory() {
    let machine = Machine::new("pvm-fsend");
    let ours = said(&mut machine.by_hand(&pvm::program("pvm_fsend")));
    assert_eq!(ours, "all of it\n");
    machine.halt();
}

#[test]
fn the_fortran_library_has_every_routine_of_pvms() {
    let theirs = pvm::symbols("/usr/lib/x86_64-linux-gnu/libfpvm3.a".as_ref());
    let theirs: Vec<_> = theirs
        .into_iter()
        .filter(|name| name.ends_with('_'))
        .collect();
    assert!(
        theirs.len() >= 67,
        "PVM's library has too few routines: {theirs:?}"
    );
    let ours = pvm::fortran_symbols();
    let missing: Vec<_> = theirs.iter().filter(|name| !ours.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_fortran_program_says_what_it_says_on_pvm() {
    let machine = Machine::new("pvm-fortran");
    let place = machine.place();
    let Some(program) = pvm::fortran_program("pvm_fortran", &place) else {
        eprintln!("there is no gfortran here; programs in Fortran are not tried");
        return;
    };
    let original = machine.original();
    let theirs = said(&mut machine.on_original(&original, &program));
    let ours = said(&mut machine.by_hand(&program));
    same_lines(&ours, &theirs, 20);
    machine.halt();
}
