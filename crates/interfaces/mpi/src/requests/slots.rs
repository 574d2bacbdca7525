//! The slots of requests.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use regatta_sys as rg;

use super::Operation;
use crate::abi::*;
use crate::error::{Error, Result};
use crate::objects::{self, Kind, MOST};
use crate::process;

/// The slot of a request.
#[derive(Default)]
pub struct Slot {
    /// The handle; 0 while there is no request here.
    handle: AtomicUsize,
    generation: AtomicU32,
    /// The engine's request, of a plain one.
    plain: AtomicU64,
    is_plain: AtomicBool,
    comm: AtomicUsize,
    operation: Mutex<Option<Box<dyn Operation>>>,
}

/// The content of a slot.
pub enum Content<'a> {
    /// A request of the engine's.
    Plain(rg::Request),
    /// An operation, locked.
    Operation(MutexGuard<'a, Option<Box<dyn Operation>>>),
}

/// All sends that were complete when they were started have this request: it costs nothing, and nobody has to give it back.
pub const COMPLETE: Request = Request(objects::handle(Kind::Request, 0, MOST - 1));

static COMPLETE_SLOT: Slot = Slot {
    handle: AtomicUsize::new(COMPLETE.0),
    generation: AtomicU32::new(0),
    plain: AtomicU64::new(rg::REQUEST_COMPLETE.id),
    is_plain: AtomicBool::new(true),
    comm: AtomicUsize::new(COMM_WORLD.0),
    operation: Mutex::new(None),
};

impl Slot {
    /// The communicator whose error handler is called.
    pub fn comm(&self) -> Comm {
        Comm(self.comm.load(Ordering::Relaxed))
    }

    /// The engine's request, if it is a plain one.
    #[inline(always)]
    pub fn plain(&self) -> Option<rg::Request> {
        let id = self.plain.load(Ordering::Relaxed);
        self.is_plain
            .load(Ordering::Relaxed)
            .then_some(rg::Request { id })
    }

    /// The operation, if nobody is at it.
    pub fn try_operation(&self) -> Option<MutexGuard<'_, Option<Box<dyn Operation>>>> {
        match self.operation.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// The operation, as soon as nobody else is at it.
    pub fn operation(&self) -> MutexGuard<'_, Option<Box<dyn Operation>>> {
        self.operation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Either.
    pub fn content(&self) -> Content<'_> {
        match self.plain() {
            Some(request) => Content::Plain(request),
            None => Content::Operation(self.operation()),
        }
    }

    #[inline(always)]
    pub(super) fn fill_plain(&self, request: rg::Request, comm: Comm) {
        self.plain.store(request.id, Ordering::Relaxed);
        self.is_plain.store(true, Ordering::Relaxed);
        self.comm.store(comm.0, Ordering::Relaxed);
    }

    pub(super) fn fill(&self, operation: Box<dyn Operation>, comm: Comm) {
        *self.operation() = Some(operation);
        self.is_plain.store(false, Ordering::Relaxed);
        self.comm.store(comm.0, Ordering::Relaxed);
    }
}

const CHUNK: usize = 1024;

static SLOTS: [OnceLock<Box<[Slot]>>; MOST / CHUNK] = [const { OnceLock::new() }; MOST / CHUNK];
/// Free slots that no thread keeps.
static FREE: Mutex<Free> = Mutex::new(Free {
    slots: Vec::new(),
    made: 0,
});

struct Free {
    slots: Vec<u32>,
    made: usize,
}

/// Free slots of a thread.
struct Kept(Vec<u32>);

/// Most that a thread keeps, and half of that is what it takes and gives at a time.
const KEPT: usize = 256;

impl Kept {
    #[cold]
    fn refill(&mut self) -> Result {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let from = free.slots.len().saturating_sub(KEPT / 2);
        self.0.extend(free.slots.drain(from..));
        if self.0.is_empty() {
            let first = free.made;
            // The last place is that of COMPLETE.
            if first + KEPT / 2 == MOST {
                return Err(Error::new(ERR_NO_MEM, "there are too many requests"));
            }
            SLOTS[first / CHUNK].get_or_init(|| (0..CHUNK).map(|_| Slot::default()).collect());
            free.made += KEPT / 2;
            // The lowest is taken first.
            self.0
                .extend((first..first + KEPT / 2).rev().map(|index| index as u32));
        }
        Ok(())
    }

    #[cold]
    fn spill(&mut self) {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.slots.extend(self.0.drain(..KEPT / 2));
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.slots.append(&mut self.0);
    }
}

thread_local! {
    static MINE: RefCell<Kept> = const { RefCell::new(Kept(Vec::new())) };
}

/// Takes a free slot, and fills it.
#[inline(always)]
pub(super) fn take(fill: impl FnOnce(&Slot)) -> Result<Request> {
    let index = MINE.with_borrow_mut(|mine| {
        if mine.0.is_empty() {
            mine.refill()?;
        }
        Ok(mine.0.pop().unwrap_or_default())
    })?;
    let index = index as usize;
    let slot = at(index).ok_or_else(|| none(REQUEST_NULL))?;
    fill(slot);
    let generation = slot.generation.load(Ordering::Relaxed);
    let handle = objects::handle(Kind::Request, generation, index);
    slot.handle.store(handle, Ordering::Release);
    Ok(Request(handle))
}

/// Empties the slot of a request. Of two threads that do it only one does.
#[inline(always)]
pub(super) fn give_back(request: Request) {
    if request == COMPLETE {
        return;
    }
    let Ok(slot) = slot(request) else { return };
    if process::has_many_threads() {
        let mine = slot
            .handle
            .compare_exchange(request.0, 0, Ordering::Acquire, Ordering::Relaxed);
        if mine.is_err() {
            return;
        }
    } else {
        slot.handle.store(0, Ordering::Relaxed);
    }
    if !slot.is_plain.load(Ordering::Relaxed) {
        *slot.operation() = None;
    }
    let generation = slot.generation.load(Ordering::Relaxed);
    slot.generation
        .store(generation.wrapping_add(1), Ordering::Relaxed);
    let index = request.0 & (MOST - 1);
    // In a thread that ends there may be none any more: then the slot stays empty.
    let _ = MINE.try_with(|mine| {
        let mut mine = mine.borrow_mut();
        mine.0.push(index as u32);
        if mine.0.len() > KEPT {
            mine.spill();
        }
    });
}

#[inline(always)]
fn at(index: usize) -> Option<&'static Slot> {
    SLOTS[index / CHUNK].get()?.get(index % CHUNK)
}

/// Whether there are requests in this communicator.
pub fn any_in(comm: Comm) -> bool {
    let chunks = SLOTS.iter().map_while(OnceLock::get);
    let mut slots = chunks.flat_map(|chunk| chunk.iter());
    slots.any(|slot| slot.handle.load(Ordering::Acquire) != 0 && slot.comm() == comm)
}

/// How many requests there are.
pub fn open() -> usize {
    let chunks = SLOTS.iter().map_while(OnceLock::get);
    let slots = chunks.flat_map(|chunk| chunk.iter());
    slots
        .filter(|slot| slot.handle.load(Ordering::Acquire) != 0)
        .count()
}

/// The slot of a request.
#[inline(always)]
pub fn slot(request: Request) -> Result<&'static Slot> {
    if request == COMPLETE {
        return Ok(&COMPLETE_SLOT);
    }
    let found = objects::index(Kind::Request, request.0).and_then(at);
    match found {
        Some(slot) if slot.handle.load(Ordering::Acquire) == request.0 => Ok(slot),
        _ => Err(none(request)),
    }
}

#[cold]
fn none(request: Request) -> Error {
    if let Err(error) = crate::process::require() {
        return error;
    }
    let text = match request {
        REQUEST_NULL => "the request is MPI_REQUEST_NULL".to_owned(),
        Request(value) => {
            format!("{value:#x} is no request, or one that is complete or has been freed")
        }
    };
    Error::new(ERR_REQUEST, text)
}
