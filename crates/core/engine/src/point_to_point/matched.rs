//! Messages that a probe has taken out of matching: no other receive and no other probe finds them.
//!
//! The data of such a message stays where it was (held here, or at the sender as an offer) until it is received by its number. Numbers are never
//! reused, so a stale one is detected. To its sender the message is matched: if asked to give it back, this task answers that a receive has already
//! taken it.

use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::matching::Waiting;
use crate::point_to_point::body::Body;

/// The caller's handle of a message that a probe has taken out of matching. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message(pub u64);

impl Message {
    /// The message of an operation without a peer. It is received at once and is empty.
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

    /// Returns all messages, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Message, &Waiting<Body>)> {
        self.list
            .iter()
            .map(|(&id, message)| (Message(id), message))
    }

    /// Returns the data of a message.
    pub(crate) fn get(&self, message: Message) -> Option<&Waiting<Body>> {
        self.list.get(&message.0)
    }

    /// Returns the data of a message, to change it.
    pub(crate) fn get_mut(&mut self, message: Message) -> Option<&mut Waiting<Body>> {
        self.list.get_mut(&message.0)
    }

    /// Withdraws the message for which `is` returns true. Keeps the reason for its receive, and returns the message's former data.
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
