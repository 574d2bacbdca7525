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
    /// The places of those that have been added.
    places: Places,
}

static REGISTRY: Biased<Registry> = Biased::new(Registry {
    slots: Vec::new(),
    places: Places::new(MAX_OBJECTS - PREDEFINED),
});

fn registry() -> Result<Guard<'static, Registry>> {
    REGISTRY.lock().map_err(|_| objects::interrupted())
}

/// The places of MPI_COMM_WORLD and MPI_COMM_SELF, which others do not get.
const PREDEFINED: usize = 2;

impl Registry {
    /// The slot of a predefined communicator, or of one that has been added.
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

/// A handle for a communicator that is made later; it leads nowhere yet.
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

/// Adds a communicator, which is told its handle.
pub fn insert(make: impl FnOnce(Comm) -> Communicator) -> Result<Arc<Communicator>> {
    fill(make(reserve()?))
}

/// The communicator with this handle.
pub fn get(comm: Comm) -> Result<Arc<Communicator>> {
    with(comm, Arc::clone)
}

/// Acts on the communicator with this handle. It calls neither the program nor what has communicators.
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

/// The communicator with this handle, unless that cannot be said without waiting; `None`: it cannot.
pub fn try_get(comm: Comm) -> Option<Result<Arc<Communicator>>> {
    let registry = REGISTRY.try_enter()?;
    let slot = routes::index(comm).and_then(|index| registry.slots.get(index));
    let found = slot.and_then(|slot| slot.clone());
    let found = found.filter(|found| found.handle == comm);
    Some(found.ok_or_else(|| routes::none(comm)))
}

/// Takes a communicator out: its handle is stale from now on. Requests that are pending in it keep its groups and its place: they know it
/// by its handle, which must not become another one's meanwhile.
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
    // Their groups are freed when nobody has the lock.
    drop(held);
    drop(over);
    Ok(found)
}

/// Communicators that have been freed, and in which requests may be pending.
static RETIRED: Mutex<Retired> = Mutex::new(Retired {
    list: Vec::new(),
    pending: 0,
});

struct Retired {
    list: Vec<Arc<Communicator>>,
    /// How many of them had pending requests at the last look.
    pending: usize,
}

/// One more is freed; returns those that are over. Each look is at all open requests and all freed communicators, so there is one when these are twice as many as the last look has left.
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

/// The rank in its group of the first peer, of a communicator that has been freed.
#[cold]
pub(super) fn retired_base(comm: Comm) -> c_int {
    let retired = retired();
    let found = retired.list.iter().find(|it| it.handle == comm);
    found.map_or(0, |it| it.peer_base())
}

/// All that are there.
pub fn all() -> Vec<Arc<Communicator>> {
    let registry = registry().ok();
    let slots = registry.iter().flat_map(|registry| &registry.slots);
    slots.flatten().cloned().collect()
}
