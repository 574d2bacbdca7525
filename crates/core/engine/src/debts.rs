//! Debts of a task that is about to leave: frames on which others or its program count, and for which no caller waits.

use crate::bulk::Outgoing;
use crate::engine::Engine;
use crate::queue::{Content, Queue};
use crate::request::Stage;
use crate::send::Mode;
use crate::transport::{Peer, Transport};

impl<T: Transport> Engine<T> {
    /// Whether there is something no caller waits for that has found no room yet.
    pub fn owes_answers(&self) -> bool {
        self.queued.values().any(Queue::has_answers)
    }

    /// Returns whether there is a message that its program takes for sent, and that has found no room yet, or one to another task whose completion only
    /// calls back. A synchronous one counts from when its receiver has begun, and before as long as bytes of it are here, which would be lost.
    pub fn owes_messages(&self) -> bool {
        let calling = self.requests.calling_sends();
        calling.standard > 0
            || (calling.synchronous > 0 && self.outgoing.iter().any(|out| self.keeps_bytes(out)))
            || self.queued.values().any(Queue::has_loans)
    }

    /// Returns whether a synchronous message to another task, whose completion only calls back, waits for its receiver to begin.
    pub fn owes_synchronous_messages(&self) -> bool {
        self.requests.calling_sends().synchronous > 0
    }

    /// Whether bytes of a synchronous message whose completion only calls back have not gone yet.
    fn keeps_bytes(&self, out: &Outgoing<T>) -> bool {
        let request = self.requests.get(out.request);
        !out.is_filled()
            && request.callback.is_some()
            && request.stage == Stage::Sending(Mode::Synchronous)
    }

    /// A task to which there are messages that [`owes_messages`](Engine::owes_messages) finds: `last`, as long as that is one. Looks at all that is on
    /// its way, unless there are none.
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
