//! Frames for which there was no space yet, oldest first for each peer.
//!
//! A task that leaves checks repeatedly whether some of them are answers for which other tasks wait, or messages that its program considers sent.
//! There may be hundreds of thousands of frames, so the queue counts those.

use std::collections::VecDeque;

use regatta_memory::views::Views;
use regatta_wire::{BODY, Frame, Kind, Offer};
use rustc_hash::FxHashMap;

use crate::transport::{Fault, Frames, Peer};

/// Maximum number of answers queued for a peer. A peer that reads its answers cannot have requested more.
const MAX_QUEUED_ANSWERS: usize = 1 << 18;

/// A frame for which there was no space yet.
pub(crate) struct Queued {
    pub(crate) frame: Frame,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    /// A user's message, and the request to complete once it is sent.
    Message(Views, u32),
    /// A body of the engine's own.
    Body([u8; BODY], usize),
}

impl Queued {
    /// Creates a frame with a body of the engine's own.
    pub(crate) fn of_body(frame: Frame, body: &[u8]) -> Queued {
        let mut copy = [0; BODY];
        copy[..body.len()].copy_from_slice(body);
        Queued {
            frame,
            content: Content::Body(copy, body.len()),
        }
    }

    /// Returns the offer in the frame, if it is one.
    pub(crate) fn offer(&self) -> Option<Offer> {
        match &self.content {
            Content::Body(body, len) if self.frame.kind == Kind::Offer => {
                Offer::decode(&body[..*len]).ok()
            }
            _ => None,
        }
    }

    /// Sends the frame. Returns false if there is no space yet.
    pub(crate) fn send(&self, frames: &mut impl Frames, to: Peer) -> Result<bool, Fault> {
        match &self.content {
            Content::Message(views, _) => frames.send(to, self.frame, views),
            Content::Body(body, len) => frames.send_body(to, self.frame, &body[..*len]),
        }
    }

    /// Returns whether the frame is an answer: no caller waits for it, but the receiver does.
    fn is_answer(&self) -> bool {
        match self.content {
            Content::Body(..) => !matches!(self.frame.kind, Kind::Offer | Kind::Loan),
            Content::Message(..) => false,
        }
    }

    /// Returns whether the frame is a message whose send has returned already.
    pub(super) fn is_loan(&self) -> bool {
        self.frame.kind == Kind::Loan
    }
}

/// The unsent frames for one peer.
#[derive(Default)]
struct Queue {
    frames: VecDeque<Queued>,
    answers: usize,
    loans: usize,
}

impl Queue {
    fn count(&mut self, queued: &Queued) {
        self.answers += usize::from(queued.is_answer());
        self.loans += usize::from(queued.is_loan());
    }

    /// Removes the frame at this index.
    fn remove(&mut self, at: usize) -> Option<Queued> {
        let queued = self.frames.remove(at)?;
        self.answers -= usize::from(queued.is_answer());
        self.loans -= usize::from(queued.is_loan());
        Some(queued)
    }
}

/// All frames for which there was no space, by destination. Contains only peers with at least one frame.
#[derive(Default)]
pub(crate) struct Outbox {
    queues: FxHashMap<Peer, Queue>,
}

impl Outbox {
    /// Returns whether no frame is queued.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Returns whether frames are queued for a peer.
    pub(crate) fn has(&self, to: Peer) -> bool {
        self.queues.contains_key(&to)
    }

    /// Returns the peers for which frames are queued.
    pub(crate) fn peers(&self) -> Vec<Peer> {
        self.queues.keys().copied().collect()
    }

    /// Queues a frame.
    pub(crate) fn push(&mut self, to: Peer, queued: Queued) {
        let queue = self.queues.entry(to).or_default();
        queue.count(&queued);
        queue.frames.push_back(queued);
    }

    /// Queues a frame before all others for its peer.
    pub(crate) fn push_front(&mut self, to: Peer, queued: Queued) {
        let queue = self.queues.entry(to).or_default();
        queue.count(&queued);
        queue.frames.push_front(queued);
    }

    /// Returns the next frame for a peer.
    pub(crate) fn front(&self, to: Peer) -> Option<&Queued> {
        self.queues.get(&to)?.frames.front()
    }

    /// Removes and returns the next frame for a peer.
    pub(crate) fn pop(&mut self, to: Peer) -> Option<Queued> {
        self.remove(to, 0)
    }

    fn remove(&mut self, to: Peer, at: usize) -> Option<Queued> {
        let queue = self.queues.get_mut(&to)?;
        let queued = queue.remove(at);
        if queue.frames.is_empty() {
            self.queues.remove(&to);
        }
        queued
    }

    /// Removes and returns all frames for a peer.
    pub(crate) fn remove_all(&mut self, to: Peer) -> VecDeque<Queued> {
        let queue = self.queues.remove(&to);
        queue.map(|queue| queue.frames).unwrap_or_default()
    }

    /// Removes the users' messages for which `ends` returns true. Returns their requests.
    pub(crate) fn remove_messages(&mut self, ends: impl Fn(Frame, u32) -> bool) -> Vec<u32> {
        let mut ended = Vec::new();
        self.queues.retain(|_, queue| {
            queue.frames.retain(|queued| match queued.content {
                Content::Message(_, request) if ends(queued.frame, request) => {
                    ended.push(request);
                    false
                }
                _ => true,
            });
            !queue.frames.is_empty()
        });
        ended
    }

    /// Removes an offer from the queue and returns it, if it is still there.
    pub(crate) fn remove_offer(&mut self, to: Peer, token: u64) -> Option<Offer> {
        let queue = self.queues.get(&to)?;
        let offered = |queued: &Queued| queued.offer().filter(|offer| offer.token == token);
        let mut frames = queue.frames.iter().enumerate();
        let (at, offer) = frames.find_map(|(at, one)| Some((at, offered(one)?)))?;
        self.remove(to, at);
        Some(offer)
    }

    /// Returns whether an offer is still queued.
    pub(crate) fn has_offer(&self, to: Peer, token: u64) -> bool {
        let queue = self.queues.get(&to);
        let mut offers = queue.into_iter().flat_map(|queue| queue.frames.iter());
        offers.any(|one| one.offer().is_some_and(|offer| offer.token == token))
    }

    /// Returns the peers with a queued frame for which `is` returns true.
    pub(crate) fn destinations(&self, is: impl Fn(&Queued) -> bool) -> impl Iterator<Item = Peer> {
        let queues = self.queues.iter();
        let found = queues.filter(move |(_, queue)| queue.frames.iter().any(&is));
        found.map(|(&to, _)| to)
    }

    /// Returns the frames with their destinations, in no particular order of destinations.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Peer, &Queued)> {
        let queues = self.queues.iter();
        queues.flat_map(|(&to, queue)| queue.frames.iter().map(move |queued| (to, queued)))
    }

    /// Returns whether answers are queued.
    pub(crate) fn has_answers(&self) -> bool {
        self.queues.values().any(|queue| queue.answers > 0)
    }

    /// Returns whether loans are queued.
    pub(crate) fn has_loans(&self) -> bool {
        self.queues.values().any(|queue| queue.loans > 0)
    }

    /// Returns whether more answers are queued for a peer than a peer that reads its answers can have requested.
    pub(crate) fn is_flooded(&self, to: Peer) -> bool {
        let queue = self.queues.get(&to);
        queue.is_some_and(|queue| queue.answers >= MAX_QUEUED_ANSWERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: Kind) -> Frame {
        Frame {
            kind,
            context: 0,
            tag: 0,
        }
    }

    fn answer() -> Queued {
        Queued {
            frame: frame(Kind::Begun),
            content: Content::Body([0; BODY], 0),
        }
    }

    fn message(request: u32) -> Queued {
        Queued {
            frame: frame(Kind::Eager),
            content: Content::Message(Views::none(), request),
        }
    }

    #[test]
    fn it_knows_of_answers_however_they_come_and_go() {
        let mut outbox = Outbox::default();
        for queued in [message(1), answer(), message(2), answer(), message(3)] {
            outbox.push(7, queued);
        }
        let offer = Queued {
            frame: frame(Kind::Offer),
            content: Content::Body([0; BODY], 0),
        };
        outbox.push(7, offer);
        assert!(outbox.has_answers());
        outbox.pop(7);
        outbox.pop(7);
        assert!(outbox.has_answers());
        assert_eq!(outbox.remove_messages(|_, request| request == 2), [2]);
        assert!(outbox.has_answers());
        outbox.pop(7);
        assert!(!outbox.has_answers());
        assert_eq!(outbox.remove_all(7).len(), 2);
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_loan_is_a_message_and_no_answer() {
        let loan = || Queued {
            frame: frame(Kind::Loan),
            content: Content::Body([0; BODY], 0),
        };
        let mut outbox = Outbox::default();
        outbox.push(7, message(1));
        outbox.push(7, loan());
        outbox.push(7, loan());
        assert!(outbox.has_loans() && !outbox.has_answers());
        assert_eq!(outbox.remove_messages(|_, _| true), [1]);
        outbox.pop(7);
        assert!(outbox.has_loans());
        outbox.pop(7);
        assert!(!outbox.has_loans() && !outbox.has(7));
    }
}
