//! Receives that were begun, and messages that a probe has found: in which group, to know whose message it is in the end.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use regatta_abi::{Group, Message, Request};

type Known = HashMap<u64, Group, BuildHasherDefault<DefaultHasher>>;

static KNOWN: Mutex<Known> = Mutex::new(HashMap::with_hasher(BuildHasherDefault::new()));

static FOUND: Mutex<Known> = Mutex::new(HashMap::with_hasher(BuildHasherDefault::new()));

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn messages() -> MutexGuard<'static, Known> {
    FOUND.lock().unwrap_or_else(PoisonError::into_inner)
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

/// A probe has taken a message of this group out of matching.
pub(crate) fn found(message: Message, group: Group) {
    if message.id != 0 {
        messages().insert(message.id, group);
    }
}

/// The group of a message that is being received.
pub(crate) fn taken(message: Message) -> Option<Group> {
    messages().remove(&message.id)
}
