//! Ending the job at once, from wherever a thread is.
//!
//! Programs abort in signal handlers, which may have interrupted this thread inside the engine or inside the C library's `malloc`. So nothing here
//! allocates, and the lock is only waited for if another thread has it. The question goes to the launcher past the engine, as one frame on
//! the same socket: signals are blocked where the engine writes there, so a frame is cut only if the launcher has not taken all of it, or if another
//! thread writes it just now. (The lock also refuses a thread that is interrupted on its way in, when another one has it.)

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

/// How long a launcher that takes nothing just now is waited for, in seconds.
const LAUNCHER_TIMEOUT_SECONDS: i64 = 5;

/// Number of checks, a millisecond apart, whether a frame that another thread seems to write is whole.
const MAX_CUT_FRAME_CHECKS: u32 = 100;

/// The socket to the launcher; below 0: there is none.
static LAUNCHER: AtomicI32 = AtomicI32::new(-1);
/// Less than a whole frame may be in that socket.
static IS_FRAME_CUT: AtomicBool = AtomicBool::new(false);
/// This task.
static TASK: AtomicU32 = AtomicU32::new(0);

/// The process is this task now.
pub(crate) fn joined(me: Peer) {
    TASK.store(me, Ordering::Relaxed);
}

/// The launcher is at the other end of this socket.
pub(crate) fn has_launcher(socket: RawFd) {
    IS_FRAME_CUT.store(false, Ordering::Relaxed);
    LAUNCHER.store(socket, Ordering::Relaxed);
}

/// This socket is about to be closed.
pub(crate) fn has_no_launcher(socket: RawFd) {
    let _ = LAUNCHER.compare_exchange(socket, -1, Ordering::Relaxed, Ordering::Relaxed);
}

/// Frames are about to be sent. Called with signals blocked.
pub(crate) fn sends() {
    // Before the first byte of them is in the socket.
    IS_FRAME_CUT.store(true, Ordering::SeqCst);
}

/// The launcher has or has not taken all that was to be sent. Called with signals blocked.
pub(crate) fn sent(all: bool) {
    IS_FRAME_CUT.store(!all, Ordering::SeqCst);
}

/// Whether less than a whole frame may be in the socket.
pub(crate) fn is_frame_cut() -> bool {
    IS_FRAME_CUT.load(Ordering::SeqCst)
}

/// Ends the job with this exit status: all its tasks, this one too. Returns only if this process is no task. May be called from a signal
/// handler.
pub fn abort(status: u8) -> Result<Infallible> {
    let status = status.max(1);
    // Nobody else writes to the launcher meanwhile.
    let _held = match PROCESS.lock() {
        Ok(place) if place.is_none() => return Err(outside()),
        Ok(place) => Some(place),
        // The call that is interrupted has it.
        Err(Refusal::Reentered) => None,
        Err(refusal) => return Err(refused(refusal)),
    };
    if !tell_launcher(status) {
        complain(status);
    }
    // As if killed: whatever a program does at its end could wait for others. The launcher reads what a task has said before it sees its end.
    // SAFETY: does not return.
    unsafe { libc::_exit(status.into()) }
}

/// Whether the launcher has been told.
fn tell_launcher(status: u8) -> bool {
    let socket = LAUNCHER.load(Ordering::Relaxed);
    if socket < 0 || !becomes_whole() {
        return false;
    }
    // SAFETY: it is open as long as it stands there: this thread, or the call that it has interrupted, has the lock.
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

/// Waits for another thread that writes a frame just now, as it seems. Whether it is whole.
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

/// Waits until the launcher takes more.
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

/// Says on standard error that only this task ends.
fn complain(status: u8) {
    let me = TASK.load(Ordering::Relaxed);
    let mut line = [0; 128];
    let mut rest = &mut line[..];
    // It fits.
    let _ = writeln!(
        rest,
        "regatta: task {me} has called rg_abort({status}), and has no launcher that could end others"
    );
    let left = rest.len();
    let written = &line[..line.len() - left];
    let _ = rustix::io::write(rustix::stdio::stderr(), written);
}
