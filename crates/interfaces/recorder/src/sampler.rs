//! Sampling profiler: records the call or the code address that runs after each period of processor time.
//!
//! A POSIX timer of the process's processor time sends SIGPROF. Unlike an interval timer it does not survive an exec. A sleeping process
//! gets no signals.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use regatta_record::{SAMPLES, SAMPLES_AT, call, head, thread};

use crate::file::note_processor;
use crate::map::{Map, add, map};
use crate::thread as own;

/// Maximum number of slots that are tried for an address.
const PROBES: usize = 32;

/// Starts sampling. Returns `false` if that is not possible, or if the program has a handler for SIGPROF.
pub(crate) fn start(period: u64) -> bool {
    if period == 0 {
        return false;
    }
    // SAFETY: all zeros are a valid `sigaction`.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only reads the current action, into a valid struct.
    unsafe { libc::sigaction(libc::SIGPROF, std::ptr::null(), &mut before) };
    if before.sa_sigaction != libc::SIG_DFL {
        return false;
    }
    // SAFETY: all zeros are a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = sampled;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the handler makes only calls that are async-signal-safe, and does not change errno.
    if unsafe { libc::sigaction(libc::SIGPROF, &action, std::ptr::null_mut()) } != 0 {
        return false;
    }
    // SAFETY: all zeros are a valid `sigevent`.
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_SIGNAL;
    event.sigev_signo = libc::SIGPROF;
    let mut timer: libc::timer_t = std::ptr::null_mut();
    let clock = libc::CLOCK_PROCESS_CPUTIME_ID;
    // SAFETY: `event` and `timer` are valid.
    if unsafe { libc::timer_create(clock, &mut event, &mut timer) } != 0 {
        return false;
    }
    let every = libc::timespec {
        tv_sec: (period / 1_000_000_000) as libc::time_t,
        tv_nsec: (period % 1_000_000_000) as libc::c_long,
    };
    let times = libc::itimerspec {
        it_interval: every,
        it_value: every,
    };
    // SAFETY: the timer exists, and `times` is valid.
    unsafe { libc::timer_settime(timer, 0, &times, std::ptr::null_mut()) == 0 }
}

extern "C" fn sampled(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(map) = map() else { return };
    if map[head::OFF_SINCE].load(Relaxed) != 0 {
        return;
    }
    map[head::SAMPLES].fetch_add(1, Relaxed);
    note_processor(map);
    if let Some(part) = own::part_there() {
        let current = map[part + thread::CURRENT].load(Relaxed) as usize;
        if current != 0 {
            let at = part + thread::CALLS + (current - 1) * call::WORDS;
            add(&map[at + call::BUSY], 1);
            return;
        }
    }
    // SAFETY: the kernel passes a `ucontext_t` to a handler with SA_SIGINFO.
    let address = unsafe { address(&*context.cast::<libc::ucontext_t>()) };
    if !count(map, address) {
        map[head::SAMPLES_LOST].fetch_add(1, Relaxed);
    }
}

#[cfg(target_arch = "x86_64")]
fn address(context: &libc::ucontext_t) -> u64 {
    context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64
}

#[cfg(target_arch = "aarch64")]
fn address(context: &libc::ucontext_t) -> u64 {
    context.uc_mcontext.pc
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn address(_: &libc::ucontext_t) -> u64 {
    0
}

/// Counts a sample at an address. Returns `false` if there is no slot for it. Several threads may call this at the same time.
fn count(map: Map, address: u64) -> bool {
    let first = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    for number in (first..first + PROBES).map(|number| number % SAMPLES) {
        let at = SAMPLES_AT + 2 * number;
        let known = match map[at].load(Relaxed) {
            0 => match map[at].compare_exchange(0, address, AcqRel, Relaxed) {
                Ok(_) => address,
                Err(other) => other,
            },
            known => known,
        };
        if known == address {
            map[at + 1].fetch_add(1, Relaxed);
            return true;
        }
    }
    false
}
