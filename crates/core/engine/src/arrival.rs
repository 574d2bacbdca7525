//! The effect of each kind of frame when it arrives.

use regatta_memory::held::Held;
use regatta_memory::views::Views;
use regatta_wire::{Clear, Kind, Loan, Offer, Token, Withdrawn};

use crate::closing::Closings;
use crate::engine::Engine;
use crate::epoch;
use crate::error::{Error, Result};
use crate::making;
use crate::matching::{Unexpected, Waiting};
use crate::revoke;
use crate::self_messages::ReceiptCredit;
use crate::transport::{Arrival, Fault, Loans, Peer, Transport};

/// A message that waits for its receive.
#[derive(Debug)]
pub(crate) enum Body {
    /// The bytes, held here.
    Bytes(Held),
    /// A message of a task to itself, with the credit that is due when it is received.
    Told(Held, ReceiptCredit),
    /// On offer: still with its sender.
    Offer(Offer),
    /// Sent to itself, synchronously: still in user memory, with the send's request.
    Own(Views, u32),
    /// On offer, and being taken in early: the request that does so, and where to.
    Arriving(u32, Views),
    /// In memory both can see.
    Loan { place: u64, total: u64 },
    /// Taken back after it had been taken out of matching: so long it was, and why.
    Withdrawn(usize, Error),
}

/// Bytes that keeping a message costs besides its own: what is known of it, and its places in the lists under matching, of which
/// those for its tag may be its alone.
const KEEPING: usize = 256;
const _: () = assert!(Unexpected::<Body>::KEEPING <= KEEPING);
/// Number of messages that may wait for receives even if the buffer is smaller than what keeping these costs.
const MIN_HELD_MESSAGES: usize = 1 << 12;
/// Number of bytes taken in beyond a full buffer, of agreements and of peers that take their messages back: far more than there are
/// while all keep to the protocol.
const RESERVE_BYTES: usize = 16 << 20;

/// The charge of a held message of so many bytes against the buffer, in bytes.
#[inline(always)]
pub(crate) fn charge(bytes: usize) -> usize {
    bytes.saturating_add(KEEPING)
}

impl Body {
    pub(crate) fn length(&self) -> usize {
        match self {
            Body::Bytes(bytes) | Body::Told(bytes, _) => bytes.len(),
            Body::Offer(offer) => offer.total as usize,
            Body::Own(views, _) | Body::Arriving(_, views) => views.len(),
            Body::Loan { total, .. } => *total as usize,
            Body::Withdrawn(length, _) => *length,
        }
    }
}

impl<T: Transport> Engine<T> {
    /// Deal with the oldest frame of a peer. False: there is none, or it must wait for room.
    #[inline(always)]
    pub(crate) fn handle_front(&mut self, peer: Peer) -> std::result::Result<bool, Fault> {
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
        if let Some(request) = self.posted.take(context, peer, tag) {
            self.transport
                .accept(peer, &self.requests.get(request).views);
            self.requests.received(request, peer, tag, front.length);
            self.unexpected.pass_over();
            return true;
        }
        if self.buffer_is_full() && !self.is_urgent(peer, context, tag) {
            return false;
        }
        let bytes = self.transport.accept_bytes(peer);
        if Self::is_agreement(context, tag) {
            if tag == epoch::TAG {
                self.epoch_word_came(peer, &bytes);
                return true;
            }
            if making::is_word(tag) && self.is_word_of_ended(context, &bytes) {
                return true;
            }
            if !self.agreement_arrived(peer, context, tag) {
                return true;
            }
        }
        self.buffered += charge(bytes.len());
        self.unexpected.push(Waiting {
            source: peer,
            context,
            tag,
            body: Body::Bytes(bytes),
        });
        true
    }

    /// A message of agreements, or word of a revocation, has come. False: that is all there is to it.
    #[cold]
    fn agreement_arrived(&mut self, peer: Peer, context: u32, tag: i32) -> bool {
        self.stirred = true;
        if tag == revoke::TAG {
            self.revocations.hear(context, peer);
            return false;
        }
        if Closings::is_word(tag) {
            self.closings.hear(context, peer, tag);
            return false;
        }
        self.agreement_came = true;
        true
    }

    /// Must it be taken in although the buffer is full?
    #[cold]
    fn is_urgent(&self, peer: Peer, context: u32, tag: i32) -> bool {
        let most = self.settings.buffer.saturating_add(RESERVE_BYTES);
        let needed = Self::is_agreement(context, tag) || self.let_in.contains(&peer);
        needed && self.buffered < most && self.has_place_beyond()
    }

    /// Are there not too many messages even for what is taken in beyond a full buffer?
    fn has_place_beyond(&self) -> bool {
        self.unexpected.len() < self.most_waiting() + RESERVE_BYTES / KEEPING
    }

    /// From now on take in what these peers have sent although the buffer is full: behind it is the question or the answer that
    /// ends a blocked send. Replaces the list of an earlier call; one that asks is taken off it.
    pub fn let_in(&mut self, peers: &[Peer]) {
        self.let_in.clear();
        self.let_in.extend_from_slice(peers);
    }

    /// Do as many messages wait for receives as may? Then offers and loans, whose bytes are elsewhere, stay in front too.
    #[inline(always)]
    pub(crate) fn is_crowded(&self) -> bool {
        self.unexpected.len() >= self.most_waiting()
    }

    #[inline(always)]
    fn most_waiting(&self) -> usize {
        (self.settings.buffer / KEEPING).max(MIN_HELD_MESSAGES)
    }

    /// Is there a receive for such a message?
    #[cold]
    fn is_awaited(&self, context: u32, peer: Peer, tag: i32) -> bool {
        let mut posted = self.posted.iter();
        posted.any(|(_, (select, _))| select.takes(context, peer, tag))
    }

    #[inline(never)]
    fn other_arrived(&mut self, peer: Peer, front: Arrival) -> std::result::Result<bool, Fault> {
        let malformed = |_| Fault::Corrupt {
            peer,
            what: "a frame's body is not what its kind says",
        };
        let (context, tag) = (front.frame.context, front.frame.tag);
        let is_message = matches!(front.frame.kind, Kind::Offer | Kind::Loan);
        if is_message && self.is_crowded() && !self.is_awaited(context, peer, tag) {
            let urgent = self.let_in.contains(&peer) && self.has_place_beyond();
            if !urgent {
                return Ok(false);
            }
        }
        let body = self.transport.accept_bytes(peer);
        match front.frame.kind {
            Kind::Eager => {}
            Kind::Offer => {
                let offer = Offer::decode(&body).map_err(malformed)?;
                self.offer_arrived(peer, context, tag, offer);
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

    fn offer_arrived(&mut self, peer: Peer, context: u32, tag: i32, offer: Offer) {
        match self.posted.take(context, peer, tag) {
            Some(request) => {
                self.unexpected.pass_over();
                if let Err(error) = self.take_offer(request, peer, tag, offer) {
                    self.requests.complete(request, Some(error));
                }
            }
            None => {
                if Self::is_agreement(context, tag) && !self.agreement_arrived(peer, context, tag) {
                    return;
                }
                self.unexpected.push(Waiting {
                    source: peer,
                    context,
                    tag,
                    body: Body::Offer(offer),
                });
            }
        }
    }

    fn loan_arrived(&mut self, peer: Peer, context: u32, tag: i32, place: u64, total: u64) {
        match self.posted.take(context, peer, tag) {
            Some(request) => {
                self.unexpected.pass_over();
                if let Err(error) = self.receive_loan(request, peer, tag, place, total) {
                    self.requests.complete(request, Some(error));
                }
            }
            None => self.unexpected.push(Waiting {
                source: peer,
                context,
                tag,
                body: Body::Loan { place, total },
            }),
        }
    }

    /// An ordinary receive meets a loan: one copy, and the loan goes back.
    pub(crate) fn receive_loan(
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

    /// A peer broke the protocol: whatever depends on it fails, and nothing it sends is read.
    pub(crate) fn condemn(&mut self, fault: Fault) {
        if let Fault::Corrupt { peer, what } = fault {
            let first = !self.condemned.contains_key(&peer);
            if first {
                self.condemned.insert(peer, what);
                self.transport.close(peer);
            }
            self.peer_lost(peer);
            if first {
                self.notify_condemned(peer);
            }
        }
    }

    /// As `condemn`, for what ends an operation: the peer would wait in vain for its other half.
    #[cold]
    pub(crate) fn judge(&mut self, error: Error) -> Error {
        if let Error::Corrupt { peer, what } = error
            && peer != self.me
        {
            self.condemn(Fault::Corrupt { peer, what });
        }
        error
    }

    /// Why an operation with a peer that is not there any more fails.
    pub(crate) fn loss(&self, peer: Peer) -> Error {
        if let Some(what) = self.condemned.get(&peer) {
            return Error::Corrupt { peer, what };
        }
        match self.transport.presence(peer) {
            crate::transport::Presence::Left => Error::Left(peer),
            _ => Error::Dead(peer),
        }
    }
}

/// Copies a loan to the memory of a receive, and gives it back.
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
