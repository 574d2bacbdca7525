//! The lock of a directory, and its holder.
//!
//! Each holder makes a few system calls and releases the lock. A holder that is stopped meanwhile (SIGSTOP, a debugger)
//! keeps it without a limit, so waiting needs a timeout. `flock` has none: a thread waits in it, and is abandoned when
//! the time is over.

use std::os::fd::BorrowedFd;
use std::sync::mpsc;
use std::time::Duration;

use regatta_connection::library_thread;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::system::tree;

/// Takes the exclusive lock. Returns false if another process has held it for the whole time.
pub(super) fn take(file: BorrowedFd, limit: Duration) -> std::io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => return Ok(true),
        Err(Errno::WOULDBLOCK) => {}
        Err(errno) => return Err(errno.into()),
    }
    // Both descriptors refer to the same open file, which has the lock.
    let waiting = file.try_clone_to_owned()?;
    let (tell, told) = mpsc::channel();
    let thread = library_thread::spawn("regatta/lock", move || {
        let lock = || rustix::fs::flock(&waiting, FlockOperation::LockExclusive);
        let locked = rustix::io::retry_on_intr(lock);
        // A lock obtained too late is released with this last descriptor.
        let _ = tell.send(locked.map(|()| waiting));
    })?;
    let Ok(locked) = told.recv_timeout(limit) else {
        return Ok(false);
    };
    // Some callers fork next, and must be single-threaded by then.
    let _ = thread.join();
    Ok(locked.map(|_| true)?)
}

/// Returns a description of the process that holds the lock, as far as the system tells.
pub(super) fn holder(file: BorrowedFd) -> String {
    let pid = rustix::fs::fstat(file).ok().and_then(|found| {
        let (major, minor) = (
            rustix::fs::major(found.st_dev),
            rustix::fs::minor(found.st_dev),
        );
        let at = format!("{major:02x}:{minor:02x}:{}", found.st_ino);
        // The list is read in parts: if other locks are taken and released meanwhile, an entry can be missed.
        (0..3).find_map(|_| pid_in(&std::fs::read_to_string("/proc/locks").ok()?, &at))
    });
    let Some(pid) = pid else {
        return "another process of this user, which may be stopped: continue it (kill -CONT) or end it"
            .to_owned();
    };
    let name = tree::read(&pid.to_string()).map(|process| format!(" ({})", process.name));
    format!(
        "the process {pid}{}, which may be stopped: continue it (kill -CONT {pid}) or end it",
        name.unwrap_or_default()
    )
}

/// Returns the holder of a lock on this file from the kernel's list. Waiting processes are marked by an arrow, and
/// processes outside this pid namespace have the number 0.
fn pid_in(locks: &str, file: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, _, pid, at, ..] if at == file => {
                pid.parse().ok().filter(|pid| *pid > 0)
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    const LOCKS: &str = "\
1: POSIX  ADVISORY  WRITE 11 08:01:7 0 EOF
2: FLOCK  ADVISORY  WRITE 0 08:01:8 0 EOF
3: FLOCK  ADVISORY  WRITE 12 08:01:7 0 EOF
3: -> FLOCK  ADVISORY  WRITE 13 08:01:7 0 EOF
";

    #[test]
    fn the_holder_is_told_from_those_who_wait_and_from_other_locks() {
        assert_eq!(pid_in(LOCKS, "08:01:7"), Some(12));
        assert_eq!(pid_in(LOCKS, "08:01:8"), None);
        assert_eq!(pid_in(LOCKS, "08:01:9"), None);
    }

    #[test]
    fn a_lock_that_is_held_is_waited_for_within_limits_and_comes_when_it_is_free() {
        let folder = std::env::temp_dir().join(format!("regatta-lock-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a directory");
        let open = || File::open(&folder).expect("the directory");
        let (first, second) = (open(), open());
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(60));
        assert!(take(first.as_fd(), short).expect("a lock"));
        assert!(!take(second.as_fd(), short).expect("a wait"));
        let said = holder(second.as_fd());
        assert!(
            said.starts_with(&format!("the process {} (", std::process::id())),
            "{said}"
        );
        // A lock obtained after the timeout is not kept.
        drop(second);
        let third = open();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| take(third.as_fd(), long).expect("a wait"));
            drop(first);
            assert!(waits.join().expect("no panic"));
        });
        std::fs::remove_dir(&folder).expect("it is ours");
    }
}
