//! Messages that a probe has taken out of matching: no other receive and no other probe finds them.
//!
//! Such a message stays as it came (its bytes held here, or on offer with its sender) until it is received by its number. Numbers
//! are never used twice, so a stale one is noticed. To its sender the message is matched: if asked to give it back, this task
//! says that a receive has been faster.

use regatta_memory::views::Views;
use rustc_hash::FxHashMap;

use crate::arrival::Body;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::matching::{Select, Waiting};
use crate::receive::status_of;
use crate::request::{Handle, Status};
use crate::transport::Transport;

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
    fn add(&mut self, message: Waiting<Body>) -> Message {
        self.last += 1;
        self.list.insert(self.last, message);
        Message(self.last)
    }

    fn take(&mut self, message: Message) -> Option<Waiting<Body>> {
        self.list.remove(&message.0)
    }

    /// All of them, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Message, &Waiting<Body>)> {
        self.list
            .iter()
            .map(|(&id, message)| (Message(id), message))
    }

    /// Change what is kept of a message.
    pub(crate) fn get_mut(&mut self, message: Message) -> Option<&mut Waiting<Body>> {
        self.list.get_mut(&message.0)
    }

    /// One of which this holds was taken back. The rest says why to its receive; returns what it was.
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

impl<T: Transport> Engine<T> {
    /// As [`probe`](Engine::probe), and the message is taken out of matching.
    pub fn match_probe(&mut self, select: &Select) -> Result<Option<(Status, Message)>> {
        let Some(id) = self.look_for_message(select)? else {
            return Ok(None);
        };
        let Some(message) = self.unexpected.receive(id) else {
            return Err(Error::State(c"a waiting message vanished"));
        };
        let status = status_of(&message);
        Ok(Some((status, self.matched.add(message))))
    }

    /// Start to receive a message that was taken out of matching; its number is then used up. The memory belongs to the
    /// engine until the request is complete.
    pub fn start_matched_receive(&mut self, message: Message, into: Views) -> Result<Handle> {
        if message == Message::OF_NOBODY {
            return Ok(Handle::COMPLETE);
        }
        let taken = self.matched.take(message);
        let taken = taken.ok_or(Error::Handle("message"))?;
        if self.is_revoked_context(taken.context) {
            return Err(Error::Revoked);
        }
        self.receive_taken(taken, into)
    }
}
