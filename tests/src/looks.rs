//! Waiting for what happens outside the test.
//!
//! A test awaits an event: a line of output, the end of a process, a change of a file, a message. For a few things there is none: what
//! another process is doing right now (`/proc`), a word in shared memory that wakes nobody, the answer of a program that is not ours.
//! [`look_until`] looks at these again and again. `scripts/check-waits` lists its uses, and finds tests that wait in such a way by
//! other means. Tests of other crates include this file as a module.
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

/// Looks again and again until `look` finds something; panics with `what` when it never does. For what nothing tells of.
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

/// Waits until `look` finds something in a folder's files; each change of the folder or of one of its files is a reason to look.
#[track_caller]
pub fn await_files<T>(folder: &Path, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + AWAIT_TIMEOUT;
    let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("inotify");
    let kinds =
        WatchFlags::CREATE | WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO;
    inotify::add_watch(&changes, folder, kinds).expect("a folder that can be watched");
    loop {
        // Everything that has happened by now is seen by the look below.
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

/// How many times longer than on an idle machine it takes now to start a process: 1 or more. For limits that a busy machine must not
/// break: take it before and after what is measured.
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
