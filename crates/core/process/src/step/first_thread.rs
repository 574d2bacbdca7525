//! Lets Slurm end a task whose first thread has ended by `pthread_exit`.
//!
//! The kernel shows such a process as a zombie until its last thread has ended, and plugins that track the processes of a step by their tree
//! (`proctrack/linuxproc`) send no signals to zombies: such a task would outlive its step. So when the first thread ends, it starts a small process
//! beside the task, a child of the same parent, where Slurm finds it. This process passes the signals from Slurm on to the task. When it is killed,
//! the kernel kills the task, as when a guardian is killed (`fall`). It ends with the task.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

use regatta_connection::signal_mask::Blocked;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::fall;

/// The name of the process beside the task, as shown by `ps`.
const NAME: &std::ffi::CStr = c"regatta-stand-in";

/// Registers [`leaves`] for the end of the calling thread, if that is the first thread of the process.
pub(super) fn notice_end() {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let process = std::process::id();
    if rustix::thread::gettid().as_raw_nonzero().get() as u32 != process {
        return;
    }
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is valid for the write. The function stays valid, because this library is never unloaded.
        let made = unsafe { libc::pthread_key_create(&mut key, Some(leaves)) };
        (made == 0).then_some(key)
    });
    if let Some(key) = *key {
        // SAFETY: the key was created above. The value is the number of the process and is never used as an address.
        unsafe {
            libc::pthread_setspecific(key, std::ptr::without_provenance(process as usize));
        }
    }
}

/// Runs when the first thread ends. Does nothing in the child of a fork, which is not a task.
extern "C" fn leaves(process: *mut c_void) {
    if process.addr() != std::process::id() as usize {
        return;
    }
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let Ok((near, far)) = socketpair(family, kind, SocketFlags::CLOEXEC, None) else {
        return;
    };
    let Some(task) = own_process() else {
        return;
    };
    let _blocked = Blocked::all();
    let flags = (libc::CLONE_PARENT | libc::SIGCHLD) as usize;
    // SAFETY: like `fork`, except that the child's parent is this process's parent. The child continues in this frame, and only makes system calls.
    let child =
        unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize) };
    match child {
        0 => stand_in(task.as_raw_fd(), far.as_raw_fd()),
        1.. => {
            // The near end stays open while this process lives.
            fall::with(&near);
            std::mem::forget(near);
        }
        _ => {}
    }
}

/// Returns a descriptor of this process.
fn own_process() -> Option<OwnedFd> {
    // SAFETY: the system call takes numbers only; the result is checked.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0) };
    // SAFETY: the descriptor was just created, so no other code owns it.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Runs the process beside the task: passes signals on until the task has ended or executes another program. All signals are blocked here.
fn stand_in(task: i32, line: i32) -> ! {
    // SAFETY: the system calls take numbers and memory of this function, and need nothing of the process from which this one was copied.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        // Close the task's files here.
        let (low, high) = (task.min(line) as u32, task.max(line) as u32);
        for (first, last) in [
            (0, low.wrapping_sub(1)),
            (low + 1, high - 1),
            (high + 1, u32::MAX),
        ] {
            if first <= last && (first, last) != (0, u32::MAX) {
                libc::syscall(libc::SYS_close_range, first, last, 0);
            }
        }
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        let signals = libc::signalfd(-1, all.as_ptr(), 0);
        let wait = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        loop {
            let mut fds = [wait(task), wait(line), wait(signals)];
            libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, -1);
            if fds[0].revents != 0 || fds[1].revents != 0 || fds[2].revents & !libc::POLLIN != 0 {
                libc::_exit(0);
            }
            let mut signal = std::mem::MaybeUninit::<libc::signalfd_siginfo>::uninit();
            let length = size_of::<libc::signalfd_siginfo>();
            if libc::read(signals, signal.as_mut_ptr().cast(), length) == length as isize {
                let number = signal.assume_init().ssi_signo;
                libc::syscall(libc::SYS_pidfd_send_signal, task, number, 0_usize, 0_usize);
            }
        }
    }
}
