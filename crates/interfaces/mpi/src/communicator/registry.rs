//! All communicators of this process, by their handles.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use regatta_memory::biased::{Biased, Guard};

use super::{Communicator, routes};
use crate::abi::*;
use crate::error::{Error, Result};
use crate::objects::{self, Kind, MAX_OBJECTS, Places};
use crate::requests;

struct Registry {
    slots: Vec<Option<Arc<Communicator>>>,
    /// The slots of communicators other than the predefined ones.
    places: Places,
}

static REGISTRY: Biased<Registry> = Biased::new(Registry {
    slots: Vec::new(),
    places: Places::new(MAX_OBJECTS - PREDEFINED),
});

fn registry() -> Result<Guard<'static, Registry>> {
    REGISTRY.lock().map_err(|_| objects::interrupted())
}

/// Number of slots reserved for MPI_COMM_WORLD and MPI_COMM_SELF.
const PREDEFINED: usize = 2;

impl Registry {
    /// Returns the slot with this index, after enlarging the list if necessary.
    fn slot(&mut self, index: usize) -> &mut Option<Arc<Communicator>> {
        if self.slots.len() <= index {
            self.slots.resize(index + 1, None);
        }
        &mut self.slots[index]
    }
}

/// Adds MPI_COMM_WORLD or MPI_COMM_SELF.
pub(super) fn insert_predefined(communicator: Communicator) -> Result {
    fill(communicator).map(drop)
}

/// Reserves a handle for a communicator that is made later. The handle is not valid yet.
pub(super) fn reserve() -> Result<Comm> {
    let (place, generation) = registry()?
        .places
        .take()
        .ok_or_else(|| Error::new(ERR_NO_MEM, "there are too many communicators"))?;
    let index = PREDEFINED + place;
    Ok(Comm(objects::handle(Kind::Comm, generation, index)))
}

/// Adds a communicator whose handle was reserved.
pub(super) fn fill(communicator: Communicator) -> Result<Arc<Communicator>> {
    let index = routes::index(communicator.handle).unwrap_or_default();
    let communicator = Arc::new(communicator);
    let mut registry = registry()?;
    routes::at(index).open(&communicator);
    *registry.slot(index) = Some(communicator.clone());
    Ok(communicator)
}

/// Adds a communicator. `make` gets its handle.
pub fn insert(make: impl FnOnce(Comm) -> Communicator) -> Result<Arc<Communicator>> {
    fill(make(reserve()?))
}

/// Returns the communicator with this handle.
pub fn get(comm: Comm) -> Result<Arc<Communicator>> {
    with(comm, Arc::clone)
}

/// Calls `act` with the communicator with this handle, under the registry's lock. `act` must neither call the program
/// nor look up communicators.
#[inline]
pub fn with<T>(comm: Comm, act: impl FnOnce(&Arc<Communicator>) -> T) -> Result<T> {
    let registry = registry()?;
    let slot = routes::index(comm).and_then(|index| registry.slots.get(index)?.as_ref());
    match slot {
        Some(found) if found.handle == comm => Ok(act(found)),
        _ => {
            drop(registry);
            Err(routes::none(comm))
        }
    }
}

/// Returns the communicator with this handle without blocking. Returns `None` if that would need to wait.
pub fn try_get(comm: Comm) -> Option<Result<Arc<Communicator>>> {
    let registry = REGISTRY.try_enter()?;
    let slot = routes::index(comm).and_then(|index| registry.slots.get(index));
    let found = slot.and_then(|slot| slot.clone());
    let found = found.filter(|found| found.handle == comm);
    Some(found.ok_or_else(|| routes::none(comm)))
}

/// Removes a communicator; its handle is invalid from now on. Its groups and its slot stay while requests are pending
/// in it: these refer to it by its handle, which must not be reused meanwhile.
pub fn remove(comm: Comm) -> Result<Arc<Communicator>> {
    let found = get(comm)?;
    let mut held = registry()?;
    let index = routes::index(comm).unwrap_or_default();
    routes::at(index).close();
    *held.slot(index) = None;
    drop(held);
    let over = retire(found.clone());
    let mut held = registry()?;
    for communicator in &over {
        if let Some(place) =
            routes::index(communicator.handle).and_then(|it| it.checked_sub(PREDEFINED))
        {
            held.places.give_back(place);
        }
    }
    // Their groups are freed when the lock is released.
    drop(held);
    drop(over);
    Ok(found)
}

/// Communicators that have been freed, but in which requests may be pending.
static RETIRED: Mutex<Retired> = Mutex::new(Retired {
    list: Vec::new(),
    pending: 0,
});

struct Retired {
    list: Vec<Arc<Communicator>>,
    /// Number of them that had pending requests at the last check.
    pending: usize,
}

/// Adds a freed communicator, and returns those without pending requests. A check goes through all open requests and
/// all freed communicators, so it is made only when there are twice as many of these as the last check has left.
fn retire(freed: Arc<Communicator>) -> Vec<Arc<Communicator>> {
    let mut retired = retired();
    retired.list.push(freed);
    if retired.list.len() < 2 * retired.pending {
        return Vec::new();
    }
    let in_use = requests::comms_in_use();
    let is_over = |it: &mut Arc<Communicator>| !in_use.contains(&it.handle);
    let over = retired.list.extract_if(.., is_over).collect();
    retired.pending = retired.list.len();
    over
}

fn retired() -> MutexGuard<'static, Retired> {
    RETIRED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the rank in its group of the first peer, for a communicator that has been freed.
#[cold]
pub(super) fn retired_base(comm: Comm) -> c_int {
    let retired = retired();
    let found = retired.list.iter().find(|it| it.handle == comm);
    found.map_or(0, |it| it.peer_base())
}

/// Returns all communicators.
pub fn all() -> Vec<Arc<Communicator>> {
    let registry = registry().ok();
    let slots = registry.iter().flat_map(|registry| &registry.slots);
    slots.flatten().cloned().collect()
}
