//! How many elements the arrays of a collective have.

use std::ffi::{c_int, c_void};

use regatta_mpi::abi::{Comm, IN_PLACE};
use regatta_mpi::communicator::get;

/// How many processes a communicator has, or its other side; 0 if it is none.
pub fn count(comm: Comm) -> i64 {
    get(comm).map_or(0, |comm| comm.peers().len() as i64)
}

/// How many types a process sends: none in place, where its array means nothing, and may not be there.
pub fn senders(sendbuf: *const c_void, comm: Comm) -> i64 {
    match sendbuf as usize {
        IN_PLACE => 0,
        _ => count(comm),
    }
}

/// From how many neighbours this process receives, and to how many it sends.
pub fn neighbours(comm: Comm) -> (i64, i64) {
    let Ok(comm) = get(comm) else { return (0, 0) };
    let Some(topology) = &comm.topology else {
        return (0, 0);
    };
    let (sources, destinations) = topology.neighbours(comm.rank);
    (sources.len() as i64, destinations.len() as i64)
}

/// As many as the root says, in its process; elsewhere its arrays mean nothing, and may not be there.
pub fn at_root(comm: Comm, root: c_int, count: c_int) -> i64 {
    match get(comm).is_ok_and(|comm| comm.rank == root) {
        true => count.into(),
        false => 0,
    }
}
