//! The slots of requests.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use regatta_sys as rg;

use super::{Operation, plain};
use crate::abi::*;
use crate::error::{Error, Result};
use crate::objects::{self, Kind, MOST};

/// An operation, while there is one.
type Held = Mutex<Option<Box<dyn Operation>>>;

/// A request, as it is found by its handle.
#[derive(Clone, Copy)]
pub struct Slot {
    plain: Option<rg::Request>,
    comm: Comm,
    operation: &'static Held,
}

/// Plain requests have no operation.
static NO_OPERATION: Held = Mutex::new(None);

/// The content of a slot.
pub enum Content {
    /// A request of the engine's.
    Plain(rg::Request),
    /// An operation, locked.
    Operation(MutexGuard<'static, Option<Box<dyn Operation>>>),
}

impl Slot {
    /// Of a plain request, and its communicator.
    #[inline(always)]
    pub fn of_plain(plain: rg::Request, comm: Comm) -> Slot {
        Slot {
            plain: Some(plain),
            comm,
            operation: &NO_OPERATION,
        }
    }

    /// The communicator whose error handler is called.
    #[inline(always)]
    pub fn comm(&self) -> Comm {
        self.comm
    }

    /// The engine's request, if it is a plain one.
    #[inline(always)]
    pub fn plain(&self) -> Option<rg::Request> {
        self.plain
    }

    /// The operation, if nobody is at it.
    pub fn try_operation(&self) -> Option<MutexGuard<'static, Option<Box<dyn Operation>>>> {
        match self.operation.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// The operation, as soon as nobody else is at it.
    pub fn operation(&self) -> MutexGuard<'static, Option<Box<dyn Operation>>> {
        self.operation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Either.
    pub fn content(&self) -> Content {
        match self.plain() {
            Some(request) => Content::Plain(request),
            None => Content::Operation(self.operation()),
        }
    }
}

/// The place of an operation.
#[derive(Default)]
struct Place {
    /// The handle; 0 while there is no request here.
    handle: AtomicUsize,
    generation: AtomicU32,
    comm: AtomicUsize,
    operation: Held,
}

/// The first place of plain requests: those of operations come before it.
pub const FIRST_PLAIN: usize = MOST / 2;
const CHUNK: usize = 1024;
const CHUNKS: usize = FIRST_PLAIN / CHUNK;

static PLACES: [OnceLock<Box<[Place]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];
/// Free places that no thread keeps.
static FREE: Mutex<Free> = Mutex::new(Free {
    places: Vec::new(),
    made: 0,
});

struct Free {
    places: Vec<u32>,
    made: usize,
}

/// Free places of a thread.
struct Kept(Vec<u32>);

/// Most that a thread keeps, and half of that is what it takes and gives at a time.
const KEPT: usize = 256;

impl Kept {
    #[cold]
    fn refill(&mut self) -> Result {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let from = free.places.len().saturating_sub(KEPT / 2);
        self.0.extend(free.places.drain(from..));
        if self.0.is_empty() {
            let first = free.made;
            if first == FIRST_PLAIN {
                return Err(Error::new(ERR_NO_MEM, "there are too many requests"));
            }
            PLACES[first / CHUNK].get_or_init(|| (0..CHUNK).map(|_| Place::default()).collect());
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
        free.places.extend(self.0.drain(..KEPT / 2));
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.places.append(&mut self.0);
    }
}

thread_local! {
    static MINE: RefCell<Kept> = const { RefCell::new(Kept(Vec::new())) };
}

/// Takes a free place for an operation.
pub(super) fn take(operation: Box<dyn Operation>, comm: Comm) -> Result<Request> {
    let index = MINE.with_borrow_mut(|mine| {
        if mine.0.is_empty() {
            mine.refill()?;
        }
        Ok(mine.0.pop().unwrap_or_default())
    })?;
    let index = index as usize;
    let place = at(index).ok_or_else(|| none(REQUEST_NULL))?;
    *place
        .operation
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = Some(operation);
    place.comm.store(comm.0, Ordering::Relaxed);
    let generation = place.generation.load(Ordering::Relaxed);
    let handle = objects::handle(Kind::Request, generation, index);
    place.handle.store(handle, Ordering::Release);
    Ok(Request(handle))
}

/// Empties the place of an operation. Of two threads that do it only one does.
pub(super) fn give_back(request: Request) {
    let Some((index, place)) = place(request) else {
        return;
    };
    let mine = place
        .handle
        .compare_exchange(request.0, 0, Ordering::Acquire, Ordering::Relaxed);
    if mine.is_err() {
        return;
    }
    *place
        .operation
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = None;
    let generation = place.generation.load(Ordering::Relaxed);
    place
        .generation
        .store(generation.wrapping_add(1), Ordering::Relaxed);
    // In a thread that ends there may be none any more: then the place stays empty.
    let _ = MINE.try_with(|mine| {
        let mut mine = mine.borrow_mut();
        mine.0.push(index as u32);
        if mine.0.len() > KEPT {
            mine.spill();
        }
    });
}

#[inline(always)]
fn at(index: usize) -> Option<&'static Place> {
    PLACES.get(index / CHUNK)?.get()?.get(index % CHUNK)
}

#[inline(always)]
fn place(request: Request) -> Option<(usize, &'static Place)> {
    let index = objects::index(Kind::Request, request.0)?;
    let place = at(index)?;
    (place.handle.load(Ordering::Acquire) == request.0).then_some((index, place))
}

/// The communicators of all requests that there are.
fn comms() -> impl Iterator<Item = Comm> {
    let chunks = PLACES.iter().map_while(OnceLock::get);
    let places = chunks.flat_map(|chunk| chunk.iter());
    let operations = places
        .filter(|place| place.handle.load(Ordering::Acquire) != 0)
        .map(|place| Comm(place.comm.load(Ordering::Relaxed)));
    operations.chain(plain::comms())
}

/// Whether there are requests in this communicator.
pub fn any_in(comm: Comm) -> bool {
    comms().any(|it| it == comm)
}

/// How many requests there are.
pub fn open() -> usize {
    comms().count()
}

/// The slot of a request.
#[inline(always)]
pub fn slot(request: Request) -> Result<Slot> {
    if let Some((request, comm)) = plain::find(request) {
        return Ok(Slot::of_plain(request, comm));
    }
    match place(request) {
        Some((_, place)) => Ok(Slot {
            plain: None,
            comm: Comm(place.comm.load(Ordering::Relaxed)),
            operation: &place.operation,
        }),
        None => Err(none(request)),
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
