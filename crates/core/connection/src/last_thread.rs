//! Ends the process with the last thread of its program, even if threads of this library are left.
//!
//! The C library ends a process when its last thread ends, with status 0, after the functions of `atexit`. It counts
//! all threads alike. If all threads of a program ended with `pthread_exit`, those of this library would go on for
//! ever, and other tasks could not tell this task from one that computes.
//!
//! A thread that joins a job, or starts a thread of this library, has a thread-specific value whose destructor runs
//! when the thread ends. The first such thread to end starts a watcher. In most programs that thread is also the last
//! one, so there is no watcher during the program. The watcher waits until the kernel lists no thread of the program
//! any more, and then calls `exit` as the last thread would.
//!
//! Threads of this library are recognized by their names, which begin with [`NAME`], and by having all signals blocked.
//! Libraries on top of this one can start such threads, too.

use std::ffi::c_void;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::ready;

/// Prefix of the names of this library's threads. Before a thread gets its name, it has the name of the program's file,
/// which contains no slash.
const NAME: &str = "regatta/";
/// Interval of checks where the kernel cannot report that a thread ends.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of the first checks, while a thread that has run the destructor is about to end.
const FIRST_CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum wait for one thread: it may be a thread of this library that has not got its name yet.
const MAX_THREAD_WAIT: Duration = Duration::from_secs(1);
/// Number of checks at the shorter interval.
const FIRST_CHECKS: u32 = 100;

/// Whether a watcher has been started.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Makes the watcher start when this thread ends. To be called when the thread joins a job or starts a thread of this
/// library. If the C library has no key left, the end is not noticed, and the program must end the process itself.
pub fn notice_end() {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: the key is written to `key`. The function `leaves` stays loaded, as the threads of this library do.
        let made = unsafe { libc::pthread_key_create(&mut key, Some(leaves)) };
        (made == 0).then_some(key)
    });
    if let Some(key) = *key {
        // SAFETY: the key exists. The value is the process id and is never used as an address.
        unsafe {
            libc::pthread_setspecific(key, std::ptr::without_provenance(process()));
        }
    }
}

/// Returns whether the watcher is one of the threads of this process.
pub fn is_watching() -> bool {
    IS_WATCHED.load(Ordering::Relaxed)
}

/// Returns whether the first thread of the process has ended. The kernel lists it as long as other threads run.
pub fn has_first_thread_ended() -> bool {
    // The state of a process in /proc is that of its first thread.
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| has_ended(&status))
}

fn process() -> usize {
    std::process::id() as usize
}

/// Handles the end of a thread that has joined, or has started a thread of this library. Does nothing in the child of a
/// fork, which has none of this library's threads.
extern "C" fn leaves(started_in: *mut c_void) {
    if started_in.addr() != process() || IS_WATCHED.swap(true, Ordering::Relaxed) {
        return;
    }
    // Without the standard library, whose thread-local values have been destroyed by now.
    let mut thread = 0;
    // SAFETY: `pthread_create` writes the thread to `thread`; `watch` takes ownership of the boxed mask.
    let started = unsafe {
        let blocked = crate::signal_mask::Blocked::all();
        let mask = Box::into_raw(Box::new(blocked.before()));
        let started = libc::pthread_create(&mut thread, std::ptr::null(), watch, mask.cast());
        if started != 0 {
            drop(Box::from_raw(mask));
        }
        started
    };
    match started {
        // SAFETY: the thread was just created, and is never joined.
        0 => unsafe {
            libc::pthread_detach(thread);
        },
        _ => IS_WATCHED.store(false, Ordering::Relaxed),
    }
}

/// Ends the process when its program has no thread left. `mask` is the signal mask of the thread that ended.
extern "C" fn watch(mask: *mut c_void) -> *mut c_void {
    // SAFETY: `leaves` made this box for this thread.
    let mask: Box<libc::sigset_t> = unsafe { Box::from_raw(mask.cast()) };
    // SAFETY: the name is NUL-terminated.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), c"regatta/end".as_ptr()) };
    let mut looks = 0_u32;
    loop {
        match program_threads() {
            Some(threads) if threads.is_empty() => break,
            Some(threads) => await_end(&threads, looks),
            None => sleep(CHECK_INTERVAL),
        }
        looks = looks.saturating_add(1);
    }
    // Functions of `atexit` run with the signal mask of the program's last thread.
    // SAFETY: the kernel has returned this set. The program has no thread that could call exit at the same time.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &*mask, std::ptr::null_mut());
        libc::exit(0)
    }
}

/// Waits until one of these threads has ended, if the kernel can report that, or for one interval.
fn await_end(threads: &[i32], looks: u32) {
    if looks < FIRST_CHECKS {
        return sleep(FIRST_CHECK_INTERVAL);
    }
    // The kernel reports the end of the first thread only when all other threads have ended, too.
    let mut others = threads
        .iter()
        .filter(|&&thread| thread as usize != process());
    match others.next().and_then(|&thread| open(thread)) {
        Some(thread) => {
            let limit = Timespec::try_from(MAX_THREAD_WAIT).ok();
            let _ = ready::poll(&mut [PollFd::new(&thread, PollFlags::IN)], limit.as_ref());
        }
        None => sleep(CHECK_INTERVAL),
    }
}

/// Returns a descriptor that is readable when the thread has ended, or `None` before Linux 6.9.
fn open(thread: i32) -> Option<OwnedFd> {
    /// PIDFD_THREAD: refers to a thread instead of its process.
    const THREAD: libc::c_int = libc::O_EXCL;
    // SAFETY: the system call takes numbers only; the result is checked.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, thread, THREAD) };
    // SAFETY: the descriptor was just opened and is not owned elsewhere.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn sleep(time: Duration) {
    if let Ok(time) = Timespec::try_from(time) {
        let _ = rustix::thread::nanosleep(&time);
    }
}

/// Returns the living threads of the program, or `None` if they cannot be determined now.
fn program_threads() -> Option<Vec<i32>> {
    let mut found = Vec::new();
    let mut listed = 0;
    for entry in std::fs::read_dir("/proc/self/task").ok()? {
        let name = entry.ok()?.file_name();
        let thread: i32 = name.to_str()?.parse().ok()?;
        listed += 1;
        match std::fs::read_to_string(format!("/proc/self/task/{thread}/status")) {
            Ok(status) if is_the_librarys(&status) => {}
            // The first thread stays listed after it has ended. Any other thread disappears, and may have created one
            // that is not listed yet.
            Ok(status) if has_ended(&status) && thread as usize == process() => {}
            Ok(status) if has_ended(&status) => return None,
            Ok(_) => found.push(thread),
            // The thread has ended meanwhile, and may have created another one before.
            Err(_) => return None,
        }
    }
    // A thread that was created while the list was read may be missing.
    let count = std::fs::read_to_string("/proc/self/status").ok()?;
    let count: usize = field(&count, "Threads:")?.parse().ok()?;
    (count == listed || !found.is_empty()).then_some(found)
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = status.lines();
    lines
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

fn has_ended(status: &str) -> bool {
    field(status, "State:").is_some_and(|state| state.starts_with(['Z', 'X']))
}

/// Returns whether a thread is one of this library's.
fn is_the_librarys(status: &str) -> bool {
    /// The signals up to SIGSYS except SIGKILL and SIGSTOP, which cannot be blocked.
    const ALL: u64 = 0x7fff_ffff & !(1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1));
    let blocked = field(status, "SigBlk:").and_then(|set| u64::from_str_radix(set, 16).ok());
    field(status, "Name:").is_some_and(|name| name.starts_with(NAME))
        && blocked.is_some_and(|blocked| blocked & ALL == ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_librarys_threads_are_known_by_name_and_signals() {
        let status = |name: &str, blocked: &str| {
            format!("Name:\t{name}\nState:\tS (sleeping)\nSigBlk:\t{blocked}\n")
        };
        assert!(is_the_librarys(&status(
            "regatta/waiter",
            "fffffffe7ffbfeff"
        )));
        assert!(!is_the_librarys(&status(
            "regatta/waiter",
            "0000000000000000"
        )));
        assert!(!is_the_librarys(&status("worker", "fffffffe7ffbfeff")));
        // A program with such a name has blocked all signals.
        assert!(!is_the_librarys(&status(
            "regatta-solver",
            "fffffffe7ffbfeff"
        )));
        assert!(has_ended("Name:\tx\nState:\tZ (zombie)\n"));
    }

    #[test]
    fn this_thread_is_one_of_the_programs() {
        let this = rustix::thread::gettid().as_raw_nonzero().get();
        let mut looks = std::iter::from_fn(|| Some(program_threads()));
        let threads = looks
            .find_map(|threads| threads)
            .expect("they come to rest");
        assert!(threads.contains(&this));
    }
}
