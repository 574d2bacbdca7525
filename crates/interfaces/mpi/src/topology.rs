//! Topologies: which processes of a communicator are neighbours.

pub mod dims;
mod grid;

use std::ffi::c_int;
use std::sync::Arc;

pub use grid::Grid;

use crate::abi::*;

/// A topology, and what this process has to know of it.
#[derive(Clone, Debug)]
pub enum Topology {
    /// A grid of any number of dimensions.
    Grid(Arc<Grid>),
    /// Edges that every process knows, by rank.
    Graph(Arc<Graph>),
    /// Edges that are known where they end.
    Distributed(Arc<Distributed>),
}

/// The edges of a graph.
#[derive(Clone, Debug)]
pub struct Graph {
    /// For each process, the end of its neighbours in `edges`.
    pub ends: Vec<c_int>,
    /// Neighbours.
    pub edges: Vec<c_int>,
}

impl Graph {
    /// The neighbours of a process.
    pub fn neighbours(&self, rank: c_int) -> &[c_int] {
        let end = |index: usize| self.ends[index] as usize;
        let rank = rank as usize;
        let begin = if rank == 0 { 0 } else { end(rank - 1) };
        &self.edges[begin..end(rank)]
    }
}

/// This process' edges in a distributed graph.
#[derive(Clone, Debug, Default)]
pub struct Distributed {
    /// The processes that send to this one.
    pub sources: Vec<c_int>,
    /// The weights of these edges.
    pub source_weights: Vec<c_int>,
    /// The processes that it sends to.
    pub destinations: Vec<c_int>,
    /// The weights of these edges.
    pub destination_weights: Vec<c_int>,
    /// Whether the program has given weights.
    pub weighted: bool,
}

impl Topology {
    /// MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH.
    pub fn kind(&self) -> c_int {
        match self {
            Topology::Grid(_) => CART,
            Topology::Graph(_) => GRAPH,
            Topology::Distributed(_) => DIST_GRAPH,
        }
    }

    /// From whom the process with this rank receives in a collective among neighbours, and to whom it sends, in the order
    /// of the buffers. MPI_PROC_NULL is nobody, beyond the border of a grid.
    pub fn neighbours(&self, rank: c_int) -> (Vec<c_int>, Vec<c_int>) {
        match self {
            Topology::Grid(grid) => grid.neighbours(rank),
            Topology::Graph(graph) => {
                let all = graph.neighbours(rank).to_vec();
                (all.clone(), all)
            }
            Topology::Distributed(edges) => (edges.sources.clone(), edges.destinations.clone()),
        }
    }
}
