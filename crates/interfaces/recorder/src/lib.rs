//! libregatta_recorder.so: records the calls of a profiled task to libregatta.so.
//!
//! The launcher sets LD_PRELOAD, so that the loader loads this library before libregatta.so. Calls of the program, and of interfaces
//! that use libregatta.so, then reach the functions here (`wrap/`), which call those of libregatta.so. A task that is not profiled does
//! not load this library, so it has no cost there. The record is a memory-mapped file (`crates/interfaces/record` has its layout), so it
//! survives the task.
//!
//! Hot path: a recorded call reads the clock twice and writes to the thread's own part of the record and to one event. It takes no
//! lock and makes no system call. The exception are requests of receives (`requests.rs`), which are protected by a mutex.

mod events;
mod file;
mod map;
mod modules;
mod names;
mod peers;
mod real;
mod requests;
mod sampler;
mod sequence;
mod span;
mod thread;
mod wrap;

use std::sync::atomic::Ordering::Relaxed;

use regatta_record::head;

/// Makes the loader call `start` before the program begins.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    let Some(wanted) = file::Settings::read() else {
        return;
    };
    if let Err(problem) = file::open(&wanted) {
        file::complain(&problem);
        return;
    }
    let Some(map) = map::map() else { return };
    if sampler::start(wanted.period) {
        map[head::PERIOD].store(wanted.period, Relaxed);
    }
    // SAFETY: both functions stay valid as long as the process runs.
    unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
        libc::atexit(end);
    }
    modules::note(map);
    file::begin(map);
    // Claims the main thread's part now, so that its life begins with the program.
    thread::part(map);
}

/// Ends recording in a forked child, which is not the task.
extern "C" fn in_child() {
    map::forget();
}

/// Completes the record when the process exits.
extern "C" fn end() {
    let Some(map) = map::map() else { return };
    modules::note(map);
    file::note_processor(map);
    map[head::ENDED].store(map::now(), Relaxed);
    // Removes the record of a short command that a task has run, such as a shell.
    if map[head::TASK].load(Relaxed) == 0 && map[head::SAMPLES].load(Relaxed) < WORTH_KEEPING {
        file::remove();
    }
}

/// Minimum number of samples to keep the record of a process that is not a task.
const WORTH_KEEPING: u64 = 10;
