//! Reductions whose results are scattered.

use std::ffi::{c_int, c_void};

use regatta_sys as rg;

use crate::abi::*;
use crate::collective::describe::{Reduced, reduced};
use crate::collective::quick::{has_both, place, reduction};
use crate::collective::{Collective, Entry, LocalData, entry, forms, intercommunicator};
use crate::communicator::get;
use crate::error::{Error, Result};

forms! {
    pub unsafe fn reduce_scatter, ireduce_scatter, reduce_scatter_init(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        recvcounts: Ints,
        datatype: Datatype,
        op: Op,
        comm: Comm,
    )
        = describe_reduce_scatter(
            comm,
            reduced(sendbuf, recvbuf, 0, datatype, op),
            ScatterCounts::Listed(recvcounts),
        );

    pub unsafe fn reduce_scatter_block, ireduce_scatter_block, reduce_scatter_block_init(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        recvcount: i64,
        datatype: Datatype,
        op: Op,
        comm: Comm,
    )
        = describe_reduce_scatter(
            comm,
            reduced(sendbuf, recvbuf, 0, datatype, op),
            ScatterCounts::Block(recvcount),
        ),
        first try_reduce_scatter_block;
}

const REDUCE_SCATTER: Entry =
    entry!(rg_reduce_scatter or rg_ireduce_scatter(given, taken, counts, element, op));

/// Describes MPI_Reduce_scatter and MPI_Reduce_scatter_block. The count of `what` is ignored: it is the sum of
/// `counts`.
unsafe fn describe_reduce_scatter(
    comm: Comm,
    what: Reduced,
    counts: ScatterCounts,
) -> Result<Collective> {
    let comm = get(comm)?;
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe {
        let counts = counts.list(comm.size() as usize)?;
        let total = counts.iter().try_fold(0i64, |sum, &it| sum.checked_add(it));
        let total = total.ok_or_else(|| {
            Error::new(ERR_COUNT, "the sum of the counts exceeds the address space")
        })?;
        let what = Reduced {
            count: total,
            ..what
        };
        let mut reduction = what.reduction()?;
        let mine = counts[comm.rank as usize];
        if comm.remote.is_some() {
            // Each group scatters the result of the other one. Both results have the same number of elements.
            let (gives, takes) = (what.gives()?, what.takes(mine)?);
            let before: i64 = counts[..comm.rank as usize].iter().sum();
            let from = before as usize * gives.element.size;
            return Ok(intercommunicator::reduced_for_all(
                comm, gives, takes, reduction, from,
            ));
        }
        reduction.scatter(&counts);
        let (gives, takes) = what.both(mine)?;
        let (gives, takes) = match (gives, takes) {
            // Noncontiguous elements in place: the operands are the whole buffer, but the result is only its front.
            (LocalData::InPlace, LocalData::Memory(whole)) if !whole.element.is_dense() => {
                let takes = what.takes(mine)?;
                (LocalData::Memory(whole), LocalData::Memory(takes))
            }
            sides => sides,
        };
        Ok(Collective::engine(comm, REDUCE_SCATTER, gives, takes).reducing(reduction))
    }
}

/// Fast path of MPI_Reduce_scatter_block.
#[inline(always)]
unsafe fn try_reduce_scatter_block(
    comm: Comm,
    what: Reduced,
    counts: ScatterCounts,
) -> Option<c_int> {
    let ScatterCounts::Block(count) = counts else {
        return None;
    };
    let (route, _) = place(comm)?;
    let (element, op, count) = reduction(&Reduced { count, ..what })?;
    if !has_both(&what) {
        return None;
    }
    let (send, recv, group) = (what.send, what.recv, route.group());
    // SAFETY: the caller guarantees that the buffers are valid for their elements.
    Some(unsafe { rg::rg_reduce_scatter_block(send, recv, count, element, op, group) })
}

/// The number of elements of the result for each process.
#[derive(Clone, Copy, Debug)]
enum ScatterCounts {
    /// The same number for each process.
    Block(i64),
    /// A number for each process, in an array.
    Listed(Ints),
}

impl ScatterCounts {
    unsafe fn list(self, size: usize) -> Result<Vec<i64>> {
        let list = match self {
            ScatterCounts::Block(count) => vec![count; size],
            ScatterCounts::Listed(counts) if counts.is_null() => {
                return Err(Error::new(ERR_ARG, "recvcounts is a null pointer"));
            }
            // SAFETY: the caller upholds the safety contract of this function.
            ScatterCounts::Listed(counts) => unsafe { counts.to_vec(size) },
        };
        match list.iter().find(|&&it| it < 0) {
            None => Ok(list),
            Some(count) => {
                let text = format!("a count is {count}; it must be 0 or more");
                Err(Error::new(ERR_COUNT, text))
            }
        }
    }
}
