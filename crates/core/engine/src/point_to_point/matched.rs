//! Messages that a probe has taken out of matching: no other receive and no other probe finds them.
//!
//! Such a message stays as it came (its bytes held here, or on offer with its sender) until it is received by its number. Numbers
//! are never used twice, so a stale one is noticed. To its sender the message is matched: if asked to give it back, this task
//! says that a receive has been faster.

use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::matching::Waiting;
use crate::point_to_point::body::Body;

/// A message that a probe has taken out of matching, as callers hold it. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message(pub u64);

impl Message {
    /// The message of nobody: received at once, it is empty.
    pub const OF_NOBODY: Message = Message(u64::MAX);
}

/// All messages that were taken out of matching and have not been received.
#[derive(Default)]
pub(crate) struct Matched {
    list: FxHashMap<u64, Waiting<Body>>,
    last: u64,
}

impl Matched {
    pub(super) fn add(&mut self, message: Waiting<Body>) -> Message {
        self.last += 1;
        self.list.insert(self.last, message);
        Message(self.last)
    }

    pub(super) fn take(&mut self, message: Message) -> Option<Waiting<Body>> {
        self.list.remove(&message.0)
    }

    /// Returns all of them, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Message, &Waiting<Body>)> {
        self.list
            .iter()
            .map(|(&id, message)| (Message(id), message))
    }

    /// Returns what is kept of a message.
    pub(crate) fn get(&self, message: Message) -> Option<&Waiting<Body>> {
        self.list.get(&message.0)
    }

    /// Returns what is kept of a message.
    pub(crate) fn get_mut(&mut self, message: Message) -> Option<&mut Waiting<Body>> {
        self.list.get_mut(&message.0)
    }

    /// Takes back the message of which `is` holds. The rest says why to its receive; returns what it was.
    pub(crate) fn withdraw(
        &mut self,
        is: impl Fn(&Waiting<Body>) -> bool,
        why: &Error,
    ) -> Option<Body> {
        let message = self.list.values_mut().find(|message| is(message))?;
        let length = message.body.length();
        Some(std::mem::replace(
            &mut message.body,
            Body::Withdrawn(length, why.clone()),
        ))
    }
}
