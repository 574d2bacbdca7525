//! Attributes and error handlers of windows.

use std::ffi::{c_int, c_void};

use super::errhandlers::{not_none, raised};
use crate::abi::*;
use crate::arguments::Out;
use crate::attributes::{self, CopyFunction, DeleteFunction};
use crate::errhandler::{self, Function, Of};
use crate::error::{Object, Result};
use crate::window::{Facts, Window};

/// Returns the value of a predefined attribute, which stays valid as long as the window. `None` if the key is not
/// predefined.
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
    win_keyval: Out<c_int>,
    extra_state: *mut c_void,
) -> Result {
    let copy: CopyFunction<Win> = win_copy_attr_fn;
    let delete: DeleteFunction<Win> = win_delete_attr_fn;
    win_keyval.put(attributes::create::<Win>(copy, delete, extra_state)?);
    Ok(())
}

pub unsafe fn win_free_keyval(win_keyval: Out<c_int>) -> Result {
    attributes::free::<Win>(win_keyval.get())?;
    win_keyval.put(KEYVAL_INVALID);
    Ok(())
}

pub unsafe fn win_get_attr(
    window: &Window,
    win_keyval: c_int,
    attribute_val: Out<*mut c_void>,
    flag: Out<c_int>,
) -> Result {
    let value = match predefined(&window.facts, win_keyval) {
        Some(value) => Some(value),
        None => window.attributes.get(win_keyval)?,
    };
    flag.put(c_int::from(value.is_some()));
    if let Some(value) = value {
        attribute_val.put(value);
    }
    Ok(())
}

pub unsafe fn win_set_attr(
    window: &Window,
    win_keyval: c_int,
    attribute_val: *mut c_void,
) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    unsafe {
        window
            .attributes
            .set(window.handle, win_keyval, attribute_val)
    }
}

pub unsafe fn win_delete_attr(window: &Window, win_keyval: c_int) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    unsafe { window.attributes.delete(window.handle, win_keyval) }
}

pub fn win_create_errhandler(
    win_errhandler_fn: Win_errhandler_function,
    errhandler: Out<Errhandler>,
) -> Result {
    not_none(win_errhandler_fn.is_some(), "win_errhandler_fn")?;
    errhandler.put(errhandler::make(Function::Win(win_errhandler_fn))?);
    Ok(())
}

pub fn win_set_errhandler(window: &Window, errhandler: Errhandler) -> Result {
    window.errhandler.set(errhandler, Of::Win)
}

pub fn win_get_errhandler(window: &Window, errhandler: Out<Errhandler>) -> Result {
    errhandler.put(window.errhandler.give());
    Ok(())
}

pub fn win_call_errhandler(window: &Window, errorcode: c_int) -> Result {
    let text = raised(errorcode)?;
    errhandler::call(
        &window.errhandler,
        Object::Win(window.handle),
        errorcode,
        &text,
    );
    Ok(())
}
