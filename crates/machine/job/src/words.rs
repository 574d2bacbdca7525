//! Parts of sentences: signals, ranks, counts, and text from other processes.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns the name and meaning of a signal, as in "signal 11 (segmentation fault)".
pub fn signal(number: i32) -> String {
    match meaning(number) {
        Some(meaning) => format!("signal {number} ({meaning})"),
        None => format!("signal {number}"),
    }
}

fn meaning(number: i32) -> Option<&'static str> {
    Some(match number {
        libc::SIGHUP => "hang-up",
        libc::SIGINT => "interrupt",
        libc::SIGQUIT => "quit",
        libc::SIGILL => "illegal instruction",
        libc::SIGTRAP => "trap",
        libc::SIGABRT => "abort",
        libc::SIGBUS => "bus error",
        libc::SIGFPE => "arithmetic exception",
        libc::SIGKILL => "SIGKILL: sent by a user, or by the kernel when memory ran out",
        libc::SIGUSR1 => "user signal 1",
        libc::SIGSEGV => "segmentation fault",
        libc::SIGUSR2 => "user signal 2",
        libc::SIGPIPE => "broken pipe: its reader is gone",
        libc::SIGALRM => "alarm clock",
        libc::SIGTERM => "terminated",
        libc::SIGXCPU => "limit of processor time reached",
        libc::SIGXFSZ => "limit of file size reached",
        libc::SIGSYS => "forbidden system call",
        _ => return None,
    })
}

/// Returns `text` in a form that is safe to show on a terminal. Text from hosts, tasks and files is quoted in
/// sentences. Control characters in it (an escape that moves the cursor, a reversal of the writing direction) would
/// change how the rest is displayed. They are written as `\u{1b}`. Newlines and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_safe = |letter: char| !rewrites(letter) || matches!(letter, '\n' | '\t');
    if text.chars().all(is_safe) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        // Writing to a string cannot fail.
        let _ = match is_safe(letter) {
            true => write!(shown, "{letter}"),
            false => write!(shown, "{}", letter.escape_unicode()),
        };
    }
    shown.into()
}

/// Returns whether a terminal does anything but display this character: it is a control character, or changes the
/// direction of the text around it.
fn rewrites(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a number with its noun: "1 task", "4 tasks".
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

/// Returns the names of tasks: "task 3", "tasks 0-2, 5". `ranks` must ascend.
pub fn tasks(ranks: &[u32]) -> String {
    let noun = if ranks.len() == 1 { "task" } else { "tasks" };
    let numbers: Vec<usize> = ranks.iter().map(|&rank| rank as usize).collect();
    format!("{noun} {}", self::numbers(&numbers))
}

/// Returns numbers as ranges: "3", "0-2, 5", and "and so on" after a few ranges. `numbers` must ascend.
pub fn numbers(numbers: &[usize]) -> String {
    const MAX_RANGES: usize = 6;
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let shown: Vec<String> = ranges
        .iter()
        .take(MAX_RANGES)
        .map(|&(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect();
    let more = if ranges.len() > MAX_RANGES {
        " and so on"
    } else {
        ""
    };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_told_as_ranges() {
        assert_eq!(tasks(&[3]), "task 3");
        assert_eq!(tasks(&[0, 1, 2, 5]), "tasks 0-2, 5");
        assert_eq!(
            tasks(&[0, 2, 4, 6, 8, 10, 12]),
            "tasks 0, 2, 4, 6, 8, 10 and so on"
        );
    }

    #[test]
    fn what_others_say_does_not_steer_a_terminal() {
        assert_eq!(printable("h\u{f6}he\n\t1"), "h\u{f6}he\n\t1");
        let steers = "a\x1b[2Jb\rc\u{9b}d\u{202e}e\x07";
        let shown = "a\\u{1b}[2Jb\\u{d}c\\u{9b}d\\u{202e}e\\u{7}";
        assert_eq!(printable(steers), shown);
    }

    #[test]
    fn a_signal_is_told_with_its_meaning() {
        assert_eq!(signal(11), "signal 11 (segmentation fault)");
        assert_eq!(signal(63), "signal 63");
    }
}
