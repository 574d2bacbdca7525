//! The thread that polls for messages while the program is outside NX calls, and the signal with which it interrupts
//! the program.
//!
//! A handler may send and receive, so it may run only where the program holds no lock of the C library, such as that of
//! `malloc`. The signal handler therefore runs it only if the interrupted instruction belongs to the program's own
//! executable. Otherwise the thread tries again, unless the program sleeps in a system call, which a signal would
//! interrupt. In a statically linked program the C library's code cannot be distinguished from the program's: there
//! handlers run only in calls.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

use crate::error::{EQNOPROC, Fault, check};
use crate::handlers;
use crate::rg;

/// The signal. Its default action is to ignore it, and few programs use it.
const SIGNAL: c_int = libc::SIGURG;
/// Milliseconds between two attempts to interrupt.
const AGAIN: c_int = 1;

/// The program's thread, as a pthread and as a kernel thread id.
static THREAD: AtomicU64 = AtomicU64::new(0);
static TASK: AtomicI32 = AtomicI32::new(0);
/// Address range of the executable's code.
static FIRST: AtomicUsize = AtomicUsize::new(0);
static LAST: AtomicUsize = AtomicUsize::new(0);
/// Whether the program can be interrupted at all.
static CAN: AtomicBool = AtomicBool::new(false);

/// Returns whether the caller is the program's thread.
pub fn is_programs_thread() -> bool {
    // SAFETY: the call takes plain values only.
    unsafe { libc::pthread_self() as u64 == THREAD.load(Ordering::Relaxed) }
}

/// Starts the thread. The caller becomes the program's thread.
pub fn start() -> Result<(), Fault> {
    let mut descriptor = -1;
    // SAFETY: the calls take plain values, a writable result, and a callback with the right type.
    unsafe {
        THREAD.store(libc::pthread_self() as u64, Ordering::Relaxed);
        TASK.store(libc::gettid(), Ordering::Relaxed);
        check(rg::rg_fd(&mut descriptor))?;
        libc::dl_iterate_phdr(Some(note_executable), std::ptr::null_mut());
    }
    let own = start as fn() -> Result<(), Fault> as usize;
    CAN.store(!is_executables(own) && set_handler(), Ordering::Relaxed);
    // The thread's name and its blocked signals mark it as one of the library's threads, which do not keep the process
    // alive (`crates/core/connection/src/last_thread.rs`).
    let thread = std::thread::Builder::new().name("regatta/nx".to_owned());
    let started = thread.spawn(move || watch(descriptor));
    started.map(drop).map_err(|_| Fault::plain(EQNOPROC))
}

/// Stores the address range of the executable's code. The executable is the first object that the loader lists.
unsafe extern "C" fn note_executable(
    object: *mut libc::dl_phdr_info,
    _: usize,
    _: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes an object with `dlpi_phnum` headers.
    let (base, headers) = unsafe {
        let object = &*object;
        let headers = std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into());
        (object.dlpi_addr as usize, headers)
    };
    let code = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0)
        .map(|header| {
            let first = base.wrapping_add(header.p_vaddr as usize);
            (first, first.wrapping_add(header.p_memsz as usize))
        });
    if let Some((first, last)) = code.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    {
        FIRST.store(first, Ordering::Relaxed);
        LAST.store(last, Ordering::Relaxed);
    }
    1
}

fn is_executables(instruction: usize) -> bool {
    (FIRST.load(Ordering::Relaxed)..LAST.load(Ordering::Relaxed)).contains(&instruction)
}

/// Installs the signal handler. Returns `false` if that fails, or if the interrupted instruction is not known on this
/// processor.
fn set_handler() -> bool {
    // SAFETY: a `sigaction` of zeros is valid; the function has the arguments of SA_SIGINFO.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as unsafe extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        let set = libc::sigaction(SIGNAL, &action, std::ptr::null_mut()) == 0;
        set && cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
    }
}

/// Returns the address of the interrupted instruction.
///
/// # Safety
/// `context` is the context of a signal.
unsafe fn instruction(context: *const libc::ucontext_t) -> usize {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller guarantees that the memory is valid.
    return unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as usize };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller guarantees that the memory is valid.
    return unsafe { (*context).uc_mcontext.pc as usize };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return context as usize & 0;
}

unsafe extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes the context of this signal; `__errno_location` returns the thread's own errno.
    unsafe {
        if !is_programs_thread() || !is_executables(instruction(context.cast())) {
            return;
        }
        let errno = *libc::__errno_location();
        handlers::run_interrupting();
        *libc::__errno_location() = errno;
    }
}

/// Polls for messages until the library has been finalized.
fn watch(descriptor: c_int) {
    block_signals();
    loop {
        let due = handlers::are_due();
        if due && CAN.load(Ordering::Relaxed) && !sleeps() {
            // SAFETY: the program's thread has started this one, and the process ends when it ends.
            unsafe { libc::pthread_kill(THREAD.load(Ordering::Relaxed) as _, SIGNAL) };
        }
        let mut readable = libc::pollfd {
            fd: descriptor,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the array has one entry.
        let ready = unsafe { libc::poll(&mut readable, 1, if due { AGAIN } else { -1 }) };
        if ready <= 0 {
            continue;
        }
        let mut code = rg::OK;
        handlers::in_between(|| {
            // SAFETY: the calls take plain values only.
            unsafe {
                code = rg::rg_clear_fd();
                if code == rg::OK {
                    code = rg::rg_progress();
                }
            }
        });
        if code == rg::ERR_STATE {
            return;
        }
    }
}

/// Blocks all signals in this thread: they are for the program's threads.
fn block_signals() {
    // SAFETY: `all` is a local set.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

/// Returns whether the program's thread sleeps in the kernel.
fn sleeps() -> bool {
    let task = TASK.load(Ordering::Relaxed);
    let stat = std::fs::read_to_string(format!("/proc/self/task/{task}/stat")).unwrap_or_default();
    // The name in parentheses may contain anything.
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|rest| rest.starts_with(['S', 'D']))
}
