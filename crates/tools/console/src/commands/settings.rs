//! Options of the library, what is traced, and requests to the machine's process.

use crate::console::Console;
use crate::machine::Machine;
use crate::options;
use crate::traces::{AMOUNTS, NoSuchEvent};

pub(super) fn getopt<M: Machine>(console: &mut Console<M>, words: &[String]) {
    let wanted = |name: &str| words.first().is_none_or(|word| word == name);
    let mut found = false;
    for (name, number) in options::ALL.iter().filter(|(name, _)| wanted(name)) {
        let value = console.machine.option(*number);
        console.print(format!("{name} Currently Set to {value}"));
        found = true;
    }
    if !found {
        unknown(console, &words[0]);
    }
}

pub(super) fn setopt<M: Machine>(console: &mut Console<M>, words: &[String]) {
    let (name, value) = (&words[0], &words[1]);
    let Some(number) = options::number(name) else {
        unknown(console, name);
        return;
    };
    let Ok(value) = value.parse() else {
        console.print(format!("{value} is not a number"));
        return;
    };
    let before = console.machine.set_option(number, value);
    console.print(format!("{name} Changed from {before} to {value}"));
}

fn unknown<M: Machine>(console: &mut Console<M>, name: &str) {
    console.print(format!("PVM Option \"{name}\" Unknown."));
}

pub(super) fn trace<M: Machine>(console: &mut Console<M>, words: &[String]) {
    let said: Vec<_> = words.iter().map(String::as_str).collect();
    match said[..] {
        [] => {
            let table = console.events.table();
            console.print_all(table);
        }
        ["xpvm"] => console.events = crate::traces::Events::usual(),
        ["buf", ref rest @ ..] => buffer(console, rest),
        ["opt", ref rest @ ..] => amount(console, rest),
        ["-", ref names @ ..] => choose(console, names, false),
        ["+", ref names @ ..] => choose(console, names, true),
        ref names => choose(console, names, true),
    }
}

fn choose<M: Machine>(console: &mut Console<M>, names: &[&str], chosen: bool) {
    for name in names {
        if let Err(NoSuchEvent(name)) = console.events.set(name, chosen) {
            console.print(format!("no such event \"{name}\""));
        }
    }
    // The library has reported errors.
    let _ = console.machine.set_trace_mask(&console.events.mask());
}

fn buffer<M: Machine>(console: &mut Console<M>, words: &[&str]) {
    match words {
        [] => {
            let bytes = console.machine.option(options::TRACE_BUFFER);
            console.print_all(["", &format!("Trace Buffering set to {bytes} bytes"), ""]);
        }
        [bytes]
            if bytes.parse::<u16>().is_ok()
                || bytes.parse::<i32>().is_ok_and(|bytes| bytes >= 0) =>
        {
            let bytes = bytes.parse().unwrap_or_default();
            console.machine.set_option(options::TRACE_BUFFER, bytes);
        }
        _ => console.print("trace: buf takes a number of bytes"),
    }
}

fn amount<M: Machine>(console: &mut Console<M>, words: &[&str]) {
    let named = |word: &str| AMOUNTS.iter().find(|(name, _)| *name == word);
    match words {
        [] => {
            let now = console.machine.option(options::TRACE_OPTIONS);
            let name = AMOUNTS.iter().find(|(_, amount)| *amount == now);
            let name = name.map_or_else(
                || format!("<Unknown={now}>"),
                |(name, _)| format!("\"{name}\""),
            );
            console.print_all(["", &format!("Trace Options set to {name}"), ""]);
        }
        [word] => match named(word) {
            Some((_, amount)) => {
                console.machine.set_option(options::TRACE_OPTIONS, *amount);
            }
            None => {
                console.print_all(["", &format!("Error:  Unknown Trace Option \"{word}\""), ""])
            }
        },
        _ => console.print("trace: opt takes one of full, time, count"),
    }
}

pub(super) fn tickle<M: Machine>(console: &mut Console<M>, words: &[String]) {
    let number = |word: &String| match word.strip_prefix("0x") {
        Some(digits) => i32::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    let Some(numbers) = words.iter().map(number).collect::<Option<Vec<i32>>>() else {
        console.print("tickle: numbers only");
        return;
    };
    if let Ok(answer) = console.machine.tickle(&numbers) {
        let answer: String = answer.iter().map(|number| format!("{number} ")).collect();
        console.print(format!("( {answer})"));
    }
}
