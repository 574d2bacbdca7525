//! Numbers of elements of the arrays of collectives.

use std::ffi::{c_int, c_void};

use regatta_mpi::abi::{Comm, IN_PLACE};
use regatta_mpi::communicator::get;

/// Returns the number of processes of a communicator or of its remote group; 0 if it is invalid.
pub fn count(comm: Comm) -> i64 {
    get(comm).map_or(0, |comm| comm.peers().len() as i64)
}

/// Returns how many types a process sends: none in place, where its array is not significant and may be invalid.
pub fn senders(sendbuf: *const c_void, comm: Comm) -> i64 {
    match sendbuf as usize {
        IN_PLACE => 0,
        _ => count(comm),
    }
}

/// Returns the numbers of neighbours from which this process receives, and to which it sends.
pub fn neighbours(comm: Comm) -> (i64, i64) {
    let Ok(comm) = get(comm) else { return (0, 0) };
    let Some(topology) = &comm.topology else {
        return (0, 0);
    };
    let sources = topology.sources(comm.rank).len() as i64;
    (sources, topology.destinations(comm.rank).len() as i64)
}

/// Returns `count` at the root, and 0 elsewhere, where the arrays are not significant and may be invalid.
pub fn at_root(comm: Comm, root: c_int, count: c_int) -> i64 {
    match get(comm).is_ok_and(|comm| comm.rank == root) {
        true => count.into(),
        false => 0,
    }
}
