//! Joining and leaving; time.

use std::ffi::{c_char, c_int};

use regatta_abi::{BEGIN, BEGIN_ONLY, LOOK};
use regatta_process::Error;

use crate::error::{answer, argument, fail};
use crate::text::required;

#[unsafe(no_mangle)]
extern "C" fn rg_init() -> c_int {
    answer(regatta_process::init())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_enter(job: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
    let name = unsafe { required(job, "job") };
    let name = name.and_then(|name| {
        let name = name.to_str();
        name.map_err(|_| argument("the name of a job is not UTF-8"))
    });
    let entered = name.and_then(|name| match flags {
        0 | BEGIN => regatta_process::enter_job(name, flags == BEGIN),
        BEGIN_ONLY => regatta_process::begin_job(name),
        LOOK => match regatta_process::job_is_there(name)? {
            true => Ok(()),
            false => Err(Error::Launcher(format!("there is no job {name}"))),
        },
        _ => Err(argument("no such flag")),
    });
    answer(entered)
}

#[unsafe(no_mangle)]
extern "C" fn rg_halt() -> c_int {
    answer(regatta_process::halt())
}

#[unsafe(no_mangle)]
extern "C" fn rg_abort(code: c_int) -> c_int {
    // Uses the low eight bits, as `exit` does.
    match regatta_process::abort(code as u8) {
        Ok(never) => match never {},
        Err(error) => fail(&error),
    }
}

#[unsafe(no_mangle)]
extern "C" fn rg_finalize() -> c_int {
    answer(regatta_process::finalize())
}

#[unsafe(no_mangle)]
extern "C" fn rg_may_end(may_end: c_int) -> c_int {
    answer(regatta_process::set_may_end(may_end != 0))
}

#[unsafe(no_mangle)]
extern "C" fn rg_initialized() -> c_int {
    regatta_process::is_initialized() as c_int
}

#[unsafe(no_mangle)]
extern "C" fn rg_version() -> *const c_char {
    // The race searches the library's file for the second text.
    let version = match cfg!(debug_assertions) {
        true => concat!(
            "regatta ",
            env!("CARGO_PKG_VERSION"),
            "\0built without optimisation\0"
        ),
        false => concat!("regatta ", env!("CARGO_PKG_VERSION"), "\0"),
    };
    version.as_ptr().cast()
}

#[unsafe(no_mangle)]
extern "C" fn rg_time() -> f64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}
