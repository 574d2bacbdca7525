//! Aliases, and environment variables.

use crate::console::Console;
use crate::machine::Machine;

/// The variable that lists the variables passed on to tasks.
const EXPORT: &str = "PVM_EXPORT";

pub(super) fn alias<M: Machine>(console: &mut Console<M>, words: &[String]) {
    match words {
        [name, meaning @ ..] if !meaning.is_empty() => console.aliases.define(name, meaning),
        _ => {
            let lines: Vec<_> = console
                .aliases
                .list(words.first().map(String::as_str))
                .collect();
            console.print_all(lines);
        }
    }
}

pub(super) fn setenv<M: Machine>(console: &mut Console<M>, words: &[String]) {
    match words {
        [] => {
            // Values that are not UTF-8 are shown with replacement characters.
            let shown = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
                format!("{}={}", name.to_string_lossy(), value.to_string_lossy())
            };
            console.print_all(std::env::vars_os().map(shown).collect::<Vec<_>>());
        }
        [name] => {
            if let Some(value) = console.machine.variable(name) {
                console.print(value);
            }
        }
        [name, value @ ..] => set(console, name, &value.join(" ")),
    }
}

/// Sets a variable, unless its name is invalid.
fn set<M: Machine>(console: &mut Console<M>, name: &str, value: &str) {
    if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
        console.print(format!("{name:?} cannot be the name of a variable"));
    } else {
        console.machine.set_variable(name, value);
    }
}

fn exported<M: Machine>(console: &Console<M>) -> Vec<String> {
    let list = console.machine.variable(EXPORT).unwrap_or_default();
    list.split(':')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

pub(super) fn export<M: Machine>(console: &mut Console<M>, words: &[String]) {
    let mut names = exported(console);
    if words.is_empty() {
        console.print(format!("{EXPORT}={}", names.join(":")));
        return;
    }
    for word in words {
        if !names.contains(word) {
            names.push(word.clone());
        }
    }
    set(console, EXPORT, &names.join(":"));
}

pub(super) fn unexport<M: Machine>(console: &mut Console<M>, words: &[String]) {
    let mut names = exported(console);
    names.retain(|name| !words.contains(name));
    set(console, EXPORT, &names.join(":"));
}
