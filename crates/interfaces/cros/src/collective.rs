//! `combine` (reduction to all nodes) and `concat` (concatenation).

use std::ffi::{c_int, c_void};

use regatta_nodes::concatenation::{Order, concatenate};
use regatta_nodes::place::place;
use regatta_nodes::reduction::{Function, reduce};
use regatta_nodes::rg;

use crate::life::call;

/// Combines the items of all nodes element by element; all nodes get the results. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn combine(
    buf: *mut c_void,
    function: Option<Function>,
    size: c_int,
    items: c_int,
) -> c_int {
    // SAFETY: by the C contract `buf` has `items` items of `size` bytes.
    call("combine", || unsafe {
        reduce(buf, function, size, items, rg::WORLD)?;
        Ok(0)
    })
}

/// Concatenates the parts of all nodes. `sizes`, if not NULL, gets their lengths. Returns the total length, or -1; if
/// there is too little room, the front is kept.
#[unsafe(no_mangle)]
unsafe extern "C" fn concat(
    mybuf: *const c_void,
    mylen: c_int,
    buf: *mut c_void,
    buflen: c_int,
    sizes: *mut c_int,
) -> c_int {
    // SAFETY: by the C contract the buffers have these lengths, and `sizes` has a number for each node.
    call("concat", || unsafe {
        let nodes = place().nodes as usize;
        let order = Order {
            group: rg::WORLD,
            members: nodes,
            named: nodes,
            rank_at: |place| place,
        };
        concatenate(mybuf, mylen, buf, buflen, sizes, &order)
    })
}
