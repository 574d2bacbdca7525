//! Attributes of datatypes.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::abi::*;
use crate::arguments::Out;
use crate::attributes;
use crate::datatype::{Type, get};
use crate::error::Result;

pub unsafe fn type_create_keyval(
    type_copy_attr_fn: Type_copy_attr_function,
    type_delete_attr_fn: Type_delete_attr_function,
    type_keyval: Out<c_int>,
    extra_state: *mut c_void,
) -> Result {
    let key = attributes::create(type_copy_attr_fn, type_delete_attr_fn, extra_state)?;
    type_keyval.put(key);
    Ok(())
}

pub fn type_free_keyval(type_keyval: Out<c_int>) -> Result {
    attributes::free::<Datatype>(type_keyval.get())?;
    type_keyval.put(KEYVAL_INVALID);
    Ok(())
}

pub unsafe fn type_set_attr(
    datatype: Datatype,
    type_keyval: c_int,
    attribute_val: *mut c_void,
) -> Result {
    let found = get(datatype)?;
    // SAFETY: the program guarantees that its callbacks may be called.
    unsafe { (found.attributes).set(datatype, type_keyval, attribute_val) }
}

pub fn type_get_attr(
    found: Arc<Type>,
    type_keyval: c_int,
    attribute_val: Out<*mut c_void>,
    flag: Out<c_int>,
) -> Result {
    let value = found.attributes.get(type_keyval)?;
    flag.put(c_int::from(value.is_some()));
    if let Some(value) = value {
        attribute_val.put(value);
    }
    Ok(())
}

pub unsafe fn type_delete_attr(datatype: Datatype, type_keyval: c_int) -> Result {
    let found = get(datatype)?;
    // SAFETY: the program guarantees that its callbacks may be called.
    unsafe { found.attributes.delete(datatype, type_keyval) }
}
