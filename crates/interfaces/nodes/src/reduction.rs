//! Reductions by functions of the program, whose result all members of a group get.

use std::ffi::{c_int, c_void};

use crate::fault::{Fault, checked};
use crate::own::Own;
use crate::rg;

/// The program's function. It combines the second item into the first.
pub type Function = unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int;

/// The one Regatta operator that serves for all functions, and the function that it calls at present.
#[derive(Clone, Copy)]
struct Combining {
    operator: Option<rg::Op>,
    function: Option<Function>,
    size: c_int,
}

static COMBINING: Own<Combining> = Own::new(Combining {
    operator: None,
    function: None,
    size: 0,
});

/// Calls the program's function for each item.
///
/// # Safety
/// The same as for `rg_combine`.
unsafe extern "C" fn combine(
    input: *const c_void,
    inout: *mut c_void,
    count: usize,
    _: *mut c_void,
) {
    let Combining { function, size, .. } = *COMBINING.get();
    let Some(function) = function else {
        return;
    };
    for item in 0..count {
        let at = item * size as usize;
        // SAFETY: both arrays have `count` items of this size, for which the program has passed the function. It only
        // reads its second item.
        unsafe { function(inout.byte_add(at), input.cast_mut().byte_add(at), size) };
    }
}

fn operator() -> Result<rg::Op, Fault> {
    if let Some(operator) = COMBINING.get().operator {
        return Ok(operator);
    }
    let mut operator = rg::SUM;
    // SAFETY: `combine` has the right type, and the result is writable.
    checked(unsafe { rg::rg_op_create(Some(combine), std::ptr::null_mut(), 1, &mut operator) })?;
    COMBINING.get().operator = Some(operator);
    Ok(operator)
}

/// Combines the items of all members element by element; all members get the results.
///
/// # Safety
/// `buf` has `items` items of `size` bytes, and the function combines such items.
pub unsafe fn reduce(
    buf: *mut c_void,
    function: Option<Function>,
    size: c_int,
    items: c_int,
    group: rg::Group,
) -> Result<(), Fault> {
    let Ok(count) = usize::try_from(items) else {
        return Err(Fault::says(format!(
            "{items} is not a valid number of items"
        )));
    };
    if size <= 0 || size > c_int::MAX - rg::bytes(0) {
        return Err(Fault::says(format!(
            "{size} is not a valid size of an item"
        )));
    }
    if function.is_none() {
        return Err(Fault::says("the function is NULL"));
    }
    let operator = operator()?;
    let combining = COMBINING.get();
    combining.function = function;
    combining.size = size;
    let in_place = std::ptr::without_provenance(rg::IN_PLACE);
    // SAFETY: the caller guarantees the items. No reference into the state is held.
    checked(unsafe { rg::rg_allreduce(in_place, buf, count, rg::bytes(size), operator, group) })
}
