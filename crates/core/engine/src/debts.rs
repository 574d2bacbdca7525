//! What a task still has to send before it leaves: frames that others or its program rely on, and that no caller waits for.

use crate::bulk::Outgoing;
use crate::engine::Engine;
use crate::queue::{Content, Queue};
use crate::request::Stage;
use crate::send::Mode;
use crate::transport::{Peer, Transport};

impl<T: Transport> Engine<T> {
    /// Returns whether an answer that no caller waits for is still queued.
    pub fn owes_answers(&self) -> bool {
        self.queued.values().any(Queue::has_answers)
    }

    /// Returns whether a message would be lost if the task left now: a queued one that the program takes for sent, or a send to another task that
    /// completes by a callback. A synchronous send counts once its receiver has begun, and before that while some of its bytes are still here.
    pub fn owes_messages(&self) -> bool {
        let calling = self.requests.calling_sends();
        calling.standard > 0
            || (calling.synchronous > 0 && self.outgoing.iter().any(|out| self.keeps_bytes(out)))
            || self.queued.values().any(Queue::has_loans)
    }

    /// Returns whether a synchronous send that completes by a callback waits for its receiver to begin.
    pub fn owes_synchronous_messages(&self) -> bool {
        self.requests.calling_sends().synchronous > 0
    }

    /// Returns whether this is a synchronous send that completes by a callback, and some of its bytes are still here.
    fn keeps_bytes(&self, out: &Outgoing<T>) -> bool {
        let request = self.requests.get(out.request);
        !out.is_filled()
            && request.callback.is_some()
            && request.stage == Stage::Sending(Mode::Synchronous)
    }

    /// Returns a receiver of the messages that [`owes_messages`](Engine::owes_messages) reports: `last`, if it is still one. Linear in the sends under
    /// way; constant if there are none.
    pub fn creditor(&self, last: Option<Peer>) -> Option<Peer> {
        if !self.owes_messages() {
            return None;
        }
        let is_owed = |request: u32| {
            let request = self.requests.get(request);
            request.callback.is_some() && request.stage == Stage::Sending(Mode::Standard)
        };
        let owes = |queue: &Queue| {
            let is_owed = |content: &Content| matches!(content, Content::Message(_, request) if is_owed(*request));
            queue.has_loans() || queue.iter().any(|one| is_owed(&one.content))
        };
        let outgoing = self.outgoing.iter();
        let outgoing = outgoing.filter(|out| is_owed(out.request) || self.keeps_bytes(out));
        let queued = self.queued.iter().filter(|(_, queue)| owes(queue));
        let all = outgoing.map(|out| out.to).chain(queued.map(|(&to, _)| to));
        let mut first = None;
        for to in all {
            if last.is_none_or(|last| to == last) {
                return Some(to);
            }
            first.get_or_insert(to);
        }
        first
    }
}
