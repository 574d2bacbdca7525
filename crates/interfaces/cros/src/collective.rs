//! `combine`, `concat`: what all nodes have.

use std::ffi::{c_int, c_void};

use regatta_nodes::concatenation::{Order, concatenate};
use regatta_nodes::place::place;
use regatta_nodes::reduction::{Function, reduce};
use regatta_nodes::rg;

use crate::life::call;

/// Combine the items of all nodes, each with those in its place; all nodes have the results. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn combine(
    buf: *mut c_void,
    function: Option<Function>,
    size: c_int,
    items: c_int,
) -> c_int {
    // SAFETY: the C contract: that many items.
    call("combine", || unsafe {
        reduce(buf, function, size, items, rg::WORLD)?;
        Ok(0)
    })
}

/// Concatenate the parts of all nodes. `sizes`, or NULL, gets their lengths. Returns the length of the whole, or -1; of one that is too
/// long the front is kept.
#[unsafe(no_mangle)]
unsafe extern "C" fn concat(
    mybuf: *const c_void,
    mylen: c_int,
    buf: *mut c_void,
    buflen: c_int,
    sizes: *mut c_int,
) -> c_int {
    // SAFETY: the C contract: buffers of these lengths, and a number for each node.
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
