//! The groups of started receives, and of messages that matched probes have found. They are needed at completion, because a
//! status has only the sender's rank.

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

/// Stores the group of a started receive.
pub(crate) fn began(request: Request, group: Group) {
    if request.id != 0 {
        known().insert(request.id, group);
    }
}

/// Removes and returns the group of a completed receive. Returns `None` for other operations.
pub(crate) fn completed(request: u64) -> Option<Group> {
    known().remove(&request)
}

/// Stores the group of a message that a matched probe has found.
pub(crate) fn found(message: Message, group: Group) {
    if message.id != 0 {
        messages().insert(message.id, group);
    }
}

/// Removes and returns the group of a message that a matched probe has found.
pub(crate) fn taken(message: Message) -> Option<Group> {
    messages().remove(&message.id)
}
