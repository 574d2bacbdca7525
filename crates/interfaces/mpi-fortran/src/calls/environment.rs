//! Initialization of MPI, before which the facts about Fortran are set.

use std::ffi::c_int;
use std::ptr::null_mut;

use crate::{Errhandler, Info, Session, facts, finish};

pub unsafe fn init(call: crate::Init, ierror: *mut c_int) {
    facts::set();
    // SAFETY: C allows null pointers, and by the Fortran contract the argument is valid.
    unsafe { finish(ierror, call(null_mut(), null_mut())) };
}

pub unsafe fn init_thread(
    call: crate::Init_thread,
    required: *mut c_int,
    provided: *mut c_int,
    ierror: *mut c_int,
) {
    facts::set();
    // SAFETY: C allows null pointers, and by the Fortran contract the arguments are valid.
    unsafe { finish(ierror, call(null_mut(), null_mut(), *required, provided)) };
}

pub unsafe fn session_init(
    call: crate::Session_init,
    info: *mut c_int,
    errhandler: *mut c_int,
    session: *mut c_int,
    ierror: *mut c_int,
) {
    facts::set();
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe {
        let mut made = Session::of(0x120);
        let result = call(Info::of(*info), Errhandler::of(*errhandler), &mut made);
        *session = made.to_int();
        finish(ierror, result);
    }
}
