//! Reductions to a root and to all processes.

use std::ffi::{c_int, c_void};

use regatta_sys as rg;

use crate::abi::*;
use crate::collective::describe::{Reduced, reduced};
use crate::collective::quick::{has_both, is_memory, is_root, place, reduction};
use crate::collective::{
    Collective, Entry, LocalData, REDUCE, Role, entry, forms, intercommunicator, role,
};
use crate::communicator::get;
use crate::error::Result;

forms! {
    pub unsafe fn reduce, ireduce, reduce_init(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        count: i64,
        datatype: Datatype,
        op: Op,
        root: c_int,
        comm: Comm,
    )
        = describe_reduce(comm, reduced(sendbuf, recvbuf, count, datatype, op), root),
        first try_reduce;

    pub unsafe fn allreduce, iallreduce, allreduce_init(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        count: i64,
        datatype: Datatype,
        op: Op,
        comm: Comm,
    )
        = describe_allreduce(comm, reduced(sendbuf, recvbuf, count, datatype, op)),
        first try_allreduce;
}

const ALLREDUCE: Entry = entry!(rg_allreduce or rg_iallreduce(given, taken, count, element, op));

/// Describes MPI_Reduce.
unsafe fn describe_reduce(comm: Comm, what: Reduced, root: c_int) -> Result<Collective> {
    let comm = get(comm)?;
    let role = role(&comm, root)?;
    let between = comm.remote.is_some();
    if role == Role::Outside {
        return Ok(intercommunicator::outside(comm));
    }
    let reduction = what.reduction()?;
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe {
        let (gives, takes) = match role {
            Role::Root if between => {
                return Ok(intercommunicator::result_at_root(
                    comm,
                    what.takes(what.count)?,
                ));
            }
            Role::Member(root) if between => {
                return Ok(intercommunicator::reduced_for(
                    comm,
                    root,
                    what.gives()?,
                    reduction,
                ));
            }
            Role::Root => what.both(what.count)?,
            _ => (LocalData::Memory(what.gives()?), LocalData::Nothing),
        };
        let collective = Collective::engine(comm, REDUCE, gives, takes);
        Ok(collective.rooted(root).reducing(reduction))
    }
}

/// Describes MPI_Allreduce.
unsafe fn describe_allreduce(comm: Comm, what: Reduced) -> Result<Collective> {
    let comm = get(comm)?;
    let reduction = what.reduction()?;
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe {
        if comm.remote.is_some() {
            let (gives, takes) = (what.gives()?, what.takes(what.count)?);
            return Ok(intercommunicator::reduced_for_all(
                comm, gives, takes, reduction, 0,
            ));
        }
        let (gives, takes) = what.both(what.count)?;
        Ok(Collective::engine(comm, ALLREDUCE, gives, takes).reducing(reduction))
    }
}

/// Fast path of MPI_Reduce.
#[inline(always)]
unsafe fn try_reduce(comm: Comm, what: Reduced, root: c_int) -> Option<c_int> {
    let (route, rank) = place(comm)?;
    let (element, op, count) = reduction(&what)?;
    let right = match is_root(root, rank, route)? {
        true => has_both(&what),
        false => is_memory(what.send),
    };
    if !right {
        return None;
    }
    let group = route.group();
    // SAFETY: the caller guarantees that the buffers are valid for their elements.
    Some(unsafe { rg::rg_reduce(what.send, what.recv, count, element, op, root, group) })
}

/// Fast path of MPI_Allreduce.
#[inline(always)]
unsafe fn try_allreduce(comm: Comm, what: Reduced) -> Option<c_int> {
    let (route, _) = place(comm)?;
    let (element, op, count) = reduction(&what)?;
    if !has_both(&what) {
        return None;
    }
    // SAFETY: the caller guarantees that the buffers are valid for their elements.
    Some(unsafe { rg::rg_allreduce(what.send, what.recv, count, element, op, route.group()) })
}
