//! Commands for hosts: list, add, delete, state.

use crate::console::Console;
use crate::machine::{Code, Machine};
use crate::report;

pub(super) fn conf<M: Machine>(console: &mut Console<M>) {
    if let Ok((formats, hosts)) = console.machine.hosts() {
        console.print_all(report::hosts(formats, &hosts));
    }
}

pub(super) fn add<M: Machine>(console: &mut Console<M>, lines: &[String]) {
    let Ok(answers) = console.machine.add(lines) else {
        return;
    };
    let report = report::added(lines, &answers, console.explain());
    console.print_all(report);
    if answers.contains(&Err(Code::CANT_START)) {
        console.print("");
        console.print(
            "A host cannot be started if it cannot be reached, or if ssh to it needs a password.",
        );
        console.print("`regatta doctor --host HOST` looks for the reason.");
    }
}

pub(super) fn delete<M: Machine>(console: &mut Console<M>, names: &[String]) {
    if let Ok(answers) = console.machine.delete(names) {
        let report = report::deleted(names, &answers, console.explain());
        console.print_all(report);
    }
}

pub(super) fn mstat<M: Machine>(console: &mut Console<M>, names: &[String]) {
    for name in names {
        let answer = console.machine.host_state(name);
        let line = report::host_state(name, answer, console.explain());
        console.print(line);
    }
}
