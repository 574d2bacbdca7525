//! Making intercommunicators, and merging their two groups into an intracommunicator.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use super::communicator_making::give;
use super::communicators::{no_inter, no_intra};
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::{self, Communicator, Inherited, get};
use crate::errhandler::{HandlerSlot, Of};
use crate::error::{Error, Object, Result, not_null};
use crate::groups;
use crate::info;
use crate::text;

/// Checks the rank of a leader.
fn check_leader(leader: c_int, size: usize) -> Result {
    match usize::try_from(leader) {
        Ok(it) if it < size => Ok(()),
        _ => Err(Error::new(
            ERR_RANK,
            format!(
                "the leader is {leader}; ranks here are 0 to {}",
                size as i64 - 1
            ),
        )),
    }
}

pub unsafe fn intercomm_create(
    comm: Arc<Communicator>,
    local_leader: c_int,
    peer_comm: Comm,
    remote_leader: c_int,
    tag: c_int,
    newintercomm: *mut Comm,
) -> Result {
    if comm.remote.is_some() {
        return Err(no_intra());
    }
    check_leader(local_leader, comm.local.len())?;
    super::send::check_tag(tag)?;
    // The last three arguments are significant only at the leader.
    let bridge = || {
        let bridge = get(peer_comm)?;
        check_leader(remote_leader, bridge.peers().len())?;
        if bridge.remote.is_none() && bridge.rank == remote_leader {
            let text = format!("the remote leader, {remote_leader}, is the local one");
            return Err(Error::new(ERR_RANK, text));
        }
        Ok((bridge, remote_leader))
    };
    let bridge = match comm.rank == local_leader {
        true => bridge().map(Some),
        false => Ok(None),
    };
    let (given, bridge) = match bridge {
        Ok(bridge) => (not_null(newintercomm, "newintercomm"), bridge),
        Err(error) => (Err(error), None),
    };
    let made = communicator::create_inter(&comm, local_leader, given, bridge, tag)?;
    // SAFETY: the caller guarantees that the pointer is valid. It is not null: all processes have agreed on that.
    let newintercomm = unsafe { Out::at(newintercomm, "newintercomm")? };
    give(Some(made), Inherited::of(&comm), newintercomm)
}

pub unsafe fn intercomm_create_from_groups(
    local_group: Group,
    local_leader: c_int,
    remote_group: Group,
    remote_leader: c_int,
    stringtag: *const c_char,
    info: Info,
    errhandler: Errhandler,
    newintercomm: *mut Comm,
) -> Result {
    let make = || {
        let local = groups::get(local_group)?;
        // SAFETY: the caller guarantees that the pointer is valid.
        let newintercomm = unsafe { Out::at(newintercomm, "newintercomm")? };
        check_leader(local_leader, local.len())?;
        let hints = info::optional(info)?;
        let slot = HandlerSlot::with(errhandler, Of::Comm)?;
        // SAFETY: the caller guarantees that the text is NUL-terminated.
        let tag = unsafe { text::given(stringtag, "stringtag", MAX_STRINGTAG_LEN, ERR_ARG)? };
        let remote = match groups::own_rank(&local)? {
            rank if rank == local_leader => {
                let remote = groups::get(remote_group)?;
                check_leader(remote_leader, remote.len())?;
                Some(remote)
            }
            _ => None,
        };
        let made = communicator::create_inter_from_groups(&local, local_leader, remote, tag)?;
        let inherited = Inherited {
            hints,
            ..Inherited::handled_by(slot)
        };
        give(Some(made), inherited, newintercomm)
    };
    make().map_err(|error: Error| error.on(Object::Unmade(errhandler)))
}

pub unsafe fn intercomm_merge(
    comm: Arc<Communicator>,
    high: c_int,
    newintracomm: Out<Comm>,
) -> Result {
    let comm: std::sync::Arc<Communicator> = comm;
    if comm.remote.is_none() {
        return Err(no_inter());
    }
    let made = communicator::merge(&comm, high != 0)?;
    give(Some(made), Inherited::of(&comm), newintracomm)
}
