//! Receives that were begun: in which group, to know whose message it is that completes them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use regatta_abi::{Group, Request};

type Known = HashMap<u64, Group, BuildHasherDefault<DefaultHasher>>;

static KNOWN: Mutex<Known> = Mutex::new(HashMap::with_hasher(BuildHasherDefault::new()));

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A receive was begun in this group.
pub(crate) fn began(request: Request, group: Group) {
    if request.id != 0 {
        known().insert(request.id, group);
    }
}

/// The group of a receive that is complete; none: it was something else.
pub(crate) fn completed(request: u64) -> Option<Group> {
    known().remove(&request)
}
