//! Stands before libregatta.so in a task that is profiled, and records its calls.
//!
//! The launcher has the loader load this library first (LD_PRELOAD), so calls of the program, and of interfaces over
//! libregatta.so, come to the functions here (`wrap/`), which call those of libregatta.so. A task that is not profiled does not have this
//! library and pays nothing. The record goes to a file that is mapped (`crates/interfaces/record` has its layout), so it survives the task.
//!
//! Hot path: a recorded call reads the clock twice and writes to the thread's own part of the record and to one event. It takes no
//! lock and makes no system call, but for requests of receives (`requests.rs`), which are behind a mutex.

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

/// Called by the loader, before the program begins.
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
    // SAFETY: both functions live as long as the process.
    unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
        libc::atexit(end);
    }
    modules::note(map);
    file::begin(map);
    // The part of the first thread begins with the program.
    thread::part(map);
}

/// A forked child is not the task: its calls are not recorded.
extern "C" fn in_child() {
    map::forget();
}

/// The process ends by itself.
extern "C" fn end() {
    let Some(map) = map::map() else { return };
    modules::note(map);
    file::note_processor(map);
    map[head::ENDED].store(map::now(), Relaxed);
    // A command that a task has run, such as a shell.
    if map[head::TASK].load(Relaxed) == 0 && map[head::SAMPLES].load(Relaxed) < WORTH_KEEPING {
        file::remove();
    }
}

/// Samples from which on the record of a process that is no task is kept.
const WORTH_KEEPING: u64 = 10;
