//! Routes: what messages need of a communicator, readable without a lock: the engine's group, and the valid ranks.
//!
//! Routes are never freed, only reused. A program that frees a communicator while another thread sends through it
//! breaks MPI's rules; it then gets an error, or sends through another communicator.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use regatta_sys as rg;

use super::Communicator;
use crate::abi::*;
use crate::error::{Error, Result};
use crate::objects::{self, Kind, MAX_OBJECTS};
use crate::process;

/// The route of a communicator.
#[derive(Default)]
pub struct Route {
    /// The handle; 0 if there is no communicator.
    handle: AtomicUsize,
    group: AtomicI32,
    base: AtomicI32,
    peers: AtomicI32,
    rank: AtomicI32,
    size: AtomicI32,
    /// This process's rank in an intracommunicator; -1 in an intercommunicator.
    among: AtomicI32,
}

const CHUNK: usize = 1024;

static ROUTES: [OnceLock<Box<[Route]>>; MAX_OBJECTS / CHUNK] =
    [const { OnceLock::new() }; MAX_OBJECTS / CHUNK];

impl Route {
    /// Returns the engine's group for the program's messages.
    #[inline(always)]
    pub fn group(&self) -> rg::Group {
        let id = self.group.load(Ordering::Relaxed);
        rg::Group { id }
    }

    /// Returns the rank in that group of the first peer.
    #[inline(always)]
    pub fn base(&self) -> c_int {
        self.base.load(Ordering::Relaxed)
    }

    /// Returns the number of peers.
    #[inline(always)]
    pub fn peers(&self) -> c_int {
        self.peers.load(Ordering::Relaxed)
    }

    /// Returns this process's rank in an intracommunicator. Returns `None` in an intercommunicator.
    #[inline(always)]
    pub fn rank_among_peers(&self) -> Option<c_int> {
        let rank = self.among.load(Ordering::Relaxed);
        (rank >= 0).then_some(rank)
    }

    /// Returns this process's rank in the local group.
    #[inline(always)]
    pub fn rank(&self) -> c_int {
        self.rank.load(Ordering::Relaxed)
    }

    /// Returns the size of the local group.
    #[inline(always)]
    pub fn size(&self) -> c_int {
        self.size.load(Ordering::Relaxed)
    }

    /// Returns the rank in the engine's group of a process to send to.
    #[inline(always)]
    pub fn destination(&self, rank: c_int) -> Result<c_int> {
        match rank {
            _ if (0..self.peers()).contains(&rank) => Ok(self.base() + rank),
            PROC_NULL => Ok(rg::NONE),
            _ => Err(self.no_rank("the destination", rank)),
        }
    }

    /// Returns the rank in the engine's group of a process to receive from.
    #[inline(always)]
    pub fn source(&self, rank: c_int) -> Result<c_int> {
        match rank {
            _ if (0..self.peers()).contains(&rank) => Ok(self.base() + rank),
            ANY_SOURCE => Ok(rg::ANY),
            PROC_NULL => Ok(rg::NONE),
            _ => Err(self.no_rank("the source", rank)),
        }
    }

    #[cold]
    fn no_rank(&self, name: &str, rank: c_int) -> Error {
        let last = self.peers() - 1;
        Error::new(
            ERR_RANK,
            format!("{name} is {rank}; ranks here are 0 to {last}"),
        )
    }

    /// Converts a status of the engine.
    #[inline(always)]
    pub fn status(&self, from: &rg::Status) -> Status {
        status_from(from, self.base())
    }

    /// Opens the route for this communicator.
    pub(super) fn open(&self, of: &Communicator) {
        self.group.store(of.group.id, Ordering::Relaxed);
        self.base.store(of.peer_base(), Ordering::Relaxed);
        self.peers
            .store(of.peers().len() as c_int, Ordering::Relaxed);
        self.rank.store(of.rank, Ordering::Relaxed);
        self.size.store(of.size(), Ordering::Relaxed);
        let among = of.remote.as_ref().map_or(of.rank, |_| -1);
        self.among.store(among, Ordering::Relaxed);
        self.handle.store(of.handle.0, Ordering::Release);
    }

    /// Closes the route.
    pub(super) fn close(&self) {
        self.handle.store(0, Ordering::Release);
    }
}

/// Returns the slot index of a communicator.
#[inline(always)]
pub(super) fn index(comm: Comm) -> Option<usize> {
    match comm {
        COMM_WORLD => Some(0),
        COMM_SELF => Some(1),
        _ => objects::index(Kind::Comm, comm.0),
    }
}

/// Returns the route with this index, which may have no communicator.
pub(super) fn at(index: usize) -> &'static Route {
    let chunk =
        ROUTES[index / CHUNK].get_or_init(|| (0..CHUNK).map(|_| Route::default()).collect());
    &chunk[index % CHUNK]
}

/// Returns the route of a communicator.
#[inline(always)]
pub fn route(comm: Comm) -> Result<&'static Route> {
    let found = index(comm).and_then(|index| {
        let route = ROUTES[index / CHUNK].get()?.get(index % CHUNK)?;
        (route.handle.load(Ordering::Acquire) == comm.0).then_some(route)
    });
    match found {
        Some(route) => Ok(route),
        None => Err(none(comm)),
    }
}

/// Returns the rank of a peer in the engine's group, and that group. Returns `None` if an argument is invalid; `route`
/// and its functions report the error.
#[inline(always)]
pub fn peer_now(comm: Comm, rank: c_int) -> Option<(c_int, rg::Group)> {
    let index = index(comm)?;
    let route = ROUTES[index / CHUNK].get()?.get(index % CHUNK)?;
    let is_open = route.handle.load(Ordering::Acquire) == comm.0;
    let is_rank = (rank as u32) < route.peers() as u32;
    (is_open && is_rank).then(|| (route.base() + rank, route.group()))
}

#[inline(always)]
fn status_from(from: &rg::Status, base: c_int) -> Status {
    match from.source {
        rg::NONE => Status::empty(PROC_NULL),
        source => Status::of_message(source - base, from.tag, from.length as u64),
    }
}

/// Converts a status of the engine, for an operation on a communicator that may have been freed since.
#[inline(always)]
pub fn status_of(comm: Comm, from: &rg::Status) -> Status {
    match route(comm) {
        Ok(route) => route.status(from),
        Err(_) => status_from(from, super::registry::retired_base(comm)),
    }
}

/// Returns the error for an invalid communicator.
#[cold]
pub(super) fn none(comm: Comm) -> Error {
    if let Err(error) = process::require() {
        return error;
    }
    let text = match comm {
        COMM_NULL => "the communicator is MPI_COMM_NULL".to_owned(),
        Comm(value) => format!("{value:#x} is not a valid communicator; it may have been freed"),
    };
    Error::new(ERR_COMM, text)
}
