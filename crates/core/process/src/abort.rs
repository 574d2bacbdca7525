//! Ends the job at once, whatever the thread is doing.
//!
//! Programs abort in signal handlers, which may have interrupted this thread inside the engine or inside the C library's `malloc`. So nothing here
//! allocates, and the lock is waited for only if another thread holds it. The request is sent to the launcher without the engine, as one frame on
//! the same socket. Signals are blocked where the engine writes to that socket, so a frame is incomplete only if the launcher has not accepted all
//! of it, or if another thread is writing it. (The lock also refuses a thread that is interrupted while entering, when another one holds the lock.)

use std::convert::Infallible;
use std::io::Write;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use regatta_connection::ready;
use regatta_engine::{Peer, Result};
use regatta_memory::biased::Refusal;
use regatta_wire::control::abort_frame;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::state::{PROCESS, outside, refused};

/// Maximum time to wait for a launcher that does not accept data, in seconds.
const LAUNCHER_TIMEOUT_SECONDS: i64 = 5;

/// Number of checks, a millisecond apart, whether a frame that another thread seems to write is complete.
const MAX_CUT_FRAME_CHECKS: u32 = 100;

/// The socket to the launcher. Negative if there is none.
static LAUNCHER: AtomicI32 = AtomicI32::new(-1);
/// An incomplete frame may be in that socket.
static IS_FRAME_CUT: AtomicBool = AtomicBool::new(false);
/// The number of this task.
static TASK: AtomicU32 = AtomicU32::new(0);

/// Records which task this process is.
pub(crate) fn joined(me: Peer) {
    TASK.store(me, Ordering::Relaxed);
}

/// Records the socket to the launcher.
pub(crate) fn has_launcher(socket: RawFd) {
    IS_FRAME_CUT.store(false, Ordering::Relaxed);
    LAUNCHER.store(socket, Ordering::Relaxed);
}

/// Forgets this socket, which is about to be closed.
pub(crate) fn has_no_launcher(socket: RawFd) {
    let _ = LAUNCHER.compare_exchange(socket, -1, Ordering::Relaxed, Ordering::Relaxed);
}

/// Records that frames are about to be sent. Called with signals blocked.
pub(crate) fn sends() {
    // Before their first byte is in the socket.
    IS_FRAME_CUT.store(true, Ordering::SeqCst);
}

/// Records whether the launcher has accepted all that was to be sent. Called with signals blocked.
pub(crate) fn sent(all: bool) {
    IS_FRAME_CUT.store(!all, Ordering::SeqCst);
}

/// Returns whether an incomplete frame may be in the socket.
pub(crate) fn is_frame_cut() -> bool {
    IS_FRAME_CUT.load(Ordering::SeqCst)
}

/// Ends the job with this exit status: all its tasks, including this one. Returns only if this process is not a task. May be called from a signal
/// handler.
pub fn abort(status: u8) -> Result<Infallible> {
    let status = status.max(1);
    // Hold the lock so that no other thread writes to the launcher meanwhile.
    let _held = match PROCESS.lock() {
        Ok(place) if place.is_none() => return Err(outside()),
        Ok(place) => Some(place),
        // The interrupted call holds it.
        Err(Refusal::Reentered) => None,
        Err(refusal) => return Err(refused(refusal)),
    };
    if !tell_launcher(status) {
        complain(status);
    }
    // End as if killed: what a program does at its exit could wait for other tasks. The launcher reads what a task has sent before it sees the
    // task's end.
    // SAFETY: `_exit` takes no pointers and does not return.
    unsafe { libc::_exit(status.into()) }
}

/// Sends the request to the launcher. Returns whether it was sent.
fn tell_launcher(status: u8) -> bool {
    let socket = LAUNCHER.load(Ordering::Relaxed);
    if socket < 0 || !becomes_whole() {
        return false;
    }
    // SAFETY: the socket stays open while its number is in `LAUNCHER`: this thread, or the call that it has interrupted, holds the lock.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let frame = abort_frame(status.into());
    let mut rest = &frame[..];
    while !rest.is_empty() {
        match rustix::net::send(socket, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(count) => rest = &rest[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if takes_more(socket) => {}
            Err(_) => return false,
        }
    }
    true
}

/// Waits for another thread that seems to be writing a frame. Returns whether the frame is complete.
fn becomes_whole() -> bool {
    let moment = Timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000,
    };
    for _ in 0..MAX_CUT_FRAME_CHECKS {
        if !is_frame_cut() {
            return true;
        }
        let _ = rustix::thread::nanosleep(&moment);
    }
    false
}

/// Waits until the launcher accepts more data. Returns false after a timeout or an error.
fn takes_more(socket: BorrowedFd<'_>) -> bool {
    let limit = Timespec {
        tv_sec: LAUNCHER_TIMEOUT_SECONDS,
        tv_nsec: 0,
    };
    let mut room = [PollFd::new(&socket, PollFlags::OUT)];
    match ready::poll(&mut room, Some(&limit)) {
        Ok(ready) => ready > 0,
        Err(error) => error == Errno::INTR,
    }
}

/// Reports on standard error that only this task ends.
fn complain(status: u8) {
    let me = TASK.load(Ordering::Relaxed);
    let mut line = [0; 128];
    let mut rest = &mut line[..];
    // The text fits.
    let _ = writeln!(
        rest,
        "regatta: task {me} has called rg_abort({status}); it has no launcher, so no other tasks are ended"
    );
    let left = rest.len();
    let written = &line[..line.len() - left];
    let _ = rustix::io::write(rustix::stdio::stderr(), written);
}
