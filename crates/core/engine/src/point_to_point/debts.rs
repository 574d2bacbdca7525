//! What a task still has to send before it leaves: frames on which other tasks or its program rely, and for which no caller waits.

use crate::point_to_point::PointToPoint;
use crate::point_to_point::bulk::outgoing::Outgoing;
use crate::point_to_point::outbox::{Content, Queued};
use crate::request::{Mode, Stage};
use crate::transport::{Peer, Transport};

impl<T: Transport> PointToPoint<T> {
    /// Returns whether an answer for which no caller waits is still queued.
    pub fn owes_answers(&self) -> bool {
        self.outbox.has_answers()
    }

    /// Returns whether a message would be lost if the task left now: a queued one that the program considers sent, or a send to another task whose
    /// completion calls back. A synchronous send counts once its receiver has begun, and before that while some of its data is not in the stream.
    pub fn owes_messages(&self) -> bool {
        let calling = self.requests.calling_sends();
        calling.standard > 0
            || (calling.synchronous > 0 && self.bulk.outgoing().any(|out| self.keeps_bytes(out)))
            || self.outbox.has_loans()
    }

    /// Returns whether a synchronous send whose completion calls back waits for its receiver to begin.
    pub fn owes_synchronous_messages(&self) -> bool {
        self.requests.calling_sends().synchronous > 0
    }

    /// Returns whether this is a synchronous send whose completion calls back, and some of its data is not in the stream.
    fn keeps_bytes(&self, out: &Outgoing<T>) -> bool {
        let request = self.requests.get(out.request);
        !out.is_filled()
            && request.callback.is_some()
            && request.stage == Stage::Sending(Mode::Synchronous)
    }

    /// Returns a receiver of the messages that [`owes_messages`](Self::owes_messages) reports. Returns `last` if it is still one. Takes time
    /// linear in the number of sends in progress, and constant time if there are none.
    pub fn creditor(&self, last: Option<Peer>) -> Option<Peer> {
        if !self.owes_messages() {
            return None;
        }
        let is_owed = |request: u32| {
            let request = self.requests.get(request);
            request.callback.is_some() && request.stage == Stage::Sending(Mode::Standard)
        };
        let owes = |one: &Queued| {
            one.is_loan() || matches!(one.content, Content::Message(_, request) if is_owed(request))
        };
        let outgoing = self.bulk.outgoing();
        let outgoing = outgoing.filter(|out| is_owed(out.request) || self.keeps_bytes(out));
        let queued = self.outbox.destinations(owes);
        let all = outgoing.map(|out| out.to).chain(queued);
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
