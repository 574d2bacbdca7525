//! Communicators: what they are, what is said of them, and their end.

use std::ffi::{CStr, c_char, c_int};

use crate::abi::*;
use crate::communicator::internal_messages::agree_on_outcome;
use crate::communicator::{self, get, route};
use crate::error::{Error, Result, not_null};
use crate::groups;
use crate::info::{self, Hints};
use crate::text;

pub unsafe fn comm_rank(comm: Comm, rank: *mut c_int) -> Result {
    let route = route(comm)?;
    not_null(rank, "rank")?;
    // SAFETY: the caller's pointer.
    unsafe { *rank = route.rank() };
    Ok(())
}

pub unsafe fn comm_size(comm: Comm, size: *mut c_int) -> Result {
    let route = route(comm)?;
    not_null(size, "size")?;
    // SAFETY: the caller's pointer.
    unsafe { *size = route.size() };
    Ok(())
}

pub unsafe fn comm_test_inter(comm: Comm, flag: *mut c_int) -> Result {
    let comm = get(comm)?;
    not_null(flag, "flag")?;
    // SAFETY: the caller's pointer.
    unsafe { *flag = c_int::from(comm.remote.is_some()) };
    Ok(())
}

/// Why a call is not for a communicator of one side.
pub(crate) fn no_inter() -> Error {
    Error::new(ERR_COMM, "the communicator is no intercommunicator")
}

/// A call that is for communicators of one side alone.
pub(crate) fn no_intra() -> Error {
    let text = "the communicator is an intercommunicator, and the call is not for these";
    Error::new(ERR_COMM, text)
}

pub unsafe fn comm_remote_size(comm: Comm, size: *mut c_int) -> Result {
    let comm = get(comm)?;
    not_null(size, "size")?;
    let remote = comm.remote.as_ref().ok_or_else(no_inter)?;
    // SAFETY: the caller's pointer.
    unsafe { *size = remote.members.len() as c_int };
    Ok(())
}

pub unsafe fn comm_remote_group(comm: Comm, group: *mut Group) -> Result {
    let comm = get(comm)?;
    not_null(group, "group")?;
    let remote = comm.remote.as_ref().ok_or_else(no_inter)?;
    // SAFETY: the caller's pointer.
    unsafe { *group = groups::make(remote.members.clone())? };
    Ok(())
}

pub unsafe fn comm_group(comm: Comm, group: *mut Group) -> Result {
    let comm = get(comm)?;
    not_null(group, "group")?;
    // SAFETY: the caller's pointer.
    unsafe { *group = groups::make(comm.local.clone())? };
    Ok(())
}

pub unsafe fn comm_compare(comm1: Comm, comm2: Comm, result: *mut c_int) -> Result {
    let (first, second) = (get(comm1)?, get(comm2)?);
    not_null(result, "result")?;
    let local = groups::compare(&first.local, &second.local);
    let found = match (&first.remote, &second.remote) {
        _ if comm1 == comm2 => IDENT,
        (None, None) => local,
        // The sides are compared one by one; the less alike decides. The values are in that order.
        (Some(one), Some(other)) => local.max(groups::compare(&one.members, &other.members)),
        _ => UNEQUAL,
    };
    let found = match found {
        IDENT if comm1 != comm2 => CONGRUENT,
        found => found,
    };
    // SAFETY: the caller's pointer.
    unsafe { *result = found };
    Ok(())
}

pub unsafe fn comm_set_name(comm: Comm, comm_name: *const c_char) -> Result {
    let comm = get(comm)?;
    not_null(comm_name, "comm_name")?;
    // SAFETY: the caller's text.
    let name = unsafe { std::ffi::CStr::from_ptr(comm_name) };
    // A name that is too long is cut.
    let most = MAX_OBJECT_NAME as usize - 1;
    let bytes: Vec<u8> = name.to_bytes().iter().copied().take(most).collect();
    comm.set_name(std::ffi::CString::new(bytes).unwrap_or_default());
    Ok(())
}

pub unsafe fn comm_get_name(comm: Comm, comm_name: *mut c_char, resultlen: *mut c_int) -> Result {
    let name = match comm {
        COMM_NULL => c"MPI_COMM_NULL".to_owned(),
        _ => get(comm)?.name(),
    };
    not_null(comm_name, "comm_name")?;
    not_null(resultlen, "resultlen")?;
    // SAFETY: the caller has room for the longest name.
    unsafe { *resultlen = text::give(name.to_bytes(), comm_name, MAX_OBJECT_NAME) };
    Ok(())
}

/// The hints of communicators that mean something; programs are not told of others.
const HINTS: [&CStr; 4] = [
    c"mpi_assert_allow_overtaking",
    c"mpi_assert_exact_length",
    c"mpi_assert_no_any_source",
    c"mpi_assert_no_any_tag",
];

pub unsafe fn comm_set_info(comm: Comm, info: Info) -> Result {
    let comm = get(comm)?;
    comm.set_hints(&info::hints(info)?);
    Ok(())
}

pub unsafe fn comm_get_info(comm: Comm, info_used: *mut Info) -> Result {
    let comm = get(comm)?;
    not_null(info_used, "info_used")?;
    let mut hints = Hints::default();
    hints.set_text(c"mpi_memory_alloc_kinds", "system,mpi");
    hints.merge(&comm.hints().among(&HINTS));
    // SAFETY: the caller's pointer.
    unsafe { *info_used = info::make(hints)? };
    Ok(())
}

/// Deletes a communicator's attributes, then itself.
unsafe fn free(comm: *mut Comm, waits: bool) -> Result {
    not_null(comm, "comm")?;
    // SAFETY: the caller's pointer.
    let handle = unsafe { *comm };
    let found = get(handle)?;
    if matches!(handle, COMM_WORLD | COMM_SELF) {
        let name = found.name();
        let text = format!("the communicator is {name:?}, which stays until MPI_Finalize");
        return Err(Error::new(ERR_COMM, text));
    }
    // SAFETY: the program's functions for its attributes.
    let deleted = unsafe { found.attributes.delete_all(handle) };
    match waits {
        true => agree_on_outcome(found.group, deleted, "the communicator stays")?,
        false => deleted?,
    }
    communicator::remove(handle)?;
    // SAFETY: the caller's pointer.
    unsafe { *comm = COMM_NULL };
    Ok(())
}

pub unsafe fn comm_free(comm: *mut Comm) -> Result {
    // SAFETY: the caller's pointer.
    unsafe { free(comm, false) }
}

pub unsafe fn comm_disconnect(comm: *mut Comm) -> Result {
    // SAFETY: the caller's pointer.
    unsafe { free(comm, true) }
}
