//! `excombine`: a reduction by a function of the program, to all nodes.

use std::ffi::{c_int, c_void};

use regatta_nodes::reduction::{Function, reduce};

use crate::life::call;
use crate::team::Team;

/// Combine the items of all nodes, each with those in its place; all nodes have the results. The function is associative and
/// commutative. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn excombine(
    buf: *mut c_void,
    function: Option<Function>,
    size: c_int,
    items: c_int,
    nnodes: c_int,
    nodelist: *const c_int,
    _kind: *const c_int,
) -> c_int {
    // SAFETY: the C contract: that many items, and a list of that length.
    call("excombine", || unsafe {
        let team = Team::read(nnodes, nodelist, None)?;
        reduce(buf, function, size, items, team.group())?;
        Ok(0)
    })
}
