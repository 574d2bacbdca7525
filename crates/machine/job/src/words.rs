//! Words of sentences: signals, ranks, counts.

/// The name and meaning of a signal, as in "signal 11 (segmentation fault)".
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
        libc::SIGKILL => "SIGKILL: sent by someone, or for want of memory",
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

/// "1 task", "4 tasks".
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

/// "task 3", "tasks 0-2, 5"; `ranks` ascend.
pub fn tasks(ranks: &[u32]) -> String {
    let noun = if ranks.len() == 1 { "task" } else { "tasks" };
    let numbers: Vec<usize> = ranks.iter().map(|&rank| rank as usize).collect();
    format!("{noun} {}", self::numbers(&numbers))
}

/// "3", "0-2, 5"; after a few ranges "and so on". `numbers` ascend.
pub fn numbers(numbers: &[usize]) -> String {
    const RANGES: usize = 6;
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let shown: Vec<String> = ranges
        .iter()
        .take(RANGES)
        .map(|&(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect();
    let more = if ranges.len() > RANGES {
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
    fn a_signal_is_told_with_its_meaning() {
        assert_eq!(signal(11), "signal 11 (segmentation fault)");
        assert_eq!(signal(63), "signal 63");
    }
}
