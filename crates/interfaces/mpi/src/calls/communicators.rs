//! Communicators: their properties, names and hints, and freeing them.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::internal_messages::agree_on_outcome;
use crate::communicator::{self, Communicator, Route, get};
use crate::error::{Error, Result};
use crate::groups;
use crate::info::{self, Hints};
use crate::text;

pub fn comm_rank(route: &Route, rank: Out<c_int>) -> Result {
    rank.put(route.rank());
    Ok(())
}

pub fn comm_size(route: &Route, size: Out<c_int>) -> Result {
    size.put(route.size());
    Ok(())
}

pub fn comm_test_inter(comm: Arc<Communicator>, flag: Out<c_int>) -> Result {
    flag.put(c_int::from(comm.remote.is_some()));
    Ok(())
}

/// Returns the error for a call that requires an intercommunicator.
pub(crate) fn no_inter() -> Error {
    Error::new(ERR_COMM, "the communicator is not an intercommunicator")
}

/// Returns the error for a call that requires an intracommunicator.
pub(crate) fn no_intra() -> Error {
    let text = "the communicator is an intercommunicator, which the call does not support";
    Error::new(ERR_COMM, text)
}

pub fn comm_remote_size(comm: Arc<Communicator>, size: Out<c_int>) -> Result {
    let remote = comm.remote.as_ref().ok_or_else(no_inter)?;
    size.put(remote.members.len() as c_int);
    Ok(())
}

pub fn comm_remote_group(comm: Arc<Communicator>, group: Out<Group>) -> Result {
    let remote = comm.remote.as_ref().ok_or_else(no_inter)?;
    group.put(groups::make(remote.members.clone())?);
    Ok(())
}

pub fn comm_group(comm: Comm, group: Out<Group>) -> Result {
    let members = communicator::with(comm, |comm| comm.local.clone())?;
    group.put(groups::make(members)?);
    Ok(())
}

pub fn comm_compare(
    first: Arc<Communicator>,
    second: Arc<Communicator>,
    result: Out<c_int>,
) -> Result {
    let is_same = first.handle == second.handle;
    let local = groups::compare(&first.local, &second.local);
    let found = match (&first.remote, &second.remote) {
        _ if is_same => IDENT,
        (None, None) => local,
        // Both groups are compared; the less similar pair decides. The constants are in that order.
        (Some(one), Some(other)) => local.max(groups::compare(&one.members, &other.members)),
        _ => UNEQUAL,
    };
    let found = match found {
        IDENT if !is_same => CONGRUENT,
        found => found,
    };
    result.put(found);
    Ok(())
}

pub fn comm_set_name(comm: Arc<Communicator>, comm_name: &CStr) -> Result {
    // A name that is too long is truncated.
    let most = MAX_OBJECT_NAME as usize - 1;
    let bytes: Vec<u8> = comm_name.to_bytes().iter().copied().take(most).collect();
    comm.set_name(std::ffi::CString::new(bytes).unwrap_or_default());
    Ok(())
}

pub unsafe fn comm_get_name(comm: Comm, comm_name: Out<c_char>, resultlen: Out<c_int>) -> Result {
    let name = match comm {
        COMM_NULL => c"MPI_COMM_NULL".to_owned(),
        _ => get(comm)?.name(),
    };
    // SAFETY: the caller guarantees room for the longest name.
    resultlen.put(unsafe { text::give(name.to_bytes(), comm_name, MAX_OBJECT_NAME) });
    Ok(())
}

/// The hints of communicators that have a meaning; other hints are not returned to programs.
const HINTS: [&CStr; 4] = [
    c"mpi_assert_allow_overtaking",
    c"mpi_assert_exact_length",
    c"mpi_assert_no_any_source",
    c"mpi_assert_no_any_tag",
];

pub fn comm_set_info(comm: Arc<Communicator>, info: Info) -> Result {
    comm.set_hints(&info::hints(info)?);
    Ok(())
}

pub fn comm_get_info(comm: Arc<Communicator>, info_used: Out<Info>) -> Result {
    let mut hints = Hints::default();
    hints.set_text(c"mpi_memory_alloc_kinds", "system,mpi");
    hints.merge(&comm.hints().among(&HINTS));
    info_used.put(info::make(hints)?);
    Ok(())
}

/// Deletes a communicator's attributes, then the communicator. If `waits`, all its processes agree on the outcome
/// first.
unsafe fn free(comm: Out<Comm>, waits: bool) -> Result {
    let handle = comm.get();
    let found = get(handle)?;
    if matches!(handle, COMM_WORLD | COMM_SELF) {
        let name = found.name();
        let text =
            format!("the communicator is {name:?}, which cannot be freed before MPI_Finalize");
        return Err(Error::new(ERR_COMM, text));
    }
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    let deleted = unsafe { found.attributes.delete_all(handle) };
    match waits {
        true => agree_on_outcome(found.group, deleted, "the communicator is kept")?,
        false => deleted?,
    }
    communicator::remove(handle)?;
    comm.put(COMM_NULL);
    Ok(())
}

pub unsafe fn comm_free(comm: Out<Comm>) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    unsafe { free(comm, false) }
}

pub unsafe fn comm_disconnect(comm: Out<Comm>) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    unsafe { free(comm, true) }
}
