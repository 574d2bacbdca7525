//! Operators of programs. C calls their functions with the address of a handle, whose lower half is Fortran's number.

use std::ffi::{c_int, c_void};

use crate::{Op, User_function, finish};

pub unsafe fn op_create(
    call: crate::Op_create,
    user_fn: *const c_void,
    commute: *mut c_int,
    op: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe { create(call, user_fn, commute, op, ierror) };
}

pub unsafe fn op_create_c(
    call: crate::Op_create_c,
    user_fn: *const c_void,
    commute: *mut c_int,
    op: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: by the Fortran contract the arguments are valid.
    unsafe { create(call, user_fn, commute, op, ierror) };
}

unsafe fn create(
    call: unsafe extern "C" fn(User_function, c_int, *mut Op) -> c_int,
    user_fn: *const c_void,
    commute: *mut c_int,
    op: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: the caller guarantees valid pointers.
    unsafe {
        let mut made = Op::of(0x20);
        let result = call(user_fn, c_int::from(*commute != 0), &mut made);
        *op = made.to_int();
        finish(ierror, result);
    }
}
