//! `excombine`: a reduction by a function of the program, with the result on all nodes.

use std::ffi::{c_int, c_void};

use regatta_nodes::reduction::{Function, reduce};

use crate::life::call;
use crate::team::Team;

/// Combines the items of all nodes element by element; all nodes get the results. The function is associative and
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
    // SAFETY: by the C contract the buffer has this many items, and the list has this length.
    call("excombine", || unsafe {
        let team = Team::read(nnodes, nodelist, None)?;
        reduce(buf, function, size, items, team.group())?;
        Ok(0)
    })
}
