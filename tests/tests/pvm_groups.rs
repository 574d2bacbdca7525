//! PVM's groups and its Fortran library behave as in PVM 3.4. Calls that PVM 3.4 does not have behave as documented.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use regatta_tests::pvm_machine::{Machine, output, said, same_lines};
use regatta_tests::{look_until, needs, pvm};

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

/// Two programs run at once in one machine. They use groups with common members, some of which are killed.
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

/// Programs of PVM that query its group server: LISTER prints the answer, DUMPER has the server print its tables.
const LISTER: &str = "/usr/bin/pvm_gstat";
const DUMPER: &str = "/usr/bin/pvmgroups";

/// Groups of which a member waits at a barrier, and the lists that the programs print about them.
struct Waiting {
    first: Child,
    list: String,
}

impl Waiting {
    fn start(around: &dyn Fn(&Path) -> Command, program: &Path) -> Waiting {
        let mut first = around(program);
        let first = first.stdin(Stdio::piped()).spawn().expect("a program");
        // PVM's program answers only when it is run, so this polls.
        let list = look_until("a member comes to the barrier", || {
            let list = said(&mut around(LISTER.as_ref()));
            list.contains("barrier_reached 1").then_some(list)
        });
        Waiting { first, list }
    }

    /// Lets the members meet and leave. Returns the earlier output sorted by group, without task numbers.
    fn end(mut self) -> Vec<String> {
        drop(self.first.stdin.take());
        let status = self.first.wait().expect("its end");
        assert!(status.success(), "{status}");
        let groups = self.list.split("group: ").map(bare);
        let mut groups: Vec<String> = groups.collect();
        groups.sort();
        groups
    }
}

/// Replaces task numbers by the order of their first appearance.
fn bare(text: &str) -> String {
    let mut seen = Vec::new();
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let Some(number) = word.trim_end().strip_prefix("0x") else {
            return word.to_owned();
        };
        let known = seen.iter().position(|known| known == number);
        let at = known.unwrap_or_else(|| {
            seen.push(number.to_owned());
            seen.len() - 1
        });
        format!("task {at}{}", &word[number.len() + 2..])
    });
    words.collect()
}

#[test]
fn pvms_own_programs_list_the_groups() {
    for program in [LISTER, DUMPER] {
        needs::file(program, "pvm-dev");
    }
    let machine = Machine::new("pvm-listed");
    let program = machine.install(&pvm::group_program("pvm_listed"), "pvm_listed");
    let original = machine.original();
    let on_pvm = |program: &Path| machine.on_original(&original, program);
    let theirs = Waiting::start(&on_pvm, &program).end();
    let on_regatta = |program: &Path| machine.by_hand(program);
    let waiting = Waiting::start(&on_regatta, &program);
    let dumped = output(&mut on_regatta(DUMPER.as_ref())).stderr;
    let dumped = String::from_utf8_lossy(&dumped).into_owned();
    assert_eq!(waiting.end(), theirs, "Regatta's, then PVM's");
    for words in [
        "crew: 3 members 0:t",
        "at a barrier of 3: t",
        "duo: 1 members 1:t",
    ] {
        assert!(dumped.contains(words), "{words:?} is not in {dumped:?}");
    }
    for around in [&on_pvm as &dyn Fn(&Path) -> Command, &on_regatta] {
        assert_eq!(said(&mut around(LISTER.as_ref())), "no groups exist\n");
    }
    machine.halt();
}

#[test]
fn a_broadcast_reaches_whoever_has_joined_though_other_messages_of_that_task_wait() {
    let machine = Machine::new("pvm-joined");
    let program = machine.install(&pvm::group_program("pvm_joined"), "pvm_joined");
    let mut others = ["friend", "joiner"].map(|role| {
        let mut other = machine.by_hand(&program);
        other.args([role, "flood"]).spawn().expect("a program")
    });
    let ours = said(machine.by_hand(&program).args(["caster", "flood"]));
    assert_eq!(ours, "all is known\n");
    machine.halt();
    for other in &mut others {
        other.wait().expect("its end");
    }
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
    const THEIRS: &str = "/usr/lib/x86_64-linux-gnu/libfpvm3.a";
    needs::file(THEIRS, "pvm-dev");
    let theirs = pvm::symbols(THEIRS.as_ref());
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
    let program = pvm::fortran_program("pvm_fortran", &place);
    let original = machine.original();
    let theirs = said(&mut machine.on_original(&original, &program));
    let ours = said(&mut machine.by_hand(&program));
    same_lines(&ours, &theirs, 20);
    machine.halt();
}
