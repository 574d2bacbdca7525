//! Handles arriving frames, by kind.

use regatta_memory::held::Held;
use regatta_memory::views::Views;
use regatta_wire::{BODY, Clear, Frame, Kind, Loan, Offer, Token, Withdrawn};

use crate::error::Result;
use crate::numbers;
use crate::point_to_point::PointToPoint;
use crate::point_to_point::body::Body;
use crate::transport::{Arrival, Fault, Loans, Peer, Transport};

/// A message of a member about a group, for the layers above.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) from: Peer,
    pub(crate) context: u32,
    pub(crate) tag: i32,
    /// The contents, for short messages. Longer ones wait in the inbox.
    pub(crate) bytes: Held,
    /// Number of messages that had waited in the inbox before this one arrived.
    pub(crate) arrivals: u64,
}

impl<T: Transport> PointToPoint<T> {
    /// Handles frames of all peers. Returns whether any were handled.
    pub(crate) fn arrivals(&mut self) -> bool {
        /// Number of frames of one peer before the next peer's turn.
        const CHUNKS_PER_TURN: usize = 32;
        let mut moved = false;
        let mut cursor = 0;
        while let Some(peer) = self.transport.next_ready(&mut cursor) {
            if self.losses.crime(peer).is_some() {
                // Nothing that the peer sends is read any more, so its frames are no progress.
                continue;
            }
            for _ in 0..CHUNKS_PER_TURN {
                match self.handle_front(peer) {
                    Ok(true) => moved = true,
                    Ok(false) => break,
                    Err(fault) => {
                        self.condemn(fault);
                        moved = true;
                        break;
                    }
                }
            }
        }
        moved
    }

    /// Handles the oldest frame of a peer. Returns false if there is none, or if it must wait for space.
    #[inline(always)]
    pub(super) fn handle_front(&mut self, peer: Peer) -> std::result::Result<bool, Fault> {
        let Some(front) = self.transport.front(peer)? else {
            return Ok(false);
        };
        let moved = match front.frame.kind {
            Kind::Eager => self.eager_arrived(peer, front),
            _ => self.other_arrived(peer, front)?,
        };
        self.note_moves(moved);
        Ok(moved)
    }

    #[inline(always)]
    fn eager_arrived(&mut self, peer: Peer, front: Arrival) -> bool {
        let (context, tag) = (front.frame.context, front.frame.tag);
        if let Some(request) = self.inbox.posted.take(context, peer, tag) {
            self.transport
                .accept(peer, &self.requests.get(request).views);
            self.requests.received(request, peer, tag, front.length);
            self.inbox.pass_over();
            return true;
        }
        if self.inbox.is_full() && !self.inbox.is_urgent(peer, context, tag) {
            return false;
        }
        let bytes = self.transport.accept_bytes(peer);
        if numbers::is_word(context, tag) && !self.keep_word(peer, front.frame, &bytes) {
            return true;
        }
        self.inbox.keep(peer, context, tag, Body::Bytes(bytes));
        true
    }

    /// Keeps a message about a group for the layers above. Returns whether it must also wait in the inbox, as long ones do.
    #[cold]
    pub(super) fn keep_word(&mut self, from: Peer, frame: Frame, bytes: &[u8]) -> bool {
        let is_short = numbers::is_short_word(frame.tag);
        let is_held = is_short && bytes.len() <= BODY;
        let kept = if is_held { bytes } else { &[] };
        let mut held = Held::zeros(kept.len());
        held.copy_from_slice(kept);
        self.words.push(Word {
            from,
            context: frame.context,
            tag: frame.tag,
            bytes: held,
            arrivals: self.inbox.waiting().next_age(),
        });
        !is_short
    }

    /// Returns whether messages about groups wait for the layers above.
    #[inline(always)]
    pub(crate) fn has_words(&self) -> bool {
        !self.words.is_empty()
    }

    /// Removes and returns the messages about groups that were received.
    pub(crate) fn take_words(&mut self) -> Vec<Word> {
        std::mem::take(&mut self.words)
    }

    /// Returns whether a receive is posted for such a message.
    #[cold]
    fn is_awaited(&self, context: u32, peer: Peer, tag: i32) -> bool {
        let mut posted = self.inbox.posted.iter();
        posted.any(|(_, (select, _))| select.takes(context, peer, tag))
    }

    #[inline(never)]
    fn other_arrived(&mut self, peer: Peer, front: Arrival) -> std::result::Result<bool, Fault> {
        let malformed = |_| Fault::Corrupt {
            peer,
            what: "a frame's body does not match its kind",
        };
        let (context, tag) = (front.frame.context, front.frame.tag);
        let is_message = matches!(front.frame.kind, Kind::Offer | Kind::Loan);
        let has_room = !is_message || !self.inbox.is_crowded();
        if !has_room && !self.is_awaited(context, peer, tag) && !self.inbox.is_let_in(peer) {
            return Ok(false);
        }
        let body = self.transport.accept_bytes(peer);
        match front.frame.kind {
            Kind::Eager => {}
            Kind::Offer => {
                let offer = Offer::decode(&body).map_err(malformed)?;
                self.offer_arrived(peer, front.frame, offer);
            }
            Kind::Loan => {
                let Loan { total, place } = Loan::decode(&body).map_err(malformed)?;
                self.transport.loan_came(peer, place)?;
                self.loan_arrived(peer, context, tag, place, total);
            }
            Kind::Clear => {
                let clear = Clear::decode(&body).map_err(malformed)?;
                self.clear_arrived(peer, clear)?;
            }
            Kind::Begun => {
                let token = Token::decode(&body).map_err(malformed)?;
                self.begun_arrived(peer, token);
            }
            Kind::Withdrawn => {
                let withdrawn = Withdrawn::decode(&body).map_err(malformed)?;
                self.offer_withdrawn(peer, front.frame, withdrawn)?;
            }
            Kind::Void => {
                let token = Token::decode(&body).map_err(malformed)?;
                self.void_arrived(peer, token);
            }
        }
        Ok(true)
    }

    fn offer_arrived(&mut self, peer: Peer, frame: Frame, offer: Offer) {
        let (context, tag) = (frame.context, frame.tag);
        match self.inbox.posted.take(context, peer, tag) {
            Some(request) => {
                self.inbox.pass_over();
                if let Err(error) = self.take_offer(request, peer, tag, offer) {
                    self.requests.complete(request, Some(error));
                }
            }
            None => {
                if numbers::is_word(context, tag) && !self.keep_word(peer, frame, &[]) {
                    return;
                }
                self.inbox.keep(peer, context, tag, Body::Offer(offer));
            }
        }
    }

    fn loan_arrived(&mut self, peer: Peer, context: u32, tag: i32, place: u64, total: u64) {
        match self.inbox.posted.take(context, peer, tag) {
            Some(request) => {
                self.inbox.pass_over();
                if let Err(error) = self.receive_loan(request, peer, tag, place, total) {
                    self.requests.complete(request, Some(error));
                }
            }
            None => {
                let loan = Body::Loan { place, total };
                self.inbox.keep(peer, context, tag, loan);
            }
        }
    }

    /// Copies a loan into the memory of a receive, returns the loan to its owner and completes the receive.
    pub(super) fn receive_loan(
        &mut self,
        request: u32,
        peer: Peer,
        tag: i32,
        place: u64,
        total: u64,
    ) -> Result<()> {
        let into = &self.requests.get(request).views;
        let copied = copy_loan(&mut self.transport, peer, place, total, into);
        copied.map_err(|fault| self.judge(fault.into()))?;
        self.requests.received(request, peer, tag, total as usize);
        Ok(())
    }
}

/// Copies a loan into the memory of a receive, and returns it to its owner.
fn copy_loan(
    loans: &mut impl Loans,
    peer: Peer,
    place: u64,
    total: u64,
    into: &Views,
) -> std::result::Result<(), Fault> {
    loans.borrowed(peer, place, total)?.copy_to(into);
    loans.give_back(place);
    Ok(())
}
