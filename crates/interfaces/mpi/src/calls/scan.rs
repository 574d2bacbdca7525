//! Prefix reductions.

use std::ffi::{c_int, c_void};

use regatta_sys as rg;

use crate::abi::*;
use crate::collective::describe::{Reduced, reduced};
use crate::collective::quick::{has_both, place, reduction};
use crate::collective::{Collective, Entry, LocalData, entry, forms, of_one_group};
use crate::error::Result;

forms! {
    pub unsafe fn scan, iscan, scan_init(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        count: i64,
        datatype: Datatype,
        op: Op,
        comm: Comm,
    )
        = describe_scan(comm, reduced(sendbuf, recvbuf, count, datatype, op)),
        first try_scan;

    pub unsafe fn exscan, iexscan, exscan_init(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        count: i64,
        datatype: Datatype,
        op: Op,
        comm: Comm,
    )
        = describe_exscan(comm, reduced(sendbuf, recvbuf, count, datatype, op));
}

const SCAN: Entry = entry!(rg_scan or rg_iscan(given, taken, count, element, op));
const EXSCAN: Entry = entry!(rg_exscan or rg_iexscan(given, taken, count, element, op));

/// Describes MPI_Scan.
unsafe fn describe_scan(comm: Comm, what: Reduced) -> Result<Collective> {
    let comm = of_one_group(comm)?;
    let reduction = what.reduction()?;
    // SAFETY: the caller upholds the safety contract of this function.
    let (gives, takes) = unsafe { what.both(what.count)? };
    Ok(Collective::engine(comm, SCAN, gives, takes).reducing(reduction))
}

/// Describes MPI_Exscan.
unsafe fn describe_exscan(comm: Comm, what: Reduced) -> Result<Collective> {
    let comm = of_one_group(comm)?;
    let reduction = what.reduction()?;
    // SAFETY: the caller upholds the safety contract of this function.
    let (gives, takes) = unsafe {
        match (comm.rank, what.is_in_place()) {
            // The first process gets no result. It still reports equal buffers as an error, as all others do: otherwise
            // they would wait for it.
            (0, false) if what.send == what.recv.cast_const() => what.both(what.count)?,
            (0, false) => (LocalData::Memory(what.gives()?), LocalData::Nothing),
            (0, true) => (
                LocalData::Memory(what.takes(what.count)?),
                LocalData::Nothing,
            ),
            _ => what.both(what.count)?,
        }
    };
    Ok(Collective::engine(comm, EXSCAN, gives, takes).reducing(reduction))
}

/// Fast path of MPI_Scan.
#[inline(always)]
unsafe fn try_scan(comm: Comm, what: Reduced) -> Option<c_int> {
    let (route, _) = place(comm)?;
    let (element, op, count) = reduction(&what)?;
    if !has_both(&what) {
        return None;
    }
    // SAFETY: the caller guarantees that the buffers are valid for their elements.
    Some(unsafe { rg::rg_scan(what.send, what.recv, count, element, op, route.group()) })
}
