//! Recovery from process failures: calls beyond the standard (MPIX_).

use std::ffi::c_int;
use std::sync::Arc;

use regatta_sys as rg;

use super::communicator_making::give;
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::{self, Communicator, Inherited};
use crate::error::{Error, Result, checked};
use crate::groups;
use crate::progress;
use crate::requests::{self, Single};

pub fn comm_shrink(comm: Arc<Communicator>, newcomm: Out<Comm>) -> Result {
    let made = communicator::shrink(&comm)?;
    give(Some(made), Inherited::of(&comm), newcomm)
}

pub fn comm_revoke(comm: Arc<Communicator>) -> Result {
    // SAFETY: the call takes the group by value and no pointers.
    checked(unsafe { rg::rg_group_revoke(comm.group) })
}

pub unsafe fn comm_is_revoked(comm: Arc<Communicator>, flag: Out<c_int>) -> Result {
    // SAFETY: the call takes the group by value and no pointers.
    let revoked = unsafe { rg::rg_group_is_revoked(comm.group) };
    checked(revoked)?;
    flag.put(revoked);
    Ok(())
}

pub unsafe fn comm_agree(comm: Arc<Communicator>, flag: Out<c_int>) -> Result {
    let mut request = rg::REQUEST_NULL;
    // SAFETY: the caller guarantees that the flag stays until the request is complete.
    checked(unsafe { rg::rg_iagree(flag.address(), comm.group, &mut request) })?;
    checked(progress::wait(request, &mut rg::Status::default()))
}

pub unsafe fn comm_iagree(
    comm: Arc<Communicator>,
    flag: Out<c_int>,
    request: Out<Request>,
) -> Result {
    let mut begun = rg::REQUEST_NULL;
    // SAFETY: the caller guarantees that the flag stays until the request is complete.
    checked(unsafe { rg::rg_iagree(flag.address(), comm.group, &mut begun) })?;
    let operation = Box::new(Single::new(begun, comm.handle));
    request.put(requests::of_operation(operation, comm.handle)?);
    Ok(())
}

/// Returns the processes of a communicator that the engine knows to have failed, the acknowledged ones first. The
/// launcher may know of more, but acknowledging these would have no effect: calls fail for a failed process that the
/// engine has not acknowledged.
fn failed(comm: &Communicator) -> Result<Vec<c_int>> {
    let mut ranks: Vec<c_int> = Vec::new();
    let mut count = 0;
    loop {
        let room = ranks.len() as c_int;
        // SAFETY: the array has this length; the call may write the number.
        checked(unsafe { rg::rg_dead(comm.group, ranks.as_mut_ptr(), room, &mut count) })?;
        let is_whole = count <= room;
        ranks.resize(count as usize, 0);
        if is_whole {
            break;
        }
    }
    // SAFETY: the call takes values and no pointers.
    let tasks = ranks
        .iter()
        .map(|&rank| unsafe { rg::rg_tid_of(comm.group, rank) });
    let all: Vec<c_int> = tasks.collect();
    let known = comm.acknowledged();
    Ok(groups::union(&known, &all.into()).to_vec())
}

/// Acknowledges failures: receives from any source no longer fail because of these processes.
fn acknowledge(comm: &Communicator, most: usize) -> Result {
    let mut all = failed(comm)?;
    let known = comm.acknowledged().len();
    all.truncate(most.max(known));
    if all.len() > known {
        let mut dead = 0;
        // SAFETY: the call may write the number.
        checked(unsafe { rg::rg_acknowledge_dead(comm.group, &mut dead) })?;
        comm.acknowledge(all);
    }
    Ok(())
}

pub fn comm_get_failed(comm: Arc<Communicator>, failedgrp: Out<Group>) -> Result {
    failedgrp.put(groups::make(failed(&comm)?.into())?);
    Ok(())
}

pub fn comm_ack_failed(
    comm: Arc<Communicator>,
    num_to_ack: c_int,
    num_acked: Out<c_int>,
) -> Result {
    let most = usize::try_from(num_to_ack).map_err(|_| {
        let text = format!("num_to_ack is {num_to_ack}; it must be 0 or more");
        Error::new(ERR_ARG, text)
    })?;
    acknowledge(&comm, most)?;
    num_acked.put(comm.acknowledged().len() as c_int);
    Ok(())
}

pub fn comm_failure_ack(comm: Arc<Communicator>) -> Result {
    acknowledge(&comm, usize::MAX)
}

pub fn comm_failure_get_acked(comm: Arc<Communicator>, failedgrp: Out<Group>) -> Result {
    failedgrp.put(groups::make(comm.acknowledged())?);
    Ok(())
}
