//! The tool interface: initialization and finalization, control variables, categories. Output pointers may be null if
//! the caller does not need the result.

use std::ffi::{c_char, c_int, c_void};

use crate::abi::*;
use crate::error::Result;
use crate::tools::{self, CATEGORIES, Category, control, give, give_text, given, require};

pub unsafe fn t_init_thread(required: c_int, provided: *mut c_int) -> Result {
    given(provided, "provided")?;
    let levels = [
        THREAD_SINGLE,
        THREAD_FUNNELED,
        THREAD_SERIALIZED,
        THREAD_MULTIPLE,
    ];
    let level = levels.into_iter().find(|&level| level >= required);
    tools::enter();
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *provided = level.unwrap_or(THREAD_MULTIPLE) };
    Ok(())
}

pub unsafe fn t_finalize() -> Result {
    tools::leave()
}

pub unsafe fn t_cvar_get_num(num_cvar: *mut c_int) -> Result {
    require()?;
    given(num_cvar, "num_cvar")?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *num_cvar = control::ALL.len() as c_int };
    Ok(())
}

pub unsafe fn t_cvar_get_info(
    cvar_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    datatype: *mut Datatype,
    enumtype: *mut T_enum,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
    scope: *mut c_int,
) -> Result {
    require()?;
    let all = &control::ALL;
    let it = &all[tools::index(cvar_index, all.len(), "index of a control variable")?];
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe {
        give_text(it.name, name, name_len);
        give(verbosity, T_VERBOSITY_USER_BASIC);
        give(datatype, it.datatype());
        give(enumtype, T_ENUM_NULL);
        give_text(it.description, desc, desc_len);
        give(bind, T_BIND_NO_OBJECT);
        give(scope, it.scope);
    }
    Ok(())
}

pub unsafe fn t_cvar_get_index(name: *const c_char, cvar_index: *mut c_int) -> Result {
    require()?;
    given(cvar_index, "cvar_index")?;
    // SAFETY: the caller guarantees that the text is NUL-terminated.
    let name = unsafe { tools::text(name, "name")? };
    let all = &control::ALL;
    let found = all
        .iter()
        .position(|it| it.name.as_bytes() == name.to_bytes());
    let found = found.ok_or_else(|| tools::no_name("control variable", name))?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *cvar_index = found as c_int };
    Ok(())
}

pub unsafe fn t_cvar_handle_alloc(
    cvar_index: c_int,
    _obj_handle: *mut c_void,
    handle: *mut T_cvar_handle,
    count: *mut c_int,
) -> Result {
    require()?;
    given(handle, "handle")?;
    given(count, "count")?;
    let index = tools::index(
        cvar_index,
        control::ALL.len(),
        "index of a control variable",
    )?;
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe { (*handle, *count) = control::open(index)? };
    Ok(())
}

pub unsafe fn t_cvar_handle_free(handle: *mut T_cvar_handle) -> Result {
    require()?;
    given(handle, "handle")?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe {
        control::close(*handle)?;
        *handle = T_CVAR_HANDLE_NULL;
    }
    Ok(())
}

pub unsafe fn t_cvar_read(handle: T_cvar_handle, buf: *mut c_void) -> Result {
    require()?;
    // SAFETY: the caller guarantees that the buffer is valid for its elements.
    unsafe { control::read(handle, buf) }
}

pub unsafe fn t_cvar_write(handle: T_cvar_handle, _buf: *const c_void) -> Result {
    require()?;
    control::write(handle)
}

pub unsafe fn t_category_get_num(num_cat: *mut c_int) -> Result {
    require()?;
    given(num_cat, "num_cat")?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *num_cat = CATEGORIES.len() as c_int };
    Ok(())
}

/// Returns the category with this index.
fn category(index: c_int) -> Result<&'static Category> {
    require()?;
    Ok(&CATEGORIES[tools::index(index, CATEGORIES.len(), "index of a category")?])
}

pub unsafe fn t_category_get_info(
    cat_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    desc: *mut c_char,
    desc_len: *mut c_int,
    num_cvars: *mut c_int,
    num_pvars: *mut c_int,
    num_categories: *mut c_int,
) -> Result {
    let it = category(cat_index)?;
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe {
        give_text(it.name, name, name_len);
        give_text(it.description, desc, desc_len);
        give(num_cvars, it.control as c_int);
        give(num_pvars, it.performance as c_int);
        give(num_categories, 0);
    }
    Ok(())
}

pub unsafe fn t_category_get_index(name: *const c_char, cat_index: *mut c_int) -> Result {
    require()?;
    given(cat_index, "cat_index")?;
    // SAFETY: the caller guarantees that the text is NUL-terminated.
    let name = unsafe { tools::text(name, "name")? };
    let found = CATEGORIES
        .iter()
        .position(|it| it.name.as_bytes() == name.to_bytes());
    let found = found.ok_or_else(|| tools::no_name("category", name))?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *cat_index = found as c_int };
    Ok(())
}

pub unsafe fn t_category_changed(update_number: *mut c_int) -> Result {
    require()?;
    given(update_number, "update_number")?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *update_number = 0 };
    Ok(())
}

/// Writes the numbers from 0 to `count - 1`, at most `len` of them.
unsafe fn numbers(count: usize, len: c_int, indices: *mut c_int) -> Result {
    let count = count.min(usize::try_from(len).unwrap_or(0));
    if count > 0 {
        given(indices, "indices")?;
    }
    for index in 0..count {
        // SAFETY: the caller guarantees that the array has `len` elements.
        unsafe { *indices.add(index) = index as c_int };
    }
    Ok(())
}

pub unsafe fn t_category_get_cvars(cat_index: c_int, len: c_int, indices: *mut c_int) -> Result {
    let count = category(cat_index)?.control;
    // SAFETY: the caller guarantees that the array has this many elements.
    unsafe { numbers(count, len, indices) }
}

pub unsafe fn t_category_get_pvars(cat_index: c_int, len: c_int, indices: *mut c_int) -> Result {
    let count = category(cat_index)?.performance;
    // SAFETY: the caller guarantees that the array has this many elements.
    unsafe { numbers(count, len, indices) }
}

pub unsafe fn t_category_get_categories(
    cat_index: c_int,
    _len: c_int,
    _indices: *mut c_int,
) -> Result {
    category(cat_index).map(drop)
}

pub unsafe fn t_category_get_events(cat_index: c_int, _len: c_int, _indices: *mut c_int) -> Result {
    category(cat_index).map(drop)
}

pub unsafe fn t_category_get_num_events(cat_index: c_int, num_events: *mut c_int) -> Result {
    category(cat_index)?;
    given(num_events, "num_events")?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *num_events = 0 };
    Ok(())
}
