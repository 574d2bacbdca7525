//! The thread that looks for messages while the program is in no call of NX, and the signal by which it interrupts the program.
//!
//! A handler may send and receive, so it may only run where the program holds no lock of the C library's, such as that of `malloc`: the signal's
//! handler runs it if the interrupted instruction is one of the program's own executable, and leaves it otherwise. Then the thread tries again,
//! unless the program sleeps in the system, which a signal would end. A static program cannot be told from the C library that is in it: there
//! handlers run in calls only.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

use crate::error::{EQNOPROC, Fault, check};
use crate::handlers;
use crate::rg;

/// The signal: by itself it does nothing, and few programs use it.
const SIGNAL: c_int = libc::SIGURG;
/// Milliseconds between two attempts to interrupt.
const AGAIN: c_int = 1;

/// The program's thread, for signals, and for the system.
static THREAD: AtomicU64 = AtomicU64::new(0);
static TASK: AtomicI32 = AtomicI32::new(0);
/// Instructions of the executable.
static FIRST: AtomicUsize = AtomicUsize::new(0);
static LAST: AtomicUsize = AtomicUsize::new(0);
/// The program can be interrupted at all.
static CAN: AtomicBool = AtomicBool::new(false);

/// Whether the caller is the program's thread.
pub fn is_programs_thread() -> bool {
    // SAFETY: a plain question.
    unsafe { libc::pthread_self() as u64 == THREAD.load(Ordering::Relaxed) }
}

/// Starts the thread. The caller is the program's thread from now on.
pub fn start() -> Result<(), Fault> {
    let mut descriptor = -1;
    // SAFETY: plain questions, and a place for the answer.
    unsafe {
        THREAD.store(libc::pthread_self() as u64, Ordering::Relaxed);
        TASK.store(libc::gettid(), Ordering::Relaxed);
        check(rg::rg_fd(&mut descriptor))?;
        libc::dl_iterate_phdr(Some(note_executable), std::ptr::null_mut());
    }
    let own = start as fn() -> Result<(), Fault> as usize;
    CAN.store(!is_executables(own) && set_handler(), Ordering::Relaxed);
    // By its name and its signals it is known as no thread of the program's, which ends without it.
    let thread = std::thread::Builder::new().name("regatta/nx".to_owned());
    let started = thread.spawn(move || watch(descriptor));
    started.map(drop).map_err(|_| Fault::plain(EQNOPROC))
}

/// Notes where the instructions of the executable are: it is the first object that the loader lists.
unsafe extern "C" fn note_executable(
    object: *mut libc::dl_phdr_info,
    _: usize,
    _: *mut c_void,
) -> c_int {
    // SAFETY: the loader's contract: an object with so many headers.
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

/// Installs the signal's handler, if this kind of processor says where it was interrupted.
fn set_handler() -> bool {
    // SAFETY: an action made of zeros is one; the function has the arguments that SA_SIGINFO promises.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as unsafe extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        let set = libc::sigaction(SIGNAL, &action, std::ptr::null_mut()) == 0;
        set && cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
    }
}

/// The instruction that was about to run.
///
/// # Safety
/// It is the context of a signal.
unsafe fn instruction(context: *const libc::ucontext_t) -> usize {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's.
    return unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as usize };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller's.
    return unsafe { (*context).uc_mcontext.pc as usize };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return context as usize & 0;
}

unsafe extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system's contract: the context of this signal; the calling thread's own errno.
    unsafe {
        if !is_programs_thread() || !is_executables(instruction(context.cast())) {
            return;
        }
        let errno = *libc::__errno_location();
        handlers::run_interrupting();
        *libc::__errno_location() = errno;
    }
}

/// Looks for messages as long as the process lives.
fn watch(descriptor: c_int) {
    block_signals();
    loop {
        let due = handlers::are_due();
        if due && CAN.load(Ordering::Relaxed) && !sleeps() {
            // SAFETY: the thread that has started this one; the process ends when it does.
            unsafe { libc::pthread_kill(THREAD.load(Ordering::Relaxed) as _, SIGNAL) };
        }
        let mut readable = libc::pollfd {
            fd: descriptor,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor.
        let ready = unsafe { libc::poll(&mut readable, 1, if due { AGAIN } else { -1 }) };
        if ready <= 0 {
            continue;
        }
        let mut code = rg::OK;
        handlers::in_between(|| {
            // SAFETY: plain calls.
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

/// This thread takes no signal of the program's.
fn block_signals() {
    // SAFETY: a set of our own.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

/// Whether the program's thread sleeps in the system.
fn sleeps() -> bool {
    let task = TASK.load(Ordering::Relaxed);
    let stat = std::fs::read_to_string(format!("/proc/self/task/{task}/stat")).unwrap_or_default();
    // The name in parentheses may hold anything.
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|rest| rest.starts_with(['S', 'D']))
}
