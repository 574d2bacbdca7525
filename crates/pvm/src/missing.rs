//! What PVM has and this library has not yet: each says so, and none pretends.

use std::ffi::{c_char, c_int};

use crate::machine::HostInfo;
use crate::message::{codes, error};

/// Become the task that starts daemons for the machine.
#[unsafe(no_mangle)]
extern "C" fn pvm_reg_hoster() -> c_int {
    error::result("pvm_reg_hoster", codes::NOT_IMPL)
}

/// Become the task that decides where tasks are started.
#[unsafe(no_mangle)]
extern "C" fn pvm_reg_rm(_hosts: *mut *mut HostInfo) -> c_int {
    error::result("pvm_reg_rm", codes::NOT_IMPL)
}

/// Become the task that gets the events of others.
#[unsafe(no_mangle)]
extern "C" fn pvm_reg_tracer(
    _context: c_int,
    _code: c_int,
    _output_context: c_int,
    _output_code: c_int,
    _mask: *mut c_char,
    _buffer: c_int,
    _options: c_int,
) -> c_int {
    error::result("pvm_reg_tracer", codes::NOT_IMPL)
}

/// Ask a daemon about itself.
#[unsafe(no_mangle)]
extern "C" fn pvm_tickle(
    _count: c_int,
    _arguments: *mut c_int,
    _answers: *mut c_int,
    _answer: *mut c_int,
) -> c_int {
    error::result("pvm_tickle", codes::NOT_IMPL)
}
