//! The slots of operations, and looking up requests by their handles, including plain ones.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use regatta_sys as rg;
use rustc_hash::FxHashSet;

use super::chunk::{Chunk, SLOTS_PER_CHUNK};
use super::lock::{Locked, LockedOperation};
use super::{Operation, plain};
use crate::abi::*;
use crate::error::{Error, Result};
use crate::objects::{self, GENERATIONS, Kind, MAX_OBJECTS, MIN_RESTING};
use crate::process;
use crate::progress::watch;

/// A request that has been looked up by its handle.
#[derive(Clone, Copy)]
pub struct FoundRequest {
    plain: Option<rg::Request>,
    comm: Comm,
    operation: &'static Locked,
}

/// Stands for the missing operation of a plain request.
static NO_OPERATION: Locked = Locked::none();

impl FoundRequest {
    /// Returns a plain request in this communicator.
    #[inline(always)]
    pub fn of_plain(plain: rg::Request, comm: Comm) -> FoundRequest {
        FoundRequest {
            plain: Some(plain),
            comm,
            operation: &NO_OPERATION,
        }
    }

    /// Returns the communicator whose error handler is called.
    #[inline(always)]
    pub fn comm(&self) -> Comm {
        self.comm
    }

    /// Returns the engine's request if it is a plain one.
    #[inline(always)]
    pub fn plain(&self) -> Option<rg::Request> {
        self.plain
    }

    /// Locks the operation, unless another thread has it locked or asks for it.
    pub fn try_operation(&self) -> Option<LockedOperation> {
        if watch::is_asked(self.address()) {
            return None;
        }
        self.operation.try_lock()
    }

    /// Locks the operation, after waiting until no other thread has it locked. A thread that sleeps with it releases
    /// it.
    pub fn operation(&self) -> LockedOperation {
        if let Some(free) = self.operation.try_lock() {
            return free;
        }
        let _asking = watch::ask(self.address());
        self.operation.lock()
    }

    /// Returns the address of the operation, which is unique among existing operations.
    pub fn address(&self) -> usize {
        self.operation.address()
    }
}

/// The slot of an operation.
#[derive(Default)]
struct OperationSlot {
    /// The handle; 0 if there is no request.
    handle: AtomicUsize,
    generation: AtomicU32,
    comm: AtomicUsize,
    operation: Locked,
}

/// Index of the first slot of plain requests; slots of operations have lower indices.
pub const FIRST_PLAIN: usize = MAX_OBJECTS / 2;
const CHUNKS: usize = FIRST_PLAIN / SLOTS_PER_CHUNK;

static SLOTS: [OnceLock<Chunk<OperationSlot>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];
/// Free slots that no thread keeps.
static FREE: Mutex<Free> = Mutex::new(Free {
    slots: Vec::new(),
    resting: VecDeque::new(),
    made: 0,
});

struct Free {
    slots: Vec<u32>,
    /// Slots that have used all their generations; see [`objects::Places`].
    resting: VecDeque<u32>,
    made: usize,
}

/// Free slots of a thread.
struct Kept(Vec<u32>);

/// Maximum number of free slots that a thread keeps. It takes and gives back half as many at a time.
const KEPT: usize = 256;

impl Kept {
    #[cold]
    fn refill(&mut self) -> Result {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let from = free.slots.len().saturating_sub(KEPT / 2);
        self.0.extend(free.slots.drain(from..));
        let rested = match free.made {
            FIRST_PLAIN => free.resting.len(),
            _ => free.resting.len().saturating_sub(MIN_RESTING),
        };
        if self.0.is_empty() {
            self.0.extend(free.resting.drain(..rested.min(KEPT / 2)));
        }
        if self.0.is_empty() {
            let first = free.made;
            if first == FIRST_PLAIN {
                return Err(Error::new(ERR_NO_MEM, "there are too many requests"));
            }
            SLOTS[first / SLOTS_PER_CHUNK].get_or_init(Chunk::new);
            free.made += KEPT / 2;
            // The lowest index is taken first.
            self.0
                .extend((first..first + KEPT / 2).rev().map(|index| index as u32));
        }
        Ok(())
    }

    fn take(&mut self) -> Result<u32> {
        if self.0.is_empty() {
            self.refill()?;
        }
        Ok(self.0.pop().unwrap_or_default())
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

/// Takes a free slot for an operation.
pub(super) fn take(operation: Box<dyn Operation>, comm: Comm) -> Result<Request> {
    let taken = MINE.try_with(|mine| mine.borrow_mut().take());
    // In `atexit` functions and in destructors the thread's list of free slots no longer exists: then the slot is taken
    // from, and returned to, the common list.
    let index = taken.unwrap_or_else(|_| Kept(Vec::new()).take())?;
    let index = index as usize;
    let chunk = chunk(index).ok_or_else(|| none(REQUEST_NULL))?;
    let slot = chunk.slot(index);
    *slot.operation.lock() = Some(operation);
    slot.comm.store(comm.0, Ordering::Relaxed);
    let generation = slot.generation.load(Ordering::Relaxed);
    let handle = objects::handle(Kind::Request, generation, index);
    slot.handle.store(handle, Ordering::Release);
    chunk.mark(index);
    Ok(Request(handle))
}

/// Frees the slot of an operation. If two threads do so, only one takes effect.
pub(super) fn give_back(request: Request) {
    let Some((index, slot)) = take_out(request) else {
        return;
    };
    let over = slot.operation.lock().take();
    drop(over);
    put_back(index, slot);
}

/// Frees the slot of an operation that the caller has locked.
pub(super) fn give_back_held(request: Request, mut operation: LockedOperation) {
    let Some((index, slot)) = take_out(request) else {
        return;
    };
    let over = operation.take();
    drop(operation);
    drop(over);
    put_back(index, slot);
}

/// Makes the handle invalid. Returns `None` if another thread has done so.
fn take_out(request: Request) -> Option<(usize, &'static OperationSlot)> {
    let (index, slot) = slot(request)?;
    if process::has_many_threads() {
        let mine = slot
            .handle
            .compare_exchange(request.0, 0, Ordering::Acquire, Ordering::Relaxed);
        mine.ok()?;
    } else {
        slot.handle.store(0, Ordering::Relaxed);
    }
    Some((index, slot))
}

/// Makes an empty slot available.
fn put_back(index: usize, slot: &OperationSlot) {
    let generation = (slot.generation.load(Ordering::Relaxed) + 1) % GENERATIONS;
    slot.generation.store(generation, Ordering::Relaxed);
    if generation == 0 {
        rest(index);
        return;
    }
    let kept = MINE.try_with(|mine| {
        let mut mine = mine.borrow_mut();
        mine.0.push(index as u32);
        if mine.0.len() > KEPT {
            mine.spill();
        }
    });
    if kept.is_err() {
        drop(Kept(vec![index as u32]));
    }
}

/// Lets a slot rest that has used all its generations.
#[cold]
fn rest(index: usize) {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    free.resting.push_back(index as u32);
}

#[inline(always)]
fn chunk(index: usize) -> Option<&'static Chunk<OperationSlot>> {
    SLOTS.get(index / SLOTS_PER_CHUNK)?.get()
}

#[inline(always)]
fn slot(request: Request) -> Option<(usize, &'static OperationSlot)> {
    let index = objects::index(Kind::Request, request.0)?;
    let slot = chunk(index)?.slot(index);
    (slot.handle.load(Ordering::Acquire) == request.0).then_some((index, slot))
}

/// Calls `found` with the communicator of each open request.
fn each_open(mut found: impl FnMut(Comm)) {
    static SEARCH: Mutex<()> = Mutex::new(());
    let _one_at_a_time = SEARCH.lock().unwrap_or_else(PoisonError::into_inner);
    for chunk in SLOTS.iter().map_while(OnceLock::get) {
        chunk.open_slots(&mut |slot| {
            let is_open = slot.handle.load(Ordering::Acquire) != 0;
            if is_open {
                found(Comm(slot.comm.load(Ordering::Relaxed)));
            }
            is_open
        });
    }
    plain::each_open(&mut found);
}

/// Returns the communicators that have open requests.
pub fn comms_in_use() -> FxHashSet<Comm> {
    let mut comms = FxHashSet::default();
    each_open(|comm| {
        comms.insert(comm);
    });
    comms
}

/// Returns the number of open requests.
pub fn open() -> usize {
    let mut count = 0;
    each_open(|_| count += 1);
    count
}

/// Looks up a request by its handle.
#[inline(always)]
pub fn find(request: Request) -> Result<FoundRequest> {
    if let Some((request, comm)) = plain::find(request) {
        return Ok(FoundRequest::of_plain(request, comm));
    }
    match slot(request) {
        Some((_, slot)) => Ok(FoundRequest {
            plain: None,
            comm: Comm(slot.comm.load(Ordering::Relaxed)),
            operation: &slot.operation,
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
            format!("{value:#x} is not a valid request; it may be complete or freed")
        }
    };
    Error::new(ERR_REQUEST, text)
}
