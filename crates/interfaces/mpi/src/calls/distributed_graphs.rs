//! Distributed graphs: any process may name edges, and each process knows those at itself.

use std::ffi::c_int;
use std::sync::Arc;

use super::communicators::no_intra;
use super::grids::{array, fill};
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::{self, Communicator, Inherited, internal_messages, publish};
use crate::error::{Error, Result};
use crate::info;
use crate::topology::{Distributed, Topology};

/// Returns whether this array of weights is MPI_UNWEIGHTED.
fn is_unweighted(weights: *const c_int) -> bool {
    weights as usize == UNWEIGHTED
}

/// Returns the weights of `count` edges. Without weights each is 1. MPI_WEIGHTS_EMPTY is allowed if there are no edges.
unsafe fn weights_of(weights: *const c_int, count: usize, name: &str) -> Result<Vec<c_int>> {
    if is_unweighted(weights) {
        return Ok(vec![1; count]);
    }
    if weights as usize == WEIGHTS_EMPTY {
        return match count {
            0 => Ok(Vec::new()),
            _ => Err(Error::new(
                ERR_ARG,
                format!("{name} is MPI_WEIGHTS_EMPTY, but there are {count} edges"),
            )),
        };
    }
    // SAFETY: the caller guarantees that the array has this many elements.
    let given = unsafe { array(weights, count as c_int, name)? };
    match given.iter().find(|weight| **weight < 0) {
        None => Ok(given.to_vec()),
        Some(weight) => Err(Error::new(
            ERR_ARG,
            format!("{name} has the weight {weight}; weights must be 0 or more"),
        )),
    }
}

/// Returns an array of `count` ranks of the communicator.
unsafe fn ranks_of<'a>(
    comm: &Communicator,
    ranks: *const c_int,
    count: c_int,
    name: &str,
) -> Result<&'a [c_int]> {
    // SAFETY: the caller guarantees that the array has this many elements.
    let ranks = unsafe { array(ranks, count, name)? };
    match ranks.iter().find(|rank| !(0..comm.size()).contains(*rank)) {
        None => Ok(ranks),
        Some(rank) => Err(Error::new(
            ERR_RANK,
            format!("{name} has {rank}; ranks here are 0 to {}", comm.size() - 1),
        )),
    }
}

fn give(comm: &Communicator, edges: Distributed, info: Info, to: Out<Comm>) -> Result {
    let inherited = Inherited {
        topology: Some(Topology::Distributed(Arc::new(edges))),
        hints: info::optional(info)?,
        ..Inherited::of(comm)
    };
    let made = publish(communicator::dup(comm)?, inherited)?;
    to.put(made.handle);
    Ok(())
}

pub unsafe fn dist_graph_create_adjacent(
    comm: Arc<Communicator>,
    indegree: c_int,
    sources: *const c_int,
    sourceweights: *const c_int,
    outdegree: c_int,
    destinations: *const c_int,
    destweights: *const c_int,
    info: Info,
    _reorder: c_int,
    comm_dist_graph: Out<Comm>,
) -> Result {
    if comm.remote.is_some() {
        return Err(no_intra());
    }
    info::optional(info)?;
    // SAFETY: the caller guarantees that the arrays have this many elements.
    let edges = unsafe {
        let sources = ranks_of(&comm, sources, indegree, "sources")?;
        let destinations = ranks_of(&comm, destinations, outdegree, "destinations")?;
        Distributed {
            sources: sources.to_vec(),
            source_weights: weights_of(sourceweights, sources.len(), "sourceweights")?,
            destinations: destinations.to_vec(),
            destination_weights: weights_of(destweights, destinations.len(), "destweights")?,
            weighted: !is_unweighted(sourceweights) && !is_unweighted(destweights),
        }
    };
    give(&comm, edges, info, comm_dist_graph)
}

pub unsafe fn dist_graph_create(
    comm: Arc<Communicator>,
    n: c_int,
    sources: *const c_int,
    degrees: *const c_int,
    destinations: *const c_int,
    weights: *const c_int,
    info: Info,
    _reorder: c_int,
    comm_dist_graph: Out<Comm>,
) -> Result {
    if comm.remote.is_some() {
        return Err(no_intra());
    }
    info::optional(info)?;
    let mut told = Vec::new();
    // SAFETY: the caller guarantees that the arrays have this many elements.
    unsafe {
        let sources = ranks_of(&comm, sources, n, "sources")?;
        let degrees = array(degrees, n, "degrees")?;
        if let Some(degree) = degrees.iter().find(|degree| **degree < 0) {
            let text = format!("degrees has {degree}; it must be 0 or more");
            return Err(Error::new(ERR_ARG, text));
        }
        let count = degrees.iter().sum();
        let destinations = ranks_of(&comm, destinations, count, "destinations")?;
        let weights = weights_of(weights, destinations.len(), "weights")?;
        let sources = sources.iter().zip(degrees);
        let sources = sources.flat_map(|(&source, &degree)| (0..degree).map(move |_| source));
        for ((source, &destination), weight) in sources.zip(destinations).zip(weights) {
            told.extend([source, destination, weight]);
        }
    }
    let weighted = !is_unweighted(weights);
    let mut edges = Distributed {
        weighted,
        ..Distributed::default()
    };
    for list in internal_messages::allgather_lists(comm.group, &told)? {
        for edge in list.chunks_exact(3) {
            if edge[1] == comm.rank {
                edges.sources.push(edge[0]);
                edges.source_weights.push(edge[2]);
            }
            if edge[0] == comm.rank {
                edges.destinations.push(edge[1]);
                edges.destination_weights.push(edge[2]);
            }
        }
    }
    give(&comm, edges, info, comm_dist_graph)
}

/// Returns this process's edges.
fn edges_of(comm: &Communicator) -> Result<&Arc<Distributed>> {
    match &comm.topology {
        Some(Topology::Distributed(edges)) => Ok(edges),
        _ => Err(Error::new(
            ERR_TOPOLOGY,
            "the communicator has no distributed graph as its topology",
        )),
    }
}

pub unsafe fn dist_graph_neighbors_count(
    comm: Arc<Communicator>,
    indegree: Out<c_int>,
    outdegree: Out<c_int>,
    weighted: Out<c_int>,
) -> Result {
    let edges = edges_of(&comm)?;
    indegree.put(edges.sources.len() as c_int);
    outdegree.put(edges.destinations.len() as c_int);
    weighted.put(c_int::from(edges.weighted));
    Ok(())
}

pub unsafe fn dist_graph_neighbors(
    comm: Arc<Communicator>,
    maxindegree: c_int,
    sources: *mut c_int,
    sourceweights: *mut c_int,
    maxoutdegree: c_int,
    destinations: *mut c_int,
    destweights: *mut c_int,
) -> Result {
    let edges = edges_of(&comm)?;
    // SAFETY: the caller guarantees that the arrays have this many elements.
    unsafe {
        fill(sources, maxindegree, &edges.sources, "sources")?;
        fill(
            destinations,
            maxoutdegree,
            &edges.destinations,
            "destinations",
        )?;
        // For an unweighted graph the arrays of weights are not written.
        if edges.weighted && !is_unweighted(sourceweights) {
            fill(
                sourceweights,
                maxindegree,
                &edges.source_weights,
                "sourceweights",
            )?;
        }
        if edges.weighted && !is_unweighted(destweights) {
            fill(
                destweights,
                maxoutdegree,
                &edges.destination_weights,
                "destweights",
            )?;
        }
    }
    Ok(())
}
