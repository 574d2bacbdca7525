//! `exconcat`: concatenates the parts of all nodes, on all nodes.

use std::ffi::{c_int, c_void};

use regatta_nodes::concatenation::{Order, concatenate};

use crate::life::call;
use crate::team::Team;

/// Concatenates the parts of all nodes of a list. `sizes` gets their lengths, in the order of the list. Returns the
/// total length, or -1; if there is too little room, the front is kept.
#[unsafe(no_mangle)]
unsafe extern "C" fn exconcat(
    mybuf: *const c_void,
    mylen: c_int,
    buf: *mut c_void,
    buflen: c_int,
    sizes: *mut c_int,
    nnodes: c_int,
    nodelist: *const c_int,
    _kind: *const c_int,
) -> c_int {
    // SAFETY: by the C contract the buffers and the list have these lengths, and `sizes` has an element for each node.
    call("exconcat", || unsafe {
        let team = Team::read(nnodes, nodelist, None)?;
        let order = Order {
            group: team.group(),
            members: team.members(),
            named: team.named(),
            rank_at: |place| team.rank_at(place),
        };
        concatenate(mybuf, mylen, buf, buflen, sizes, &order)
    })
}
