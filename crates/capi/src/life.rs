//! Joining and leaving; time.

use std::ffi::{c_char, c_int};

use crate::error::answer;

#[unsafe(no_mangle)]
extern "C" fn rg_init() -> c_int {
    answer(regatta_process::init())
}

#[unsafe(no_mangle)]
extern "C" fn rg_finalize() -> c_int {
    answer(regatta_process::finalize())
}

#[unsafe(no_mangle)]
extern "C" fn rg_initialized() -> c_int {
    regatta_process::is_initialized() as c_int
}

#[unsafe(no_mangle)]
extern "C" fn rg_version() -> *const c_char {
    concat!("regatta ", env!("CARGO_PKG_VERSION"), "\0")
        .as_ptr()
        .cast()
}

#[unsafe(no_mangle)]
extern "C" fn rg_time() -> f64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the struct just made.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}
