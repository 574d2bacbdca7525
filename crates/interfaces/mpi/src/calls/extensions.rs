//! Going on after processes have failed: calls beyond the standard (MPIX_).

use std::ffi::c_int;

use regatta_sys as rg;

use super::communicator_making::give;
use crate::abi::*;
use crate::communicator::{self, Communicator, Inherited, get};
use crate::error::{Error, Result, checked, not_null};
use crate::groups;
use crate::progress;
use crate::requests::{self, Single};

pub unsafe fn comm_shrink(comm: Comm, newcomm: *mut Comm) -> Result {
    let comm = get(comm)?;
    not_null(newcomm, "newcomm")?;
    let made = communicator::shrink(&comm)?;
    // SAFETY: the caller's pointer.
    unsafe { give(Some(made), Inherited::of(&comm), newcomm) }
}

pub unsafe fn comm_revoke(comm: Comm) -> Result {
    // SAFETY: it takes a group by value.
    checked(unsafe { rg::rg_group_revoke(get(comm)?.group) })
}

pub unsafe fn comm_is_revoked(comm: Comm, flag: *mut c_int) -> Result {
    let comm = get(comm)?;
    not_null(flag, "flag")?;
    // SAFETY: it takes a group by value.
    let revoked = unsafe { rg::rg_group_is_revoked(comm.group) };
    checked(revoked)?;
    // SAFETY: the caller's pointer.
    unsafe { *flag = revoked };
    Ok(())
}

pub unsafe fn comm_agree(comm: Comm, flag: *mut c_int) -> Result {
    let comm = get(comm)?;
    not_null(flag, "flag")?;
    let mut request = rg::REQUEST_NULL;
    // SAFETY: the caller's flag stays until the request is complete.
    checked(unsafe { rg::rg_iagree(flag, comm.group, &mut request) })?;
    checked(progress::wait(request, &mut rg::Status::default()))
}

pub unsafe fn comm_iagree(comm: Comm, flag: *mut c_int, request: *mut Request) -> Result {
    let found = get(comm)?;
    not_null(flag, "flag")?;
    not_null(request, "request")?;
    let mut begun = rg::REQUEST_NULL;
    // SAFETY: the caller's flag stays until the request is complete.
    checked(unsafe { rg::rg_iagree(flag, found.group, &mut begun) })?;
    let operation = Box::new(Single::new(begun, comm));
    // SAFETY: the caller's pointer.
    unsafe { *request = requests::of_operation(operation, comm)? };
    Ok(())
}

/// The processes of a communicator that the engine knows to have failed, the acknowledged ones in front. The launcher may know of others: to
/// acknowledge these would be in vain, since calls fail for a process that the engine has not acknowledged.
fn failed(comm: &Communicator) -> Result<Vec<c_int>> {
    let mut ranks: Vec<c_int> = Vec::new();
    let mut count = 0;
    loop {
        let room = ranks.len() as c_int;
        // SAFETY: the array has this length; the number is written.
        checked(unsafe { rg::rg_dead(comm.group, ranks.as_mut_ptr(), room, &mut count) })?;
        let is_whole = count <= room;
        ranks.resize(count as usize, 0);
        if is_whole {
            break;
        }
    }
    // SAFETY: it takes values.
    let tasks = ranks
        .iter()
        .map(|&rank| unsafe { rg::rg_tid_of(comm.group, rank) });
    let all: Vec<c_int> = tasks.collect();
    let known = comm.acknowledged();
    Ok(groups::union(&known, &all.into()).to_vec())
}

/// Acknowledges failures: receives from any source go on without these processes.
fn acknowledge(comm: &Communicator, most: usize) -> Result {
    let mut all = failed(comm)?;
    let known = comm.acknowledged().len();
    all.truncate(most.max(known));
    if all.len() > known {
        let mut dead = 0;
        // SAFETY: the number is written.
        checked(unsafe { rg::rg_acknowledge_dead(comm.group, &mut dead) })?;
        comm.acknowledge(all);
    }
    Ok(())
}

pub unsafe fn comm_get_failed(comm: Comm, failedgrp: *mut Group) -> Result {
    let comm = get(comm)?;
    not_null(failedgrp, "failedgrp")?;
    // SAFETY: the caller's pointer.
    unsafe { *failedgrp = groups::make(failed(&comm)?.into())? };
    Ok(())
}

pub unsafe fn comm_ack_failed(comm: Comm, num_to_ack: c_int, num_acked: *mut c_int) -> Result {
    let comm = get(comm)?;
    not_null(num_acked, "num_acked")?;
    let most = usize::try_from(num_to_ack).map_err(|_| {
        let text = format!("num_to_ack is {num_to_ack}; it is 0 or more");
        Error::new(ERR_ARG, text)
    })?;
    acknowledge(&comm, most)?;
    // SAFETY: the caller's pointer.
    unsafe { *num_acked = comm.acknowledged().len() as c_int };
    Ok(())
}

pub unsafe fn comm_failure_ack(comm: Comm) -> Result {
    acknowledge(&*get(comm)?, usize::MAX)
}

pub unsafe fn comm_failure_get_acked(comm: Comm, failedgrp: *mut Group) -> Result {
    let comm = get(comm)?;
    not_null(failedgrp, "failedgrp")?;
    // SAFETY: the caller's pointer.
    unsafe { *failedgrp = groups::make(comm.acknowledged())? };
    Ok(())
}
