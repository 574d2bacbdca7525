//! `gopf`: a reduction by a function of the program.

use std::ffi::{c_int, c_long, c_void};

use crate::error::{Answer, EQHND, EQLEN, Fault, check, value_or_errno, value_or_exit};
use crate::forms::{Argument, to_fortran};
use crate::handlers::around;
use crate::rg;
use crate::send::length;
use crate::world::global_group;

/// A program's function: combines the second memory into the first.
pub type Function = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_long;

/// Combines one contribution with another by the program's function, which `argument` points to.
unsafe extern "C" fn combine(
    from: *const c_void,
    into: *mut c_void,
    _: usize,
    argument: *mut c_void,
) {
    // SAFETY: `reduce` below has put it there, and waits until no more is combined.
    let function = unsafe { *argument.cast::<Function>() };
    // SAFETY: the program's function; it has the lengths that its program gives to all nodes.
    unsafe { function(into, from.cast_mut()) };
}

/// # Safety
/// `memory` has `count` bytes, and the function combines as many.
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
    // SAFETY: the function stays where it is until the operator is freed below.
    check(unsafe { rg::rg_op_create(Some(combine), (&raw mut function).cast(), 1, &mut op) })?;
    let kind = rg::bytes(length.max(1) as c_int);
    let input = rg::IN_PLACE as *const c_void;
    let elements = usize::from(length > 0);
    // SAFETY: the caller's.
    let reduced = check(unsafe { rg::rg_allreduce(input, memory, elements, kind, op, group) });
    // SAFETY: a plain call.
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
    // SAFETY: the C contract: so many bytes, and a function that combines as many.
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
    // SAFETY: as above.
    value_or_errno(around(|| unsafe { reduce(memory, count, function) }))
}

/// NX has this name in C as well, for functions that are written in Fortran: it is that of Fortran's own call.
#[unsafe(no_mangle)]
unsafe extern "C" fn gopf_(
    memory: *mut c_void,
    count: *const c_int,
    _: *mut c_void,
    function: Option<Function>,
) -> c_int {
    // SAFETY: Fortran's contract: as above, with the number by reference.
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
    // SAFETY: as above.
    let answer = around(|| unsafe { reduce(memory, c_long::take(count), function) });
    to_fortran(value_or_errno(answer))
}
