//! The texts of `help`.

use crate::verbs::{ALL, HIDDEN, Verb};

/// Returns one line for each command.
pub fn overview() -> Vec<String> {
    let shown = ALL.iter().filter(|(_, verb)| !HIDDEN.contains(verb));
    let line = |(name, verb): &(&str, Verb)| format!("  {name:<12}{}", page(*verb).0);
    std::iter::once("Commands are:".to_owned())
        .chain(shown.map(line))
        .collect()
}

/// Returns the full help for a command.
pub fn about(verb: Verb) -> Vec<String> {
    let (brief, syntax, more) = page(verb);
    let mut lines = vec![format!("{:<12}{brief}", verb.name())];
    for (index, form) in syntax.iter().enumerate() {
        lines.push(format!(
            "{}{form}",
            if index == 0 { "Syntax:  " } else { "         " }
        ));
    }
    lines.extend(more.lines().map(str::to_owned));
    lines
}

type Page = (&'static str, &'static [&'static str], &'static str);

fn page(verb: Verb) -> Page {
    match verb {
        Verb::Add => (
            "Add hosts to the machine",
            &["add host ...", "add 'host option=value ...' ..."],
            "Options are those of a host file: lo dx ep wd sp bx so ip id.",
        ),
        Verb::Alias => (
            "Define aliases of commands, or list them",
            &["alias [name [word ...]]"],
            "",
        ),
        Verb::Conf => ("List the hosts of the machine", &["conf"], CONF),
        Verb::Delete => (
            "Remove hosts from the machine; tasks that run there are ended",
            &["delete host ..."],
            "",
        ),
        Verb::Echo => ("Print the arguments", &["echo [word ...]"], ""),
        Verb::Export => (
            "Pass variables on to spawned tasks, or list the variables passed on",
            &["export [variable ...]"],
            "",
        ),
        Verb::Getopt => (
            "Show the library's options in this console",
            &["getopt [option]"],
            "",
        ),
        Verb::Halt => (
            "End the machine, all its tasks, and this console",
            &["halt"],
            "",
        ),
        Verb::Help => ("Describe a command", &["help [command]"], ""),
        Verb::Id => ("Show this console's tid", &["id"], ""),
        Verb::Idump => ("Show this console's memory", &["idump [how]"], ""),
        Verb::Jobs => (
            "List the jobs that send their output here",
            &["jobs [-l]"],
            "-l   with all of their tasks",
        ),
        Verb::Kill => (
            "End tasks",
            &["kill [-c] tid ..."],
            "-c   the tasks started by tid, instead of tid itself",
        ),
        Verb::Mstat => ("Show the state of hosts", &["mstat host ..."], ""),
        Verb::Names => (
            "List the entries of the mailbox",
            &["names [pattern]"],
            "In a pattern * stands for anything.",
        ),
        Verb::Ps => ("List tasks", &["ps [-alx] [-hTID] [-nHOST]"], PS),
        Verb::Pstat => ("Show the state of tasks", &["pstat tid ..."], ""),
        Verb::Put => (
            "Put a number into the mailbox",
            &["put name flags number"],
            "Flags are a sum: 1 outlives this console, 2 one of several, 4 may be overwritten.",
        ),
        Verb::Quit => (
            "Leave the console; the machine keeps running",
            &["quit"],
            "",
        ),
        Verb::Reset => (
            "End all tasks and remove the mailbox entries of dead tasks",
            &["reset", "reset info [name [index]]"],
            "With info, no task is ended; only the entries with this name and index are removed.",
        ),
        Verb::Setenv => (
            "Show or change variables of the environment",
            &["setenv [name [value]]"],
            "",
        ),
        Verb::Setopt => (
            "Change one of the library's options in this console",
            &["setopt option value"],
            "",
        ),
        Verb::Sig => ("Send a signal to tasks", &["sig number tid ..."], ""),
        Verb::Spawn => (
            "Start tasks",
            &["spawn [option ...] program [word ...]"],
            SPAWN,
        ),
        Verb::Tickle => (
            "Query the machine's daemon",
            &["tickle number [number ...]"],
            "",
        ),
        Verb::Trace => (
            "Show or choose the events that spawned tasks trace",
            TRACE,
            "",
        ),
        Verb::Unalias => ("Remove aliases", &["unalias name ..."], ""),
        Verb::Unexport => (
            "Stop passing variables on",
            &["unexport [variable ...]"],
            "",
        ),
        Verb::Version => ("Show the library's version", &["version"], ""),
    }
}

const CONF: &str = "\
HOST    its name
DTID    the tid of the host itself
ARCH    its architecture
SPEED   its speed compared to others
DSIG    how it represents data";

const PS: &str = "\
-a       of all hosts; otherwise of this one
-hTID    of the host with this tid
-nHOST   of the host of this name
-l       with parents and processes
-x       consoles and tasks that have not joined, too
FLAG is a number, then what its bits mean:
  f   started by the machine
  c   has joined
  a   is authenticating
  o   is leaving
  s   waits for memory
  H R T   starts hosts, places tasks, starts tasks for the machine";

const SPAWN: &str = "\
-NUMBER            number of tasks; otherwise one
-HOST[:DIR]        on this host, in this directory
--host=IP[:DIR]    on the host of this address
-ARCH[:DIR]        on hosts of this architecture
-:DIR              in this directory
-?                 in a debugger
->                 output comes here
->FILE             output goes to a new file
->>FILE            output goes to the end of a file
-@  -@FILE         trace comes here, or goes to a file";

const TRACE: &[&str] = &[
    "trace",
    "trace [+] event ...      (* is all of them)",
    "trace - event ...",
    "trace xpvm               (the events that XPVM needs)",
    "trace buf [bytes]",
    "trace opt [full | time | count]",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_says_what_it_does_and_how_it_is_written() {
        for (name, verb) in ALL {
            let lines = about(verb);
            assert!(
                lines[0].starts_with(name) && lines[0].len() > 16,
                "{lines:?}"
            );
            assert!(
                lines[1].starts_with(&format!("Syntax:  {name}")),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn the_overview_leaves_out_what_is_hidden() {
        let all = overview().join("\n");
        assert_eq!(overview().len(), 28);
        assert!(all.contains("\n  spawn ") && !all.contains("tickle") && !all.contains("idump"));
    }
}
