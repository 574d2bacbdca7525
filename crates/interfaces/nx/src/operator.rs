//! `gopf`: a reduction by a function of the program.

use std::ffi::{c_int, c_long, c_void};

use crate::error::{Answer, EQHND, EQLEN, Fault, check, value_or_errno, value_or_exit};
use crate::forms::{Argument, to_fortran};
use crate::handlers::around;
use crate::rg;
use crate::send::length;
use crate::world::global_group;

/// A program's function, which combines the second vector into the first.
pub type Function = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_long;

/// Combines two contributions by the program's function, to which `argument` points.
unsafe extern "C" fn combine(
    from: *const c_void,
    into: *mut c_void,
    _: usize,
    argument: *mut c_void,
) {
    // SAFETY: `reduce` below passes a pointer to the function, which is valid until the reduction is complete.
    let function = unsafe { *argument.cast::<Function>() };
    // SAFETY: the program has passed this function, and all its nodes pass the same length.
    unsafe { function(into, from.cast_mut()) };
}

/// # Safety
/// `memory` has `count` bytes, and the function combines that many.
unsafe fn reduce(memory: *mut c_void, count: c_long, function: Option<Function>) -> Answer {
    let group = global_group()?;
    let length = length(memory, count)?;
    let Some(mut function) = function else {
        return Err(Fault::plain(EQHND));
    };
    if length > MAX_ELEMENT_BYTES {
        return Err(Fault::of(EQLEN, "length", count));
    }
    let mut op = rg::Op { id: 0 };
    // SAFETY: `function` stays in place until the operator is freed below.
    check(unsafe { rg::rg_op_create(Some(combine), (&raw mut function).cast(), 1, &mut op) })?;
    let kind = rg::bytes(length.max(1) as c_int);
    let input = rg::IN_PLACE as *const c_void;
    let elements = usize::from(length > 0);
    // SAFETY: the caller guarantees that the memory is valid.
    let reduced = check(unsafe { rg::rg_allreduce(input, memory, elements, kind, op, group) });
    // SAFETY: the call takes plain values only.
    unsafe { rg::rg_op_free(op) };
    reduced.map(|()| 0)
}

/// Maximum size of an element in Regatta, in bytes.
const MAX_ELEMENT_BYTES: usize = (c_int::MAX - rg::bytes(0)) as usize;

#[unsafe(no_mangle)]
unsafe extern "C" fn gopf(
    memory: *mut c_void,
    count: c_long,
    _: *mut c_void,
    function: Option<Function>,
) -> c_long {
    // SAFETY: by the C contract `memory` has `count` bytes, and the function combines that many.
    value_or_exit(
        "gopf",
        around(|| unsafe { reduce(memory, count, function) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _gopf(
    memory: *mut c_void,
    count: c_long,
    _: *mut c_void,
    function: Option<Function>,
) -> c_long {
    // SAFETY: by the C contract `memory` has `count` bytes, and the function combines that many.
    value_or_errno(around(|| unsafe { reduce(memory, count, function) }))
}

/// Performs `gopf` for Fortran. In NX C programs use this name, too, for functions written in Fortran.
#[unsafe(no_mangle)]
unsafe extern "C" fn gopf_(
    memory: *mut c_void,
    count: *const c_int,
    _: *mut c_void,
    function: Option<Function>,
) -> c_int {
    // SAFETY: by the Fortran contract `memory` has `*count` bytes, and the function combines that many.
    let answer = around(|| unsafe { reduce(memory, c_long::take(count), function) });
    to_fortran(value_or_exit("gopf", answer))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _gopf_(
    memory: *mut c_void,
    count: *const c_int,
    _: *mut c_void,
    function: Option<Function>,
) -> c_int {
    // SAFETY: by the Fortran contract `memory` has `*count` bytes, and the function combines that many.
    let answer = around(|| unsafe { reduce(memory, c_long::take(count), function) });
    to_fortran(value_or_errno(answer))
}
