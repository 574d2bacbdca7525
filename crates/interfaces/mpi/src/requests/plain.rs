//! Plain requests: each is a request of the engine, and has the slot with the number of the engine's slot.
//!
//! So opening and closing a slot is one store, without a lock or a list of free slots: the engine has allocated the
//! slot already. The engine reuses a slot as soon as its request is complete, possibly before the thread here has
//! closed it. `close` then finds another request in the slot, and leaves it unchanged.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use regatta_sys as rg;

use super::chunk::{Chunk, SLOTS_PER_CHUNK};
use super::slots::FIRST_PLAIN;
use crate::abi::*;
use crate::objects::{self, Kind, MAX_OBJECTS};
use crate::process;

/// The slot of a plain request.
#[derive(Default)]
struct PlainSlot {
    /// The engine's request; 0 if there is none.
    request: AtomicU64,
    /// The communicator whose error handler is called.
    comm: AtomicUsize,
}

const CHUNKS: usize = (MAX_OBJECTS - FIRST_PLAIN) / SLOTS_PER_CHUNK;

static SLOTS: [OnceLock<Chunk<PlainSlot>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

/// The request of all operations that are complete as soon as they are started. It takes no slot, and need not be
/// freed.
pub const COMPLETE: Request = Request(objects::handle(Kind::Request, 0, MAX_OBJECTS - 1));

/// Returns the slot index for a request of the engine. The last index is reserved for `COMPLETE`.
#[inline(always)]
fn index_of(request: rg::Request) -> Option<usize> {
    let index = (request.id as u32).wrapping_sub(1) as usize;
    (index < MAX_OBJECTS - FIRST_PLAIN - 1).then_some(index)
}

#[inline(always)]
fn at(index: usize) -> Option<&'static PlainSlot> {
    Some(SLOTS.get(index / SLOTS_PER_CHUNK)?.get()?.slot(index))
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

/// Returns a request for one of the engine. Returns `None` if the engine's slot number is beyond the table.
#[inline(always)]
pub fn open(request: rg::Request, comm: Comm) -> Option<Request> {
    if request == rg::REQUEST_COMPLETE {
        return Some(COMPLETE);
    }
    let index = index_of(request)?;
    let chunk = match SLOTS[index / SLOTS_PER_CHUNK].get() {
        Some(chunk) => chunk,
        None => make(index / SLOTS_PER_CHUNK),
    };
    let slot = chunk.slot(index);
    slot.comm.store(comm.0, Ordering::Relaxed);
    slot.request.store(request.id, Ordering::Release);
    chunk.mark(index);
    Some(handle(request, index))
}

#[cold]
fn make(chunk: usize) -> &'static Chunk<PlainSlot> {
    SLOTS[chunk].get_or_init(Chunk::new)
}

/// Returns the engine's request, and the communicator.
#[inline(always)]
pub fn find(request: Request) -> Option<(rg::Request, Comm)> {
    if request == COMPLETE {
        return Some((rg::REQUEST_COMPLETE, COMM_WORLD));
    }
    let index = objects::index(Kind::Request, request.0)?.checked_sub(FIRST_PLAIN)?;
    let slot = at(index)?;
    let id = slot.request.load(Ordering::Acquire);
    let found = rg::Request { id };
    let is_it = id != 0 && handle(found, index) == request;
    is_it.then(|| (found, Comm(slot.comm.load(Ordering::Relaxed))))
}

/// Closes the slot of this request of the engine, which is complete. In a single-threaded program no other request can
/// have taken the slot meanwhile. With several threads one may have, possibly with the same handle, so the engine's
/// request id is compared.
#[inline(always)]
pub fn close(found: rg::Request) {
    let Some(slot) = index_of(found).and_then(at) else {
        return;
    };
    if process::has_many_threads() {
        let _ = slot
            .request
            .compare_exchange(found.id, 0, Ordering::Release, Ordering::Relaxed);
    } else {
        slot.request.store(0, Ordering::Relaxed);
    }
}

/// Calls `found` with the communicator of each open request. Only one caller at a time.
pub(super) fn each_open(found: &mut impl FnMut(Comm)) {
    for chunk in SLOTS.iter().filter_map(OnceLock::get) {
        chunk.open_slots(&mut |slot| {
            let is_open = slot.request.load(Ordering::Acquire) != 0;
            if is_open {
                found(Comm(slot.comm.load(Ordering::Relaxed)));
            }
            is_open
        });
    }
}
