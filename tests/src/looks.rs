//! Waiting for things that happen outside the test.
//!
//! A test normally waits for an event: a line of output, the end of a process, a change of a file, a message. Some
//! things send no event: what another process is doing right now (`/proc`), a word in shared memory, the state of a
//! program that is not ours. [`look_until`] polls these. `scripts/check-waits` lists its uses, and rejects tests that
//! poll by other means. Tests of other crates include this file as a module.
#![allow(dead_code, reason = "each test program uses a part of this")]

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::{Errno, read};

/// Time limit for something that takes milliseconds on an idle machine.
const AWAIT_TIMEOUT: Duration = Duration::from_secs(120);
/// Interval between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Polls until `look` returns a value. Panics with `what` after the time limit. For states that send no event.
#[track_caller]
pub fn look_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + AWAIT_TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "it never came to that: {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until `look` finds something in the files of a folder. Calls `look` again after each change of the folder or
/// of one of its files.
#[track_caller]
pub fn await_files<T>(folder: &Path, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + AWAIT_TIMEOUT;
    let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("inotify");
    let kinds =
        WatchFlags::CREATE | WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO;
    inotify::add_watch(&changes, folder, kinds).expect("a folder that can be watched");
    loop {
        // Discards the events so far; `look` below sees their results.
        while read(&changes, &mut [0; 4096]) != Err(Errno::AGAIN) {}
        if let Some(found) = look() {
            return found;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("a short time");
        let changed = poll(&mut [PollFd::new(&changes, PollFlags::IN)], Some(&left));
        assert!(
            changed.is_ok_and(|changed| changed > 0),
            "nothing of the kind is written in {}",
            folder.display()
        );
    }
}

/// Returns how many times longer than on an idle machine starting a process takes now: 1 or more. For time limits that
/// must hold on a busy machine: call it before and after the measured part.
pub fn slowness() -> f64 {
    const TIMES: u32 = 20;
    const IDLE: Duration = Duration::from_millis(2);
    let begun = Instant::now();
    for _ in 0..TIMES {
        let status = std::process::Command::new("true").status();
        assert!(status.is_ok_and(|status| status.success()), "true");
    }
    (begun.elapsed().as_secs_f64() / (IDLE * TIMES).as_secs_f64()).max(1.0)
}
