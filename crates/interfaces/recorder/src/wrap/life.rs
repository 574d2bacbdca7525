//! Joining and leaving.

use std::ffi::{c_char, c_int};
use std::sync::atomic::Ordering::Relaxed;

use regatta_abi::OK;
use regatta_record::head;

use crate::map::{map, now};
use crate::real::real;
use crate::wrap::wrap;
use crate::{file, modules, peers};

/// The process is a task, if it was none.
fn joined() {
    // SAFETY: takes nothing.
    let task = unsafe { real!(rg_tid()) };
    if task < 0 {
        return;
    }
    peers::joined();
    let Some(map) = map() else { return };
    modules::note(map);
    if map[head::JOINED].load(Relaxed) == 0 {
        map[head::JOINED].store(now(), Relaxed);
    }
    map[head::TASK].store(task as u64 + 1, Relaxed);
    map[head::LEFT].store(0, Relaxed);
}

wrap! {
    fn rg_init() note |_span, result| {
        if result == OK {
            joined();
        }
    }
    fn rg_enter(job: *const c_char, flags: c_int) note |_span, result| {
        if result == OK {
            joined();
        }
    }
    fn rg_may_end(may_end: c_int)
    fn rg_halt()
    fn rg_abort(code: c_int)
    fn rg_finalize() note |_span, result| {
        if let (OK, Some(map)) = (result, map()) {
            modules::note(map);
            file::note_processor(map);
            map[head::LEFT].store(now(), Relaxed);
        }
    }
}
