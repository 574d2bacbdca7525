//! Two processes that need each other: a guardian is forked, and its tasks fall with it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use regatta_slurm::Step;
use regatta_transport::blocked_signals::Blocked;
use rustix::process::{Resource, Rlimit};

use super::guardian;

/// Forks the guardian of this node. It is no child of this process, whose own waiting for children it would disturb.
pub(super) fn beside(listener: OwnedFd, step: &Step, patience: Duration) -> io::Result<()> {
    // The guardian keeps them so: what is meant for the tasks is not meant for it.
    let (blocked, maker) = (Blocked::all(), std::process::id());
    // SAFETY: fork is always allowed. The child goes on in Rust code that allocates, which the C library makes safe after
    // fork; it takes no lock of this library that another thread may have held, and never returns from here.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => between(listener, maker, step, patience),
        child => {
            drop(blocked);
            await_child(child);
            Ok(())
        }
    }
}

/// The process between the two ends at once, so that the guardian falls to whoever adopts orphans.
fn between(listener: OwnedFd, maker: u32, step: &Step, patience: Duration) -> ! {
    // SAFETY: as above; this process has one thread.
    match unsafe { libc::fork() } {
        0 => {
            forget(listener.as_raw_fd());
            let serve = || guardian::serve(listener, maker, step, patience);
            let served = std::panic::catch_unwind(serve);
            end(i32::from(served.is_err()))
        }
        -1 => end(1),
        _ => end(0),
    }
}

/// Ends this process.
pub(super) fn end(status: i32) -> ! {
    // SAFETY: ends this process, and runs nothing of the task whose copy it is.
    unsafe { libc::_exit(status) }
}

fn await_child(child: libc::pid_t) {
    loop {
        // SAFETY: no status is asked for.
        let ended = unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        // A program that ignores its children has no child to wait for: the kernel has done so.
        if ended != -1 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

/// Gives up everything of the task that this process is a copy of, but one descriptor.
fn forget(kept: RawFd) {
    // SAFETY: one thread; nobody else uses the descriptors that are closed or replaced, and nothing here uses those that
    // other code of this process believes to own.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::prctl(libc::PR_SET_NAME, c"regatta-guard".as_ptr());
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..3 {
            libc::dup2(nothing, standard);
        }
        let kept = kept as libc::c_uint;
        if kept > 3 {
            libc::close_range(3, kept - 1, 0);
        }
        libc::close_range(kept + 1, libc::c_uint::MAX, 0);
        libc::chdir(c"/".as_ptr());
    }
    // A descriptor for each task here, and for each other node.
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _ = rustix::process::setrlimit(Resource::Nofile, most);
}

/// From now on the kernel kills this process when the other end of the line is closed.
///
/// The guardian says nothing more on the line and the task neither: its end is the only event that can come.
pub(super) fn fall_with(line: &OwnedFd) {
    let fd = line.as_raw_fd();
    // SAFETY: settings of a descriptor that is ours. Without them a task outlives its guardian, and no worse.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETOWN, std::process::id() as libc::c_int);
        libc::fcntl(fd, F_SETSIG, libc::SIGKILL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_ASYNC);
    }
}

/// Takes that back.
pub(super) fn fall_no_more(line: &OwnedFd) {
    let fd = line.as_raw_fd();
    // SAFETY: as above.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_ASYNC);
    }
}

/// One number on every machine that Linux runs on; not among the declarations we use.
const F_SETSIG: libc::c_int = 10;
