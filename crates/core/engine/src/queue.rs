//! Frames for one peer that have found no room yet, oldest first.
//!
//! A task that leaves asks at each look whether some of them are answers that others wait for, or messages that its program
//! takes for sent. There may be hundreds of thousands of frames, so the queue counts those.

use std::collections::VecDeque;

use regatta_memory::views::Views;
use regatta_wire::{BODY, Frame, Kind, Offer};

use crate::transport::{Fault, Frames, Peer};

/// Maximum number of answers queued for a peer: none that reads them can have asked for more.
const MAX_QUEUED_ANSWERS: usize = 1 << 18;

/// A frame that found no room yet.
pub(crate) struct Queued {
    pub(crate) frame: Frame,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    /// A user's message, and the request to complete when it is gone.
    Message(Views, u32),
    /// A body of our own.
    Body([u8; BODY], usize),
}

impl Queued {
    /// The offer it makes, if that is what it does.
    pub(crate) fn offer(&self) -> Option<Offer> {
        match &self.content {
            Content::Body(body, len) if self.frame.kind == Kind::Offer => {
                Offer::decode(&body[..*len]).ok()
            }
            _ => None,
        }
    }

    /// Sends it. False: there is no room yet.
    pub(crate) fn send(&self, frames: &mut impl Frames, to: Peer) -> Result<bool, Fault> {
        match &self.content {
            Content::Message(views, _) => frames.send(to, self.frame, views),
            Content::Body(body, len) => frames.send_body(to, self.frame, &body[..*len]),
        }
    }

    /// Is it something that no caller waits for, but the other side does?
    fn is_answer(&self) -> bool {
        match self.content {
            Content::Body(..) => !matches!(self.frame.kind, Kind::Offer | Kind::Loan),
            Content::Message(..) => false,
        }
    }

    /// Is it a message whose send has returned?
    fn is_loan(&self) -> bool {
        self.frame.kind == Kind::Loan
    }
}

/// The unsent frames for one peer.
#[derive(Default)]
pub(crate) struct Queue {
    frames: VecDeque<Queued>,
    answers: usize,
    loans: usize,
}

impl Queue {
    pub(crate) fn push_back(&mut self, queued: Queued) {
        self.answers += usize::from(queued.is_answer());
        self.loans += usize::from(queued.is_loan());
        self.frames.push_back(queued);
    }

    pub(crate) fn push_front(&mut self, queued: Queued) {
        self.answers += usize::from(queued.is_answer());
        self.loans += usize::from(queued.is_loan());
        self.frames.push_front(queued);
    }

    pub(crate) fn front(&self) -> Option<&Queued> {
        self.frames.front()
    }

    pub(crate) fn pop_front(&mut self) -> Option<Queued> {
        self.remove(0)
    }

    /// Take out the frame at this place.
    pub(crate) fn remove(&mut self, at: usize) -> Option<Queued> {
        let queued = self.frames.remove(at)?;
        self.answers -= usize::from(queued.is_answer());
        self.loans -= usize::from(queued.is_loan());
        Some(queued)
    }

    /// Keep only frames of this kind.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&Queued) -> bool) {
        self.frames.retain(keep);
        let count = |is: fn(&Queued) -> bool| self.frames.iter().filter(|one| is(one)).count();
        (self.answers, self.loans) = (count(Queued::is_answer), count(Queued::is_loan));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queued> {
        self.frames.iter()
    }

    /// Are there answers among them?
    pub(crate) fn has_answers(&self) -> bool {
        self.answers > 0
    }

    /// Do more answers wait than a peer that reads what it is told can have asked for?
    pub(crate) fn is_flooded(&self) -> bool {
        self.answers >= MAX_QUEUED_ANSWERS
    }

    /// Are there loans among them?
    pub(crate) fn has_loans(&self) -> bool {
        self.loans > 0
    }
}

impl IntoIterator for Queue {
    type Item = Queued;
    type IntoIter = std::collections::vec_deque::IntoIter<Queued>;

    fn into_iter(self) -> Self::IntoIter {
        self.frames.into_iter()
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
        let mut queue = Queue::default();
        for queued in [message(1), answer(), message(2), answer(), message(3)] {
            queue.push_back(queued);
        }
        queue.push_back(Queued {
            frame: frame(Kind::Offer),
            content: Content::Body([0; BODY], 0),
        });
        assert!(queue.has_answers());
        queue.pop_front();
        queue.pop_front();
        assert!(queue.has_answers());
        queue.retain(|queued| !matches!(queued.content, Content::Message(_, 2)));
        assert!(queue.has_answers());
        queue.remove(0);
        assert!(!queue.has_answers());
        assert_eq!(queue.into_iter().count(), 2);
    }

    #[test]
    fn a_loan_is_a_message_and_no_answer() {
        let loan = || Queued {
            frame: frame(Kind::Loan),
            content: Content::Body([0; BODY], 0),
        };
        let mut queue = Queue::default();
        queue.push_back(message(1));
        queue.push_back(loan());
        queue.push_back(loan());
        assert!(queue.has_loans() && !queue.has_answers());
        queue.retain(|queued| queued.is_loan());
        queue.pop_front();
        assert!(queue.has_loans());
        queue.pop_front();
        assert!(!queue.has_loans());
    }
}
