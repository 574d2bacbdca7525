//! All communicators of this process, by their handles.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{Communicator, routes};
use crate::abi::*;
use crate::error::{Error, Result};
use crate::objects::{self, Kind, MOST};
use crate::requests;

#[derive(Default)]
struct Registry {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    communicator: Option<Arc<Communicator>>,
}

static REGISTRY: RwLock<Registry> = RwLock::new(Registry {
    slots: Vec::new(),
    free: Vec::new(),
});

fn read() -> RwLockReadGuard<'static, Registry> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Registry> {
    REGISTRY.write().unwrap_or_else(PoisonError::into_inner)
}

/// The places of MPI_COMM_WORLD and MPI_COMM_SELF, which others do not get.
const PREDEFINED: usize = 2;

impl Registry {
    /// The slot of a predefined communicator, or of one that has been added.
    fn slot(&mut self, index: usize) -> &mut Slot {
        let least = PREDEFINED.max(index + 1);
        if self.slots.len() < least {
            self.slots.resize_with(least, Slot::default);
        }
        &mut self.slots[index]
    }
}

/// Adds MPI_COMM_WORLD or MPI_COMM_SELF.
pub(super) fn insert_predefined(communicator: Communicator) {
    let index = routes::index(communicator.handle).unwrap_or_default();
    routes::at(index).open(&communicator);
    write().slot(index).communicator = Some(Arc::new(communicator));
}

/// A handle for a communicator that is made later; it leads nowhere yet.
pub(super) fn reserve() -> Result<Comm> {
    let mut registry = write();
    let index = match registry.free.pop() {
        Some(index) => index,
        None if registry.slots.len() < MOST => registry.slots.len().max(PREDEFINED),
        None => return Err(Error::new(ERR_NO_MEM, "there are too many communicators")),
    };
    let generation = registry.slot(index).generation;
    Ok(Comm(objects::handle(Kind::Comm, generation, index)))
}

/// Adds a communicator whose handle was reserved.
pub(super) fn fill(communicator: Communicator) -> Arc<Communicator> {
    let index = routes::index(communicator.handle).unwrap_or_default();
    let communicator = Arc::new(communicator);
    let mut registry = write();
    routes::at(index).open(&communicator);
    registry.slot(index).communicator = Some(communicator.clone());
    communicator
}

/// Adds a communicator, which is told its handle.
pub fn insert(make: impl FnOnce(Comm) -> Communicator) -> Result<Arc<Communicator>> {
    Ok(fill(make(reserve()?)))
}

/// The communicator with this handle.
pub fn get(comm: Comm) -> Result<Arc<Communicator>> {
    let found = routes::index(comm).and_then(|index| read().slots.get(index)?.communicator.clone());
    match found {
        Some(found) if found.handle == comm => Ok(found),
        _ => Err(routes::none(comm)),
    }
}

/// Takes a communicator out: its handle is stale from now on. Requests that are pending in it keep its groups.
pub fn remove(comm: Comm) -> Result<Arc<Communicator>> {
    let found = get(comm)?;
    let mut registry = write();
    let index = routes::index(comm).unwrap_or_default();
    routes::at(index).close();
    let slot = registry.slot(index);
    slot.generation = slot.generation.wrapping_add(1);
    slot.communicator = None;
    if index >= PREDEFINED {
        registry.free.push(index);
    }
    drop(registry);
    let mut retired = retired();
    let others = std::mem::take(&mut *retired);
    let (kept, over): (Vec<_>, Vec<_>) = others
        .into_iter()
        .chain([found.clone()])
        .partition(|it| requests::any_in(it.handle));
    *retired = kept;
    // Their groups are freed when nobody has the lock.
    drop(retired);
    drop(over);
    Ok(found)
}

/// Communicators that have been freed while requests were pending in them.
static RETIRED: Mutex<Vec<Arc<Communicator>>> = Mutex::new(Vec::new());

fn retired() -> MutexGuard<'static, Vec<Arc<Communicator>>> {
    RETIRED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rank in its group of the first peer, of a communicator that has been freed.
#[cold]
pub(super) fn retired_base(comm: Comm) -> c_int {
    let retired = retired();
    let found = retired.iter().find(|it| it.handle == comm);
    found.map_or(0, |it| it.peer_base())
}

/// All that are there.
pub fn all() -> Vec<Arc<Communicator>> {
    let registry = read();
    let slots = registry.slots.iter();
    slots.filter_map(|slot| slot.communicator.clone()).collect()
}
