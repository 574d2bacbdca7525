//! Graph topologies, whose edges every process knows.

use std::ffi::c_int;
use std::sync::Arc;

use super::communicators::no_intra;
use super::grids::{array, check_rank, fill, with_topology};
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::Communicator;
use crate::error::{Error, Result};
use crate::topology::{Graph, Topology};

/// Returns the graph of a communicator.
fn graph_of(comm: &Communicator) -> Result<&Arc<Graph>> {
    match &comm.topology {
        Some(Topology::Graph(graph)) => Ok(graph),
        _ => Err(Error::new(
            ERR_TOPOLOGY,
            "the communicator has no graph as its topology",
        )),
    }
}

/// Returns the graph that the caller describes.
unsafe fn described(
    comm: &Communicator,
    nnodes: c_int,
    indx: *const c_int,
    edges: *const c_int,
) -> Result<Graph> {
    if comm.remote.is_some() {
        return Err(no_intra());
    }
    let most = comm.size();
    if !(0..=most).contains(&nnodes) {
        let text = format!("nnodes is {nnodes}; the communicator has {most} processes");
        return Err(Error::new(ERR_ARG, text));
    }
    // SAFETY: the caller guarantees that the array has this many elements.
    let ends = unsafe { array(indx, nnodes, "indx")? };
    if ends.first().is_some_and(|first| *first < 0) || ends.windows(2).any(|it| it[0] > it[1]) {
        let text = format!("indx is {ends:?}; its numbers must be 0 or more and never decrease");
        return Err(Error::new(ERR_ARG, text));
    }
    // SAFETY: the caller guarantees that the array has this many elements.
    let edges = unsafe { array(edges, ends.last().copied().unwrap_or(0), "edges")? };
    if let Some(edge) = edges.iter().find(|edge| !(0..nnodes).contains(*edge)) {
        let text = format!(
            "an edge leads to {edge}; the graph's nodes are 0 to {}",
            nnodes - 1
        );
        return Err(Error::new(ERR_ARG, text));
    }
    Ok(Graph {
        ends: ends.to_vec(),
        edges: edges.to_vec(),
    })
}

pub unsafe fn graph_create(
    comm: Arc<Communicator>,
    nnodes: c_int,
    indx: *const c_int,
    edges: *const c_int,
    _reorder: c_int,
    comm_graph: Out<Comm>,
) -> Result {
    // SAFETY: the caller guarantees that the arrays have this many elements.
    let graph = unsafe { described(&comm, nnodes, indx, edges)? };
    with_topology(&comm, nnodes, Topology::Graph(Arc::new(graph)), comm_graph)
}

pub unsafe fn graph_map(
    comm: Arc<Communicator>,
    nnodes: c_int,
    indx: *const c_int,
    edges: *const c_int,
    newrank: Out<c_int>,
) -> Result {
    // SAFETY: the caller guarantees that the arrays have this many elements.
    unsafe { described(&comm, nnodes, indx, edges)? };
    newrank.put(match comm.rank < nnodes {
        true => comm.rank,
        false => UNDEFINED,
    });
    Ok(())
}

pub fn graphdims_get(comm: Arc<Communicator>, nnodes: Out<c_int>, nedges: Out<c_int>) -> Result {
    let graph = graph_of(&comm)?;
    nnodes.put(graph.ends.len() as c_int);
    nedges.put(graph.edges.len() as c_int);
    Ok(())
}

pub unsafe fn graph_get(
    comm: Arc<Communicator>,
    maxindex: c_int,
    maxedges: c_int,
    indx: *mut c_int,
    edges: *mut c_int,
) -> Result {
    let graph = graph_of(&comm)?;
    // SAFETY: the caller guarantees that the arrays have this many elements.
    unsafe {
        fill(indx, maxindex, &graph.ends, "indx")?;
        fill(edges, maxedges, &graph.edges, "edges")
    }
}

pub fn graph_neighbors_count(
    comm: Arc<Communicator>,
    rank: c_int,
    nneighbors: Out<c_int>,
) -> Result {
    let graph = graph_of(&comm)?;
    check_rank(&comm, rank)?;
    nneighbors.put(graph.neighbours(rank).len() as c_int);
    Ok(())
}

pub unsafe fn graph_neighbors(
    comm: Arc<Communicator>,
    rank: c_int,
    maxneighbors: c_int,
    neighbors: *mut c_int,
) -> Result {
    let graph = graph_of(&comm)?;
    check_rank(&comm, rank)?;
    // SAFETY: the caller guarantees that the array has `maxneighbors` elements.
    unsafe { fill(neighbors, maxneighbors, graph.neighbours(rank), "neighbors") }
}

pub fn topo_test(comm: Arc<Communicator>, status: Out<c_int>) -> Result {
    let kind = comm.topology.as_ref().map_or(UNDEFINED, Topology::kind);
    status.put(kind);
    Ok(())
}
