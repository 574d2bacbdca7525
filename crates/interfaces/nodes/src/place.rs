//! Becoming a node, and leaving.

use std::ffi::c_int;

use crate::fault::{Fault, checked};
use crate::own::Own;
use crate::rg;

/// Our place among the nodes.
#[derive(Clone, Copy)]
pub struct Place {
    /// How many nodes there are; 0: we have not joined them.
    pub nodes: i32,
    /// Our number; negative: we are none of them.
    pub node: i32,
    /// The task of node 0; those of the others follow.
    pub first: i32,
    /// The task that is the host program, or `rg::NONE`.
    pub host: i32,
}

/// A place of its own for each library.
pub static PLACE: Own<Place> = Own::new(Place {
    nodes: 0,
    node: -1,
    first: 0,
    host: rg::NONE,
});

/// Our place as it is now.
#[inline(always)]
pub fn place() -> Place {
    *PLACE.get()
}

/// Be a node.
#[inline(always)]
pub fn joined() -> Result<(), Fault> {
    match place().nodes {
        0 => join(),
        _ => Ok(()),
    }
}

#[cold]
fn join() -> Result<(), Fault> {
    // SAFETY: plain calls; the function to be called at the end takes nothing and stays.
    unsafe {
        checked(rg::rg_init())?;
        libc::atexit(leave);
    }
    // SAFETY: plain questions.
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
            "the numbers of this program's tasks do not follow each other",
        ));
    }
    *PLACE.get() = Place {
        nodes: size,
        node: rank,
        first,
        // A program that tasks have started is the nodes' program of a host program.
        // SAFETY: a plain question.
        host: unsafe { rg::rg_parent() }.max(rg::NONE),
    };
    Ok(())
}

/// A node leaves when its program ends. Messages that it has sent go on their way.
extern "C" fn leave() {
    // SAFETY: plain calls. A program that has left by itself has nothing left to leave.
    unsafe {
        if rg::rg_initialized() == 1 {
            rg::rg_finalize();
        }
    }
}

/// A length of the program's.
#[inline(always)]
pub fn length(len: c_int) -> Result<usize, Fault> {
    usize::try_from(len).map_err(|_| Fault::says(format!("{len} is no length")))
}
