//! `exconcat`: what each node has, one after the other, on all nodes.

use std::ffi::{c_int, c_void};

use regatta_nodes::concatenation::{Order, concatenate};

use crate::life::call;
use crate::team::Team;

/// Concatenate the parts of all nodes of a list. `sizes` are their lengths, as the nodes are listed. Returns the length of the
/// whole, or -1; of one that is too long the front is kept.
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
    // SAFETY: the C contract: buffers of these lengths, a list of that length, and a number for each of its nodes.
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
