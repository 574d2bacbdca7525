//! Attributes of datatypes.

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::attributes;
use crate::datatype::get;
use crate::error::{Result, not_null};

pub unsafe fn type_create_keyval(
    type_copy_attr_fn: Type_copy_attr_function,
    type_delete_attr_fn: Type_delete_attr_function,
    type_keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Result {
    not_null(type_keyval, "type_keyval")?;
    let key = attributes::create(type_copy_attr_fn, type_delete_attr_fn, extra_state)?;
    // SAFETY: the caller's pointer.
    unsafe { *type_keyval = key };
    Ok(())
}

pub unsafe fn type_free_keyval(type_keyval: *mut c_int) -> Result {
    not_null(type_keyval, "type_keyval")?;
    // SAFETY: the caller's pointer.
    unsafe {
        attributes::free::<Datatype>(*type_keyval)?;
        *type_keyval = KEYVAL_INVALID;
    }
    Ok(())
}

pub unsafe fn type_set_attr(
    datatype: Datatype,
    type_keyval: c_int,
    attribute_val: *mut c_void,
) -> Result {
    let found = get(datatype)?;
    // SAFETY: the program's functions may be called.
    unsafe { (found.attributes).set(datatype, type_keyval, attribute_val) }
}

pub unsafe fn type_get_attr(
    datatype: Datatype,
    type_keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Result {
    let found = get(datatype)?;
    not_null(attribute_val, "attribute_val")?;
    not_null(flag, "flag")?;
    let value = found.attributes.get(type_keyval)?;
    // SAFETY: the caller's pointers; the first is one to a pointer.
    unsafe {
        *flag = c_int::from(value.is_some());
        if let Some(value) = value {
            *attribute_val.cast::<*mut c_void>() = value;
        }
    }
    Ok(())
}

pub unsafe fn type_delete_attr(datatype: Datatype, type_keyval: c_int) -> Result {
    let found = get(datatype)?;
    // SAFETY: the program's functions may be called.
    unsafe { found.attributes.delete(datatype, type_keyval) }
}
