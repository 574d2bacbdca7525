//! Topologies: which processes of a communicator are neighbours.

pub mod dims;
mod grid;

use std::borrow::Cow;
use std::ffi::c_int;
use std::sync::Arc;

pub use grid::Grid;

use crate::abi::*;

/// A topology, as far as this process needs it.
#[derive(Clone, Debug)]
pub enum Topology {
    /// A Cartesian grid.
    Grid(Arc<Grid>),
    /// A graph whose edges every process knows, by rank.
    Graph(Arc<Graph>),
    /// A distributed graph: each process knows its own edges.
    Distributed(Arc<Distributed>),
}

/// The edges of a graph.
#[derive(Clone, Debug)]
pub struct Graph {
    /// For each process, the end of its neighbours in `edges`.
    pub ends: Vec<c_int>,
    /// Neighbours of all processes.
    pub edges: Vec<c_int>,
}

impl Graph {
    /// Returns the neighbours of a process.
    pub fn neighbours(&self, rank: c_int) -> &[c_int] {
        let end = |index: usize| self.ends[index] as usize;
        let rank = rank as usize;
        let begin = if rank == 0 { 0 } else { end(rank - 1) };
        &self.edges[begin..end(rank)]
    }
}

/// This process's edges in a distributed graph.
#[derive(Clone, Debug, Default)]
pub struct Distributed {
    /// The processes that send to this one.
    pub sources: Vec<c_int>,
    /// The weights of the edges from `sources`.
    pub source_weights: Vec<c_int>,
    /// The processes that it sends to.
    pub destinations: Vec<c_int>,
    /// The weights of the edges to `destinations`.
    pub destination_weights: Vec<c_int>,
    /// Whether the program has passed weights.
    pub weighted: bool,
}

impl Topology {
    /// Returns its kind: MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH.
    pub fn kind(&self) -> c_int {
        match self {
            Topology::Grid(_) => CART,
            Topology::Graph(_) => GRAPH,
            Topology::Distributed(_) => DIST_GRAPH,
        }
    }

    /// Returns the processes from which the process with this rank receives in a neighbourhood collective, in the order
    /// of the buffers. Beyond the border of a grid a neighbour is MPI_PROC_NULL.
    pub fn sources(&self, rank: c_int) -> Cow<'_, [c_int]> {
        match self {
            Topology::Grid(grid) => Cow::Owned(grid.neighbours(rank)),
            Topology::Graph(graph) => Cow::Borrowed(graph.neighbours(rank)),
            Topology::Distributed(edges) => Cow::Borrowed(&edges.sources),
        }
    }

    /// Returns the processes to which it sends.
    pub fn destinations(&self, rank: c_int) -> Cow<'_, [c_int]> {
        match self {
            Topology::Distributed(edges) => Cow::Borrowed(&edges.destinations),
            _ => self.sources(rank),
        }
    }
}
