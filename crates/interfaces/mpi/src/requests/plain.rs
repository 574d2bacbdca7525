//! Plain requests: each is one of the engine's, and stands in the place that the engine's has.
//!
//! So to take a place and to give it back is one store, without a lock and without a list of free places: the engine has done that already. The
//! engine uses a place again as soon as its request is complete, which may be before a thread here has given it back; it then finds
//! another request there, and leaves it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use regatta_sys as rg;

use super::slots::FIRST_PLAIN;
use crate::abi::*;
use crate::objects::{self, Kind, MOST};
use crate::process;

/// A place.
#[derive(Default)]
struct Place {
    /// The engine's request; 0 while there is none.
    request: AtomicU64,
    /// The communicator whose error handler is called.
    comm: AtomicUsize,
}

const CHUNK: usize = 1024;
const CHUNKS: usize = (MOST - FIRST_PLAIN) / CHUNK;

static PLACES: [OnceLock<Box<[Place]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

/// All operations that were complete when they were started have this request: it costs nothing, and nobody has to give it back.
pub const COMPLETE: Request = Request(objects::handle(Kind::Request, 0, MOST - 1));

/// The place that a request of the engine's has. The last one is that of `COMPLETE`.
#[inline(always)]
fn index_of(request: rg::Request) -> Option<usize> {
    let index = (request.id as u32).wrapping_sub(1) as usize;
    (index < MOST - FIRST_PLAIN - 1).then_some(index)
}

#[inline(always)]
fn at(index: usize) -> Option<&'static Place> {
    PLACES.get(index / CHUNK)?.get()?.get(index % CHUNK)
}

#[inline(always)]
fn handle(request: rg::Request, index: usize) -> Request {
    let generation = (request.id >> 32) as u32;
    Request(objects::handle(
        Kind::Request,
        generation,
        FIRST_PLAIN + index,
    ))
}

/// A request for one of the engine's; `None` if there are more of those than places.
#[inline(always)]
pub fn open(request: rg::Request, comm: Comm) -> Option<Request> {
    if request == rg::REQUEST_COMPLETE {
        return Some(COMPLETE);
    }
    let index = index_of(request)?;
    let chunk = match PLACES[index / CHUNK].get() {
        Some(chunk) => chunk,
        None => make(index / CHUNK),
    };
    let place = &chunk[index % CHUNK];
    place.comm.store(comm.0, Ordering::Relaxed);
    place.request.store(request.id, Ordering::Release);
    Some(handle(request, index))
}

#[cold]
fn make(chunk: usize) -> &'static [Place] {
    PLACES[chunk].get_or_init(|| (0..CHUNK).map(|_| Place::default()).collect())
}

/// The engine's request, and the communicator.
#[inline(always)]
pub fn find(request: Request) -> Option<(rg::Request, Comm)> {
    if request == COMPLETE {
        return Some((rg::REQUEST_COMPLETE, COMM_WORLD));
    }
    let index = objects::index(Kind::Request, request.0)?.checked_sub(FIRST_PLAIN)?;
    let place = at(index)?;
    let id = place.request.load(Ordering::Acquire);
    let found = rg::Request { id };
    let is_it = id != 0 && handle(found, index) == request;
    is_it.then(|| (found, Comm(place.comm.load(Ordering::Relaxed))))
}

/// This request of the engine's, which was found here, is over. In a program of one thread nothing else can have come to its place
/// meanwhile. Among threads it may have, and may look alike in all that a handle has of it: so the engine's own number is compared.
#[inline(always)]
pub fn close(found: rg::Request) {
    let Some(place) = index_of(found).and_then(at) else {
        return;
    };
    if process::has_many_threads() {
        let _ = place
            .request
            .compare_exchange(found.id, 0, Ordering::Release, Ordering::Relaxed);
    } else {
        place.request.store(0, Ordering::Relaxed);
    }
}

/// The communicators of those that are open.
pub fn comms() -> impl Iterator<Item = Comm> {
    let chunks = PLACES.iter().filter_map(OnceLock::get);
    let places = chunks.flat_map(|chunk| chunk.iter());
    places
        .filter(|place| place.request.load(Ordering::Acquire) != 0)
        .map(|place| Comm(place.comm.load(Ordering::Relaxed)))
}
