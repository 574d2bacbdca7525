//! Receives without message and messages without receive, with the bytes that these take of the buffer.
//!
//! *Room.* A message whose bytes are held here counts against the buffer; of others there may be only so many. When the inbox is full a
//! frame stays with the transport, in front of all that its sender has sent after it. Taken in all the same, up to a
//! reserve, are words of members about their groups, and frames of peers for which [`Inbox::let_in`] was called.

use crate::error::Error;
use crate::matching::{Posted, Unexpected, Waiting};
use crate::numbers;
use crate::point_to_point::body::{Body, MESSAGE_OVERHEAD_BYTES, charge};
use crate::point_to_point::matched::{Matched, Message};
use crate::transport::Peer;

/// Number of messages that may wait for receives even if the buffer is smaller than what keeping these costs.
const MIN_HELD_MESSAGES: usize = 1 << 12;
/// Number of bytes taken in beyond a full buffer, of agreements and of peers that take their messages back: far more than there are
/// while all keep to the protocol.
const RESERVE_BYTES: usize = 16 << 20;

/// The location of a message that no receive has taken.
#[derive(Clone, Copy)]
pub(super) enum Location {
    Waiting(u32),
    Matched(Message),
}

/// Receives without message, and messages without receive.
pub(super) struct Inbox {
    /// Receives, each with its request.
    pub(super) posted: Posted<u32>,
    waiting: Unexpected<Body>,
    /// Messages that a probe has taken out of matching.
    matched: Matched,
    /// Bytes that the messages in `waiting` and `matched` take of the buffer.
    buffered: usize,
    /// Most bytes of the buffer.
    limit: usize,
    let_in: Vec<Peer>,
}

impl Inbox {
    pub(super) fn new(limit: usize) -> Inbox {
        Inbox {
            posted: Posted::default(),
            waiting: Unexpected::default(),
            matched: Matched::default(),
            buffered: 0,
            limit,
            let_in: Vec::new(),
        }
    }

    /// Returns whether no receive is posted and no message waits: then the next frame of a peer is for the next receive.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.posted.is_empty()
    }

    /// Returns the messages that wait for their receive.
    #[inline(always)]
    pub(super) fn waiting(&self) -> &Unexpected<Body> {
        &self.waiting
    }

    /// Returns the bytes that messages take of the buffer.
    pub(super) fn buffered(&self) -> usize {
        self.buffered
    }

    /// Returns the most bytes of the buffer.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Keeps a message until a receive takes it.
    pub(super) fn keep(&mut self, source: Peer, context: u32, tag: i32, body: Body) {
        self.buffered += body.charge();
        self.waiting.push(Waiting {
            source,
            context,
            tag,
            body,
        });
    }

    /// Takes a message that a receive has selected: older ones have been passed over.
    pub(super) fn receive(&mut self, id: u32) -> Option<Waiting<Body>> {
        let message = self.waiting.receive(id)?;
        self.buffered -= message.body.charge();
        Some(message)
    }

    /// Takes out a message that nobody receives.
    pub(super) fn remove(&mut self, id: u32) -> Option<Waiting<Body>> {
        let message = self.waiting.remove(id)?;
        self.buffered -= message.body.charge();
        Some(message)
    }

    /// Takes a message out of matching: only its number leads to it from now on.
    pub(super) fn set_aside(&mut self, id: u32) -> Option<Message> {
        let message = self.waiting.receive(id)?;
        Some(self.matched.add(message))
    }

    /// Takes a message that had been taken out of matching.
    pub(super) fn take_matched(&mut self, message: Message) -> Option<Waiting<Body>> {
        let message = self.matched.take(message)?;
        self.buffered -= message.body.charge();
        Some(message)
    }

    /// Notes that a message has gone to its receive without waiting: those that wait have been passed over.
    #[inline(always)]
    pub(super) fn pass_over(&mut self) {
        self.waiting.pass_over();
    }

    /// Returns all messages, also those taken out of matching, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = (Location, &Waiting<Body>)> {
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|(id, message)| (Location::Waiting(id), message));
        waiting.chain(self.set_aside_ones())
    }

    /// Returns the messages taken out of matching, in no order.
    pub(super) fn set_aside_ones(&self) -> impl Iterator<Item = (Location, &Waiting<Body>)> {
        let matched = self.matched.iter();
        matched.map(|(id, message)| (Location::Matched(id), message))
    }

    /// Returns the message at a location.
    pub(super) fn at(&self, at: Location) -> Option<&Waiting<Body>> {
        match at {
            Location::Waiting(id) => self.waiting.get(id),
            Location::Matched(id) => self.matched.get(id),
        }
    }

    /// Takes back the message of which `is` holds, wherever it is. One that was taken out of matching leaves `why` for its receive.
    pub(super) fn withdraw(
        &mut self,
        is: impl Fn(&Waiting<Body>) -> bool,
        why: &Error,
    ) -> Option<Body> {
        let waiting = self.waiting.iter().find(|(_, message)| is(message));
        if let Some((id, _)) = waiting {
            return Some(self.remove(id)?.body);
        }
        self.withdraw_matched(is, why)
    }

    /// As [`Inbox::withdraw`], of messages taken out of matching.
    pub(super) fn withdraw_matched(
        &mut self,
        is: impl Fn(&Waiting<Body>) -> bool,
        why: &Error,
    ) -> Option<Body> {
        let body = self.matched.withdraw(is, why)?;
        self.buffered -= body.charge();
        Some(body)
    }

    /// Replaces what is kept of a message.
    pub(super) fn replace(&mut self, at: Location, body: Body) {
        let message = match at {
            Location::Waiting(id) => self.waiting.get_mut(id),
            Location::Matched(id) => self.matched.get_mut(id),
        };
        if let Some(message) = message {
            self.buffered += body.charge();
            self.buffered -= message.body.charge();
            message.body = body;
        }
    }

    /// Returns whether the buffer has room for a held message of this many bytes.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.buffered.saturating_add(charge(bytes)) <= self.limit
    }

    /// Returns whether no held message is taken in.
    pub(super) fn is_full(&self) -> bool {
        self.buffered >= self.limit || self.is_crowded()
    }

    /// Returns whether as many messages wait as may: then offers and loans, whose bytes are elsewhere, stay in front too.
    #[inline(always)]
    pub(super) fn is_crowded(&self) -> bool {
        self.waiting.len() >= self.most_waiting()
    }

    #[inline(always)]
    fn most_waiting(&self) -> usize {
        (self.limit / MESSAGE_OVERHEAD_BYTES).max(MIN_HELD_MESSAGES)
    }

    /// Returns whether a frame is taken in although the buffer is full.
    #[cold]
    pub(super) fn is_urgent(&self, peer: Peer, context: u32, tag: i32) -> bool {
        let most = self.limit.saturating_add(RESERVE_BYTES);
        let needed = numbers::is_word(context, tag) || self.let_in.contains(&peer);
        needed && self.buffered < most && self.has_place_beyond()
    }

    /// Returns whether an offer or a loan of this peer is taken in although too many messages wait.
    pub(super) fn is_let_in(&self, peer: Peer) -> bool {
        self.let_in.contains(&peer) && self.has_place_beyond()
    }

    /// Returns whether there are not too many messages even for what is taken in beyond a full buffer.
    fn has_place_beyond(&self) -> bool {
        self.waiting.len() < self.most_waiting() + RESERVE_BYTES / MESSAGE_OVERHEAD_BYTES
    }

    /// Takes in what these peers have sent although the buffer is full. Replaces the list of an earlier call.
    pub(super) fn let_in(&mut self, peers: &[Peer]) {
        self.let_in.clear();
        self.let_in.extend_from_slice(peers);
    }

    /// Takes a peer off the list of [`Inbox::let_in`].
    pub(super) fn end_let_in(&mut self, peer: Peer) {
        self.let_in.retain(|&one| one != peer);
    }
}
