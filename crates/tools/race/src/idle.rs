//! The cost of an idle task: its memory, and its processor time while it is blocked.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::stop::Stop;

/// Returns the process ids of the tasks that have written themselves to the hold file, with their ranks.
pub fn tasks(hold: &Path) -> Vec<(u32, i32)> {
    let text = fs::read_to_string(hold).unwrap_or_default();
    let mut tasks: Vec<(u32, i32)> = text
        .lines()
        .filter_map(|line| {
            let (rank, pid) = line.split_once(' ')?;
            Some((rank.parse().ok()?, pid.parse().ok()?))
        })
        .collect();
    tasks.sort_unstable();
    tasks
}

/// Returns the mean memory of the tasks in KiB: resident, and proportional share (a page used by n processes counts 1/n
/// for each).
pub fn memory(tasks: &[(u32, i32)]) -> Option<(f64, f64)> {
    let mut sums = (0.0, 0.0);
    for (_, pid) in tasks {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        sums.0 += kib(&text, "Rss:")?;
        sums.1 += kib(&text, "Pss:")?;
    }
    let n = tasks.len() as f64;
    (n > 0.0).then_some((sums.0 / n, sums.1 / n))
}

fn kib(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// A task that uses more of a processor than this, in per cent, polls. A short measurement shows that.
const POLLS: f64 = 5.0;
/// The short measurement takes this fraction of the whole time.
const SHORTER: u32 = 8;

/// Returns the mean processor time of the blocked tasks, in per cent of one processor. They are watched for `watch`, or
/// for a shorter time if they poll. Task 0 is left out, since it waits for the driver, not for a message. Returns
/// `None` if there is no blocked task, one has ended, or the race is to stop.
pub fn processor(tasks: &[(u32, i32)], watch: Duration, stop: &Stop) -> Option<f64> {
    let blocked: Vec<i32> = tasks
        .iter()
        .filter(|(rank, _)| *rank > 0)
        .map(|(_, pid)| *pid)
        .collect();
    let used = || blocked.iter().map(|pid| used_ns(*pid)).sum::<Option<f64>>();
    let start = Instant::now();
    let before = used()?;
    let mut share = 0.0;
    for part in [watch / SHORTER, watch - watch / SHORTER] {
        if share > POLLS {
            break;
        }
        if stop.wait(part) {
            return None;
        }
        let elapsed = start.elapsed().as_secs_f64() * 1e9;
        share = (used()? - before) / elapsed / blocked.len() as f64 * 100.0;
    }
    (!blocked.is_empty()).then_some(share)
}

/// Returns the processor time that all threads of a process have used, in ns.
fn used_ns(pid: i32) -> Option<f64> {
    let mut total = 0.0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        // A thread may end between the listing and the reading.
        let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        total += text
            .split(' ')
            .next()
            .and_then(|word| word.parse::<f64>().ok())
            .unwrap_or(0.0);
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::Stdio;

    #[test]
    fn this_process_has_memory() {
        let (resident, share) = memory(&[(0, std::process::id() as i32)]).unwrap();
        assert!(resident >= share && share > 0.0, "{resident} {share}");
    }

    #[test]
    fn a_sleeping_process_takes_no_processor_time() {
        let mut child = std::process::Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The process has started when it answers, and then waits for more input.
        let mut answer = [0];
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut answer)
            .unwrap();
        let per_cent = processor(
            &[(0, 1), (1, child.id() as i32)],
            Duration::from_millis(200),
            &Stop::new().unwrap(),
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(per_cent.unwrap() < 5.0, "{per_cent:?}");
    }

    #[test]
    fn a_process_that_polls_is_found_out_soon() {
        let mut child = std::process::Command::new("cat")
            .arg("/dev/zero")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        let watch = Duration::from_secs(20);
        let all = [(0, 1), (1, child.id() as i32)];
        let per_cent = processor(&all, watch, &Stop::new().unwrap());
        let took = began.elapsed();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(per_cent.unwrap() > POLLS, "{per_cent:?}");
        assert!(took < watch / 2, "{took:?}");
    }

    #[test]
    fn the_hold_file_is_read() {
        let file = std::env::temp_dir().join(format!("regatta-race-hold-{}", std::process::id()));
        fs::write(&file, "1 200\n0 100\n").unwrap();
        assert_eq!(tasks(&file), [(0, 100), (1, 200)]);
        fs::remove_file(&file).unwrap();
    }
}
