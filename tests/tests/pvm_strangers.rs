//! Third-party PVM programs, as Debian has built them, behave with Regatta's library as on PVM.

use std::process::{Command, Output};

use regatta_tests::console::talk;
use regatta_tests::pvm_machine::{Machine, output, said};
use regatta_tests::{look_until, needs};

const CONSOLE: &str = "/usr/bin/pvm";
const NETPIPE: &str = "/usr/bin/NPpvm";
const TABLIX: &str = "/usr/bin/tablix2";

/// Runs the same actions with Regatta's library and on PVM. Returns both results.
fn on_both<T>(
    name: &str,
    program: &str,
    run: impl Fn(&Machine, &dyn Fn(&str) -> Command) -> T,
) -> (T, T) {
    needs::file(program, "netpipe-pvm tablix2");
    needs::file(CONSOLE, "pvm");
    let machine = Machine::new(name);
    let theirs = {
        let original = machine.original();
        run(&machine, &|program| {
            machine.on_original(&original, program.as_ref())
        })
    };
    let ours = run(&machine, &|program| machine.by_hand(program.as_ref()));
    machine.halt();
    (ours, theirs)
}

/// NetPIPE sends messages of many lengths back and forth and checks each byte. Its receiver must run before the sender
/// starts, and no other task may be in the machine, so a console starts the receiver and quits.
#[test]
fn netpipe_gets_back_what_it_has_sent() {
    let check = "-i -u 8192 -n 20";
    let (ours, theirs) = on_both("pvm-netpipe", NETPIPE, |_, command| {
        let started = talk(
            &mut command(CONSOLE),
            &[&format!("spawn {NETPIPE} {check}")],
        );
        assert!(started.contains("1 successful"), "{started}");
        let line = format!("exec timeout 60 {NETPIPE} -h localhost {check} -o netpipe.out 2>&1");
        // PVM may list the console for a moment after its end.
        let said = look_until("nobody else is in the machine", || {
            let Output { status, stdout, .. } = output(command("/bin/sh").args(["-c", &line]));
            let said = String::from_utf8_lossy(&stdout).into_owned();
            if said.contains("too many processes") {
                return None;
            }
            assert!(status.success(), "{status}\n{said}");
            Some(said)
        });
        let checked = |line: &&str| line.contains("Integrity check");
        let lines = said.lines().filter(checked);
        lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(ours, theirs);
    assert!(ours.len() > 20, "{ours:#?}");
    assert!(
        ours.iter().all(|line| line.ends_with("passed")),
        "{ours:#?}"
    );
}

/// Returns a timetable problem: four classes have two lessons with each of four teachers, in twelve hours and four
/// rooms.
fn lessons() -> String {
    let event = |teacher: u32, class: u32| {
        format!(
            "<event name=\"E{teacher}{class}\" repeats=\"2\"><resource type=\"teacher\" name=\"T{teacher}\"/>\
             <resource type=\"class\" name=\"C{class}\"/></event>\n"
        )
    };
    let events: String = (1..=4)
        .flat_map(|teacher| (1..=4).map(move |class| event(teacher, class)))
        .collect();
    let several = |kind: &str, letter: char| {
        format!(
            "<resourcetype type=\"{kind}\"><linear name=\"{letter}#\" from=\"1\" to=\"4\"/></resourcetype>\n"
        )
    };
    let kinds =
        ["teacher", "class", "room"].map(|kind| format!("<resourcetype type=\"{kind}\"/>\n"));
    format!(
        "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n<ttm version=\"0.2.0\">\n\
         <info><title>Lessons</title><address>Here</address><author>Nobody</author></info>\n\
         <modules><module name=\"sametime.so\" weight=\"60\" mandatory=\"yes\">\n{}</module></modules>\n\
         <resources><constant>\n{}{}</constant><variable>\n\
         <resourcetype type=\"time\"><matrix width=\"3\" height=\"4\"/></resourcetype>\n{}</variable></resources>\n\
         <events>\n{events}</events></ttm>\n",
        kinds.concat(),
        several("teacher", 'T'),
        several("class", 'C'),
        several("room", 'R'),
    )
}

/// Tablix spawns nodes that exchange parts of their populations until one node has a timetable without conflicts.
#[test]
fn tablix_finds_a_timetable() {
    let (ours, theirs) = on_both("pvm-tablix", TABLIX, |machine, command| {
        machine.write("lessons.xml", &lessons());
        let results =
            ["0", "1"].map(|node| machine.place().join(format!("found_result{node}.xml")));
        for result in &results {
            let _ = std::fs::remove_file(result);
        }
        let mut tablix = command(TABLIX);
        said(
            tablix
                .args(["-n", "2", "-o", "found_", "lessons.xml"])
                .current_dir(machine.place()),
        );
        let texts = results.map(|result| std::fs::read_to_string(result).expect("a timetable"));
        let solved = texts.iter().any(|text| text.contains("fitness=\"0\""));
        let placed = texts.map(|text| text.matches("<resource type=\"time\"").count());
        (solved, placed)
    });
    assert_eq!(ours, theirs);
    assert_eq!(ours, (true, [32, 32]), "each of the lessons has an hour");
}
