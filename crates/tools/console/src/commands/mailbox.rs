//! Commands for the machine's mailbox: names with entries.

use crate::console::Console;
use crate::machine::Machine;
use crate::report;

pub(super) fn names<M: Machine>(console: &mut Console<M>, words: &[String]) {
    let pattern = words.first().map_or("*", String::as_str);
    for class in console.machine.names(pattern).unwrap_or_default() {
        console.print_all(report::class(&class));
    }
}

pub(super) fn put<M: Machine>(console: &mut Console<M>, words: &[String]) {
    let number = |word: &String| word.parse().ok();
    match (number(&words[1]), number(&words[2])) {
        // The library has reported errors.
        (Some(flags), Some(value)) => {
            let _ = console.machine.put(&words[0], flags, value);
        }
        _ => console.print("put: the flags and the value must be numbers"),
    }
}

pub(super) fn reset<M: Machine>(console: &mut Console<M>, info: &str, words: &[String]) {
    if info != "info" {
        console.print(format!("\"{info}\" arg to reset not valid"));
        return;
    }
    match words {
        [] => clear(console, None, None),
        [name] => clear(console, Some(name), None),
        [name, index] => match index.parse() {
            Ok(index) => clear(console, Some(name), Some(index)),
            Err(_) => console.print(format!("{index} is not an index")),
        },
        _ => console.print("reset: wrong #args"),
    }
}

/// Removes the entries of tasks that are gone: all, or those under one name, or one of these.
pub(super) fn clear<M: Machine>(console: &mut Console<M>, name: Option<&str>, index: Option<i32>) {
    let classes = console.machine.names("*").unwrap_or_default();
    let wanted = classes
        .iter()
        .filter(|class| name.is_none_or(|name| name == class.name));
    for class in wanted {
        let left = class.entries.iter().filter(|entry| entry.owner == 0);
        for entry in left.filter(|entry| index.is_none_or(|index| index == entry.index)) {
            let _ = console.machine.forget(&class.name, *entry);
        }
    }
}
