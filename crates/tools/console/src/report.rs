//! The formats of answers. Programs parse these columns, so they are exactly those of PVM's console.

use crate::machine::{Answer, Class, Code, Host, Task};

/// Returns the virtual machine, as `conf` shows it.
pub fn hosts(formats: i32, hosts: &[Host]) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{}, {}",
            several(hosts.len(), "host"),
            several(formats as usize, "data format")
        ),
        "                    HOST     DTID     ARCH   SPEED       DSIG".to_owned(),
    ];
    lines.extend(
        hosts
            .iter()
            .map(|host| format!("{} 0x{:08x}", of_host(host), host.signature)),
    );
    lines
}

fn of_host(host: &Host) -> String {
    let Host {
        tid,
        name,
        arch,
        speed,
        ..
    } = host;
    format!("{name:>24} {tid:8x} {arch:>8}{speed:8}")
}

fn several(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Returns the lines about hosts that others have added.
pub fn new_hosts(hosts: &[Host]) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        format!("Console: {} added", several(hosts.len(), "new host")),
        "                    HOST     DTID     ARCH   SPEED".to_owned(),
    ];
    lines.extend(hosts.iter().map(of_host));
    lines
}

/// Returns the results for hosts that were to be added.
pub fn added(
    lines: &[String],
    answers: &[Answer<i32>],
    explain: impl Fn(Code) -> String,
) -> Vec<String> {
    let good = answers.iter().filter(|answer| answer.is_ok()).count();
    let mut report = vec![
        format!("{good} successful"),
        "                    HOST     DTID".to_owned(),
    ];
    for (line, answer) in lines.iter().zip(answers) {
        report.push(match answer {
            Ok(tid) => format!("{line:>24} {tid:8x}"),
            Err(code) => format!("{line:>24} {}", explain(*code)),
        });
    }
    report
}

/// Returns the results for hosts that were to be deleted.
pub fn deleted(
    names: &[String],
    answers: &[Answer<()>],
    explain: impl Fn(Code) -> String,
) -> Vec<String> {
    let good = answers.iter().filter(|answer| answer.is_ok()).count();
    let mut report = vec![
        format!("{good} successful"),
        "                    HOST  STATUS".to_owned(),
    ];
    for (name, answer) in names.iter().zip(answers) {
        let state = answer.map_or_else(&explain, |()| "deleted".to_owned());
        report.push(format!("{name:>24}  {state}"));
    }
    report
}

/// Returns the line with the state of a host.
pub fn host_state(name: &str, answer: Answer<()>, explain: impl Fn(Code) -> String) -> String {
    format!(
        "{name:>24}  {}",
        answer.map_or_else(explain, |()| "ok".to_owned())
    )
}

/// Returns the line with the state of a task.
pub fn task_state(tid: i32, answer: Answer<()>, explain: impl Fn(Code) -> String) -> String {
    format!(
        "t{tid:8x}  {}",
        answer.map_or_else(explain, |()| "run".to_owned())
    )
}

/// Returns the heading of the task list.
pub fn tasks_heading(long: bool) -> &'static str {
    if long {
        "                    HOST      TID     PTID    PID   FLAG 0x COMMAND"
    } else {
        "                    HOST      TID   FLAG 0x COMMAND"
    }
}

/// Returns the line of a task.
pub fn task(task: &Task, host: &str, console: i32, long: bool) -> String {
    let own = task.tid == console;
    let tid = if own {
        "(cons)".to_owned()
    } else {
        format!("{:x}", task.tid)
    };
    let parent = match task.parent {
        _ if own => "-".to_owned(),
        0 => "-".to_owned(),
        parent => format!("{parent:x}"),
    };
    let program = if task.program.is_empty() {
        "-"
    } else {
        &task.program
    };
    let flags = flags(task.flags);
    if long {
        format!(
            "{host:>24} {tid:>8} {parent:>8} {:6} {flags:>9} {program:<12}",
            task.pid
        )
    } else {
        format!("{host:>24} {tid:>8} {flags:>9} {program:<12}")
    }
}

/// The letters of flags, from the highest bit down.
const LETTERS: [(i32, char); 8] = [
    (0x400, 'T'),
    (0x200, 'H'),
    (0x100, 'R'),
    (0x20, 's'),
    (0x8, 'o'),
    (0x4, 'c'),
    (0x2, 'f'),
    (0x1, 'a'),
];

fn flags(flags: i32) -> String {
    let set = LETTERS.iter().filter(|(bit, _)| flags & bit != 0);
    let letters: Vec<_> = set.map(|(_, letter)| letter.to_string()).collect();
    if letters.is_empty() {
        format!("{flags:x}")
    } else {
        format!("{flags:x}/{}", letters.join(","))
    }
}

/// Returns a name and its entries.
pub fn class(class: &Class) -> Vec<String> {
    let mut lines = vec![format!("<{}>:", class.name)];
    for entry in &class.entries {
        let (index, owner, flags) = (entry.index, entry.owner, entry.flags);
        lines.push(format!(
            "\tindex={index} owner=0x{owner:x}/{owner} flags=0x{flags:x}"
        ));
    }
    lines.push(String::new());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Entry;

    fn explain(code: Code) -> String {
        format!("error {}", code.0)
    }

    fn alpha() -> Host {
        Host {
            tid: 0x40000,
            name: "alpha".into(),
            arch: "LINUX64".into(),
            speed: 1000,
            signature: 0x408c41,
        }
    }

    #[test]
    fn the_machine_is_a_table_of_hosts() {
        assert_eq!(
            hosts(1, &[alpha()]),
            [
                "1 host, 1 data format",
                "                    HOST     DTID     ARCH   SPEED       DSIG",
                "                   alpha    40000  LINUX64    1000 0x00408c41",
            ]
        );
        assert_eq!(hosts(2, &[alpha(), alpha()])[0], "2 hosts, 2 data formats");
        assert_eq!(
            new_hosts(&[alpha()])[1..],
            [
                "Console: 1 new host added",
                "                    HOST     DTID     ARCH   SPEED",
                "                   alpha    40000  LINUX64    1000",
            ]
        );
    }

    #[test]
    fn added_and_deleted_hosts_have_a_line_each() {
        let names = ["beta".to_owned(), "gamma lo=x".to_owned()];
        assert_eq!(
            added(&names, &[Ok(0x80000), Err(Code(-29))], explain),
            [
                "1 successful",
                "                    HOST     DTID",
                "                    beta    80000",
                "              gamma lo=x error -29",
            ]
        );
        assert_eq!(
            deleted(&names, &[Ok(()), Err(Code(-6))], explain),
            [
                "1 successful",
                "                    HOST  STATUS",
                "                    beta  deleted",
                "              gamma lo=x  error -6",
            ]
        );
    }

    #[test]
    fn states_are_words_or_reasons() {
        assert_eq!(
            host_state("alpha", Ok(()), explain),
            "                   alpha  ok"
        );
        assert_eq!(task_state(0x40001, Ok(()), explain), "t   40001  run");
        assert_eq!(
            task_state(0x40001, Err(Code(-31)), explain),
            "t   40001  error -31"
        );
    }

    #[test]
    fn tasks_are_rows_short_or_long() {
        let mut out = Task {
            tid: 0x40012,
            parent: -35,
            host: 0x40000,
            flags: 6,
            program: "out".into(),
            pid: 6915,
        };
        let row = |out: &Task, long| task(out, "localhost", 0x40001, long);
        assert_eq!(
            row(&out, false),
            "               localhost    40012     6/c,f out         "
        );
        assert_eq!(
            row(&out, true),
            "               localhost    40012 ffffffdd   6915     6/c,f out         "
        );
        out = Task {
            tid: 0x40001,
            parent: 0,
            flags: 4,
            program: String::new(),
            pid: 6780,
            ..out
        };
        assert_eq!(
            row(&out, false),
            "               localhost   (cons)       4/c -           "
        );
        assert_eq!(
            row(&out, true),
            "               localhost   (cons)        -   6780       4/c -           "
        );
        out.flags = 0x206;
        assert!(row(&out, false).contains(" 206/H,c,f "));
        out.flags = 0;
        assert!(row(&out, false).contains("         0 -"));
    }

    #[test]
    fn a_name_is_followed_by_its_entries() {
        let entry = Entry {
            index: 0,
            owner: 0x40001,
            flags: 2,
        };
        let class = super::class(&Class {
            name: "x".into(),
            entries: vec![entry],
        });
        assert_eq!(
            class,
            ["<x>:", "\tindex=0 owner=0x40001/262145 flags=0x2", ""]
        );
    }
}
