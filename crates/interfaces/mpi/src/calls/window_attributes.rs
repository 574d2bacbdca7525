//! Attributes and error handlers of windows.

use std::ffi::{c_int, c_void};

use super::errhandlers::{not_none, raised};
use crate::abi::*;
use crate::attributes::{self, CopyFunction, DeleteFunction};
use crate::errhandler::{self, Function, Of};
use crate::error::{Object, Result, not_null};
use crate::window::{Facts, get};

/// The value of a predefined attribute. They stay as long as the window.
fn predefined(facts: &Facts, keyval: c_int) -> Option<*mut c_void> {
    let address = |value: *const c_int| value.cast_mut().cast::<c_void>();
    Some(match keyval {
        WIN_BASE => facts.base as *mut c_void,
        WIN_SIZE => (&raw const facts.size).cast_mut().cast(),
        WIN_DISP_UNIT => address(&facts.unit),
        WIN_CREATE_FLAVOR => address(&facts.flavor),
        WIN_MODEL => address(&facts.model),
        _ => return None,
    })
}

pub unsafe fn win_create_keyval(
    win_copy_attr_fn: Win_copy_attr_function,
    win_delete_attr_fn: Win_delete_attr_function,
    win_keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Result {
    not_null(win_keyval, "win_keyval")?;
    let copy: CopyFunction<Win> = win_copy_attr_fn;
    let delete: DeleteFunction<Win> = win_delete_attr_fn;
    // SAFETY: the caller's pointer.
    unsafe { *win_keyval = attributes::create::<Win>(copy, delete, extra_state)? };
    Ok(())
}

pub unsafe fn win_free_keyval(win_keyval: *mut c_int) -> Result {
    not_null(win_keyval, "win_keyval")?;
    // SAFETY: the caller's pointer.
    unsafe {
        attributes::free::<Win>(*win_keyval)?;
        *win_keyval = KEYVAL_INVALID;
    }
    Ok(())
}

pub unsafe fn win_get_attr(
    win: Win,
    win_keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Result {
    let window = get(win)?;
    not_null(attribute_val, "attribute_val")?;
    not_null(flag, "flag")?;
    let value = match predefined(&window.facts, win_keyval) {
        Some(value) => Some(value),
        None => window.attributes.get(win_keyval)?,
    };
    // SAFETY: the caller's pointers; the first one is to a pointer.
    unsafe {
        *flag = c_int::from(value.is_some());
        if let Some(value) = value {
            attribute_val.cast::<*mut c_void>().write_unaligned(value);
        }
    }
    Ok(())
}

pub unsafe fn win_set_attr(win: Win, win_keyval: c_int, attribute_val: *mut c_void) -> Result {
    let window = get(win)?;
    // SAFETY: the program's functions for its attributes.
    unsafe { window.attributes.set(win, win_keyval, attribute_val) }
}

pub unsafe fn win_delete_attr(win: Win, win_keyval: c_int) -> Result {
    let window = get(win)?;
    // SAFETY: the program's functions for its attributes.
    unsafe { window.attributes.delete(win, win_keyval) }
}

pub unsafe fn win_create_errhandler(
    win_errhandler_fn: Win_errhandler_function,
    errhandler: *mut Errhandler,
) -> Result {
    not_none(win_errhandler_fn.is_some(), "win_errhandler_fn")?;
    not_null(errhandler, "errhandler")?;
    // SAFETY: the caller's pointer.
    unsafe { *errhandler = errhandler::make(Function::Win(win_errhandler_fn))? };
    Ok(())
}

pub unsafe fn win_set_errhandler(win: Win, errhandler: Errhandler) -> Result {
    get(win)?.errhandler.set(errhandler, Of::Win)
}

pub unsafe fn win_get_errhandler(win: Win, errhandler: *mut Errhandler) -> Result {
    let window = get(win)?;
    not_null(errhandler, "errhandler")?;
    // SAFETY: the caller's pointer.
    unsafe { *errhandler = window.errhandler.give() };
    Ok(())
}

pub unsafe fn win_call_errhandler(win: Win, errorcode: c_int) -> Result {
    let window = get(win)?;
    let text = raised(errorcode)?;
    errhandler::call(&window.errhandler, Object::Win(win), errorcode, &text);
    Ok(())
}
