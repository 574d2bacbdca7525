//! The tool interface: enumerations, events and event sources. There are none, so every index and every handle is
//! invalid.

use std::ffi::{c_char, c_int, c_void};

use crate::abi::*;
use crate::error::Result;
use crate::tools::{self, given, no_handle, require};

/// Returns the error for a handle of this kind, none of which is valid.
fn never(kind: &str) -> Result {
    require()?;
    Err(no_handle(kind))
}

/// Returns the error for an index of this kind, none of which is valid.
fn nothing(index: c_int, kind: &str) -> Result {
    require()?;
    tools::index(index, 0, kind).map(drop)
}

/// Stores 0 as the number of objects.
unsafe fn zero(count: *mut c_int, name: &str) -> Result {
    require()?;
    given(count, name)?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *count = 0 };
    Ok(())
}

pub unsafe fn t_event_get_num(num_events: *mut c_int) -> Result {
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { zero(num_events, "num_events") }
}

pub unsafe fn t_source_get_num(num_sources: *mut c_int) -> Result {
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { zero(num_sources, "num_sources") }
}

pub unsafe fn t_event_get_index(name: *const c_char, _event_index: *mut c_int) -> Result {
    require()?;
    // SAFETY: the caller guarantees that the text is NUL-terminated.
    let name = unsafe { tools::text(name, "name")? };
    Err(tools::no_name("event", name))
}

pub unsafe fn t_enum_get_info(
    _enumtype: T_enum,
    _num: *mut c_int,
    _name: *mut c_char,
    _name_len: *mut c_int,
) -> Result {
    never("enumeration")
}

pub unsafe fn t_enum_get_item(
    _enumtype: T_enum,
    _indx: c_int,
    _value: *mut c_int,
    _name: *mut c_char,
    _name_len: *mut c_int,
) -> Result {
    never("enumeration")
}

pub unsafe fn t_event_callback_get_info(
    _event_registration: T_event_registration,
    _cb_safety: c_int,
    _info_used: *mut Info,
) -> Result {
    never("registration of an event")
}

pub unsafe fn t_event_callback_set_info(
    _event_registration: T_event_registration,
    _cb_safety: c_int,
    _info: Info,
) -> Result {
    never("registration of an event")
}

pub unsafe fn t_event_copy(_event_instance: T_event_instance, _buffer: *mut c_void) -> Result {
    never("event")
}

pub unsafe fn t_event_get_info(
    event_index: c_int,
    _name: *mut c_char,
    _name_len: *mut c_int,
    _verbosity: *mut c_int,
    _array_of_datatypes: *mut Datatype,
    _array_of_displacements: *mut i64,
    _num_elements: *mut c_int,
    _enumtype: *mut T_enum,
    _info: *mut Info,
    _desc: *mut c_char,
    _desc_len: *mut c_int,
    _bind: *mut c_int,
) -> Result {
    nothing(event_index, "index of an event")
}

pub unsafe fn t_event_get_source(
    _event_instance: T_event_instance,
    _source_index: *mut c_int,
) -> Result {
    never("event")
}

pub unsafe fn t_event_get_timestamp(
    _event_instance: T_event_instance,
    _event_timestamp: *mut i64,
) -> Result {
    never("event")
}

pub unsafe fn t_event_handle_alloc(
    event_index: c_int,
    _obj_handle: *mut c_void,
    _info: Info,
    _event_registration: *mut T_event_registration,
) -> Result {
    nothing(event_index, "index of an event")
}

pub unsafe fn t_event_handle_free(
    _event_registration: T_event_registration,
    _user_data: *mut c_void,
    _free_cb_function: T_event_free_cb_function,
) -> Result {
    never("registration of an event")
}

pub unsafe fn t_event_handle_get_info(
    _event_registration: T_event_registration,
    _info_used: *mut Info,
) -> Result {
    never("registration of an event")
}

pub unsafe fn t_event_handle_set_info(
    _event_registration: T_event_registration,
    _info: Info,
) -> Result {
    never("registration of an event")
}

pub unsafe fn t_event_read(
    _event_instance: T_event_instance,
    _element_index: c_int,
    _buffer: *mut c_void,
) -> Result {
    never("event")
}

pub unsafe fn t_event_register_callback(
    _event_registration: T_event_registration,
    _cb_safety: c_int,
    _info: Info,
    _user_data: *mut c_void,
    _event_cb_function: T_event_cb_function,
) -> Result {
    never("registration of an event")
}

pub unsafe fn t_event_set_dropped_handler(
    _event_registration: T_event_registration,
    _dropped_cb_function: T_event_dropped_cb_function,
) -> Result {
    never("registration of an event")
}

pub unsafe fn t_source_get_info(
    source_index: c_int,
    _name: *mut c_char,
    _name_len: *mut c_int,
    _desc: *mut c_char,
    _desc_len: *mut c_int,
    _ordering: *mut c_int,
    _ticks_per_second: *mut i64,
    _max_ticks: *mut i64,
    _info: *mut Info,
) -> Result {
    nothing(source_index, "index of a source")
}

pub unsafe fn t_source_get_timestamp(source_index: c_int, _timestamp: *mut i64) -> Result {
    nothing(source_index, "index of a source")
}
