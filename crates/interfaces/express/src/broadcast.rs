//! `exbroadcast` and `exsync`.

use std::ffi::{c_int, c_void};

use regatta_nodes::fault::checked;
use regatta_nodes::place::length;
use regatta_nodes::rg;

use crate::life::call;
use crate::team::Team;

/// Broadcasts what `origin` has to all nodes of a list. All of them and the origin call it. Returns the length, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exbroadcast(
    buf: *mut c_void,
    origin: c_int,
    len: c_int,
    nnodes: c_int,
    nodelist: *const c_int,
    _kind: *const c_int,
) -> c_int {
    call("exbroadcast", || {
        let bytes = length(len)?;
        // SAFETY: by the C contract the list and the buffer have these lengths.
        unsafe {
            let team = Team::read(nnodes, nodelist, Some(origin))?;
            let root = team.rank_of(origin)?;
            checked(rg::rg_broadcast(buf, bytes, root, team.group()))?;
        }
        Ok(len)
    })
}

/// Waits until all nodes have called it. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn exsync() -> c_int {
    call("exsync", || {
        // SAFETY: with `ALLNODES` the list is not read.
        unsafe {
            let team = Team::read(crate::constants::ALLNODES, std::ptr::null(), None)?;
            checked(rg::rg_barrier(team.group()))?;
        }
        Ok(0)
    })
}
