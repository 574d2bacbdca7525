//! The tool interface: performance variables.

use std::ffi::{c_char, c_int, c_void};

use crate::abi::*;
use crate::error::Result;
use crate::tools::performance::{self, ALL, Act, session as find};
use crate::tools::{self, give, give_text, given, require};

pub unsafe fn t_pvar_get_num(num_pvar: *mut c_int) -> Result {
    require()?;
    given(num_pvar, "num_pvar")?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *num_pvar = ALL.len() as c_int };
    Ok(())
}

pub unsafe fn t_pvar_get_info(
    pvar_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    var_class: *mut c_int,
    datatype: *mut Datatype,
    enumtype: *mut T_enum,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
    readonly: *mut c_int,
    continuous: *mut c_int,
    atomic: *mut c_int,
) -> Result {
    require()?;
    let it = &ALL[tools::index(pvar_index, ALL.len(), "index of a performance variable")?];
    let is_continuous = c_int::from(it.is_continuous());
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe {
        give_text(it.name, name, name_len);
        give(verbosity, T_VERBOSITY_USER_BASIC);
        give(var_class, it.class());
        give(datatype, UNSIGNED_LONG_LONG);
        give(enumtype, T_ENUM_NULL);
        give_text(it.description, desc, desc_len);
        give(bind, T_BIND_NO_OBJECT);
        give(readonly, is_continuous);
        give(continuous, is_continuous);
        give(atomic, 1 - is_continuous);
    }
    Ok(())
}

pub unsafe fn t_pvar_get_index(
    name: *const c_char,
    var_class: c_int,
    pvar_index: *mut c_int,
) -> Result {
    require()?;
    given(pvar_index, "pvar_index")?;
    // SAFETY: the caller guarantees that the text is NUL-terminated.
    let name = unsafe { tools::text(name, "name")? };
    let found = ALL
        .iter()
        .position(|it| it.name.as_bytes() == name.to_bytes() && it.class() == var_class);
    let found = found.ok_or_else(|| tools::no_name("performance variable of this class", name))?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *pvar_index = found as c_int };
    Ok(())
}

pub unsafe fn t_pvar_session_create(session: *mut T_pvar_session) -> Result {
    require()?;
    given(session, "session")?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *session = performance::begin()? };
    Ok(())
}

pub unsafe fn t_pvar_session_free(session: *mut T_pvar_session) -> Result {
    require()?;
    given(session, "session")?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe {
        performance::end(*session)?;
        *session = T_PVAR_SESSION_NULL;
    }
    Ok(())
}

pub unsafe fn t_pvar_handle_alloc(
    session: T_pvar_session,
    pvar_index: c_int,
    _obj_handle: *mut c_void,
    handle: *mut T_pvar_handle,
    count: *mut c_int,
) -> Result {
    require()?;
    let session = find(session)?;
    given(handle, "handle")?;
    given(count, "count")?;
    let index = tools::index(pvar_index, ALL.len(), "index of a performance variable")?;
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe { (*handle, *count) = (session.open(index), 1) };
    Ok(())
}

pub unsafe fn t_pvar_handle_free(session: T_pvar_session, handle: *mut T_pvar_handle) -> Result {
    require()?;
    let session = find(session)?;
    given(handle, "handle")?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe {
        session.close(*handle)?;
        *handle = T_PVAR_HANDLE_NULL;
    }
    Ok(())
}

pub unsafe fn t_pvar_start(session: T_pvar_session, handle: T_pvar_handle) -> Result {
    require()?;
    find(session)?.act(handle, Act::Start)
}

pub unsafe fn t_pvar_stop(session: T_pvar_session, handle: T_pvar_handle) -> Result {
    require()?;
    find(session)?.act(handle, Act::Stop)
}

pub unsafe fn t_pvar_reset(session: T_pvar_session, handle: T_pvar_handle) -> Result {
    require()?;
    find(session)?.act(handle, Act::Reset)
}

pub unsafe fn t_pvar_read(
    session: T_pvar_session,
    handle: T_pvar_handle,
    buf: *mut c_void,
) -> Result {
    require()?;
    let value = find(session)?.read(handle)?;
    given(buf, "buf")?;
    // SAFETY: the caller guarantees that the buffer is for a value.
    unsafe { buf.cast::<u64>().write_unaligned(value) };
    Ok(())
}

pub unsafe fn t_pvar_readreset(
    session: T_pvar_session,
    handle: T_pvar_handle,
    buf: *mut c_void,
) -> Result {
    require()?;
    let session = find(session)?;
    given(buf, "buf")?;
    // SAFETY: the caller guarantees that the buffer is for a value.
    unsafe {
        buf.cast::<u64>()
            .write_unaligned(session.read_and_reset(handle)?)
    };
    Ok(())
}

pub unsafe fn t_pvar_write(
    session: T_pvar_session,
    handle: T_pvar_handle,
    buf: *const c_void,
) -> Result {
    require()?;
    let session = find(session)?;
    given(buf, "buf")?;
    // SAFETY: the caller guarantees that the value is valid.
    session.write(handle, unsafe { buf.cast::<u64>().read_unaligned() })
}
