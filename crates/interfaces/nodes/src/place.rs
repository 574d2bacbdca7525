//! Joining as a node, and leaving.

use std::ffi::c_int;

use crate::fault::{Fault, checked};
use crate::own::Own;
use crate::rg;

/// This process's place among the nodes.
#[derive(Clone, Copy)]
pub struct Place {
    /// Number of nodes; 0 before joining.
    pub nodes: i32,
    /// This node's number; negative if this process is not a node.
    pub node: i32,
    /// The task of node 0; the tasks of the others follow.
    pub first: i32,
    /// The host program's task, or `rg::NONE`.
    pub host: i32,
}

/// The place. Each library has its own.
pub static PLACE: Own<Place> = Own::new(Place {
    nodes: 0,
    node: -1,
    first: 0,
    host: rg::NONE,
});

/// Returns the current place.
#[inline(always)]
pub fn place() -> Place {
    *PLACE.get()
}

/// Joins as a node, if that has not been done.
#[inline(always)]
pub fn joined() -> Result<(), Fault> {
    match place().nodes {
        0 => join(),
        _ => Ok(()),
    }
}

#[cold]
fn join() -> Result<(), Fault> {
    // SAFETY: the calls take plain values; `leave` has the right type and is never unloaded.
    unsafe {
        checked(rg::rg_init())?;
        libc::atexit(leave);
    }
    // SAFETY: the calls take plain values only.
    let (size, rank, first, last) = unsafe {
        let size = rg::rg_size(rg::WORLD);
        let (first, last) = (
            rg::rg_tid_of(rg::WORLD, 0),
            rg::rg_tid_of(rg::WORLD, size - 1),
        );
        (size, rg::rg_rank(rg::WORLD), first, last)
    };
    if size < 1 || rank < 0 || first < 0 {
        return Err(Fault::Regatta);
    }
    if last != first + size - 1 {
        return Err(Fault::says(
            "the numbers of this program's tasks are not consecutive",
        ));
    }
    *PLACE.get() = Place {
        nodes: size,
        node: rank,
        first,
        // A program that was started by tasks is the node program of a host program.
        // SAFETY: the call takes plain values only.
        host: unsafe { rg::rg_parent() }.max(rg::NONE),
    };
    Ok(())
}

/// Leaves when the program ends. Messages that the node has sent are still delivered.
extern "C" fn leave() {
    // SAFETY: the calls have no arguments. `rg_initialized` tells whether the program has already left.
    unsafe {
        if rg::rg_initialized() == 1 {
            rg::rg_finalize();
        }
    }
}

/// Checks a length that a program passes.
#[inline(always)]
pub fn length(len: c_int) -> Result<usize, Fault> {
    usize::try_from(len).map_err(|_| Fault::says(format!("{len} is not a valid length")))
}
