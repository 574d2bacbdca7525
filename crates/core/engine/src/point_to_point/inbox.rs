//! Receives without message and messages without receive, and the buffer space that these messages take.
//!
//! *Space.* A message whose data is held here counts against the buffer; for other messages there is a maximum number. When the inbox is full, a
//! frame stays in the transport and delays all later frames of its sender. Two kinds of messages are accepted even then, up to a reserve: messages
//! of members about their groups, and frames of peers for which [`Inbox::let_in`] was called.

use crate::error::Error;
use crate::matching::{Posted, Unexpected, Waiting};
use crate::numbers;
use crate::point_to_point::body::{Body, MESSAGE_OVERHEAD_BYTES, charge};
use crate::point_to_point::matched::{Matched, Message};
use crate::transport::Peer;

/// Number of messages that may wait for receives even if the buffer is smaller than their overhead.
const MIN_HELD_MESSAGES: usize = 1 << 12;
/// Number of bytes accepted beyond a full buffer, for agreements and for peers that withdraw their messages. Far more than needed while all tasks
/// keep to the protocol.
const RESERVE_BYTES: usize = 16 << 20;

/// The location of a message that no receive has taken.
#[derive(Clone, Copy)]
pub(super) enum Location {
    Waiting(u32),
    Matched(Message),
}

/// Receives without message, and messages without receive.
pub(super) struct Inbox {
    /// Posted receives. The owner of each is its request.
    pub(super) posted: Posted<u32>,
    waiting: Unexpected<Body>,
    /// Messages that a probe has taken out of matching.
    matched: Matched,
    /// Number of bytes of the buffer that the messages in `waiting` and `matched` take.
    buffered: usize,
    /// Size of the buffer, in bytes.
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

    /// Returns whether no receive is posted and no message waits. Then the next frame of a peer is for the next receive.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.posted.is_empty()
    }

    /// Returns the messages that wait for their receive.
    #[inline(always)]
    pub(super) fn waiting(&self) -> &Unexpected<Body> {
        &self.waiting
    }

    /// Returns the number of bytes of the buffer that messages take.
    pub(super) fn buffered(&self) -> usize {
        self.buffered
    }

    /// Returns the size of the buffer, in bytes.
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

    /// Removes and returns a message that a receive has selected. Older messages are then passed over.
    pub(super) fn receive(&mut self, id: u32) -> Option<Waiting<Body>> {
        let message = self.waiting.receive(id)?;
        self.buffered -= message.body.charge();
        Some(message)
    }

    /// Removes a message that no receive takes.
    pub(super) fn remove(&mut self, id: u32) -> Option<Waiting<Body>> {
        let message = self.waiting.remove(id)?;
        self.buffered -= message.body.charge();
        Some(message)
    }

    /// Takes a message out of matching: from now on it can only be found by its number.
    pub(super) fn set_aside(&mut self, id: u32) -> Option<Message> {
        let message = self.waiting.receive(id)?;
        Some(self.matched.add(message))
    }

    /// Removes and returns a message that was taken out of matching.
    pub(super) fn take_matched(&mut self, message: Message) -> Option<Waiting<Body>> {
        let message = self.matched.take(message)?;
        self.buffered -= message.body.charge();
        Some(message)
    }

    /// Marks waiting messages as passed over, since a message was received without waiting.
    #[inline(always)]
    pub(super) fn pass_over(&mut self) {
        self.waiting.pass_over();
    }

    /// Returns all messages, including those taken out of matching, in no particular order.
    pub(super) fn all(&self) -> impl Iterator<Item = (Location, &Waiting<Body>)> {
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|(id, message)| (Location::Waiting(id), message));
        waiting.chain(self.set_aside_ones())
    }

    /// Returns the messages taken out of matching, in no particular order.
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

    /// Withdraws the message for which `is` returns true, wherever it is. If it was taken out of matching, `why` is kept for its receive.
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

    /// Does the same as [`Inbox::withdraw`], for messages taken out of matching.
    pub(super) fn withdraw_matched(
        &mut self,
        is: impl Fn(&Waiting<Body>) -> bool,
        why: &Error,
    ) -> Option<Body> {
        let body = self.matched.withdraw(is, why)?;
        self.buffered -= body.charge();
        Some(body)
    }

    /// Replaces the data of a message.
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

    /// Returns whether the buffer has space for a held message of this many bytes.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.buffered.saturating_add(charge(bytes)) <= self.limit
    }

    /// Returns whether no further held message is accepted.
    pub(super) fn is_full(&self) -> bool {
        self.buffered >= self.limit || self.is_crowded()
    }

    /// Returns whether the maximum number of messages is waiting. Then offers and loans, whose data is elsewhere, stay in the transport, too.
    #[inline(always)]
    pub(super) fn is_crowded(&self) -> bool {
        self.waiting.len() >= self.most_waiting()
    }

    #[inline(always)]
    fn most_waiting(&self) -> usize {
        (self.limit / MESSAGE_OVERHEAD_BYTES).max(MIN_HELD_MESSAGES)
    }

    /// Returns whether a frame is accepted although the buffer is full.
    #[cold]
    pub(super) fn is_urgent(&self, peer: Peer, context: u32, tag: i32) -> bool {
        let most = self.limit.saturating_add(RESERVE_BYTES);
        let needed = numbers::is_word(context, tag) || self.let_in.contains(&peer);
        needed && self.buffered < most && self.has_place_beyond()
    }

    /// Returns whether an offer or a loan of this peer is accepted although too many messages wait.
    pub(super) fn is_let_in(&self, peer: Peer) -> bool {
        self.let_in.contains(&peer) && self.has_place_beyond()
    }

    /// Returns whether the number of messages permits accepting more beyond a full buffer.
    fn has_place_beyond(&self) -> bool {
        self.waiting.len() < self.most_waiting() + RESERVE_BYTES / MESSAGE_OVERHEAD_BYTES
    }

    /// Accepts frames of these peers although the buffer is full. Replaces the list of an earlier call.
    pub(super) fn let_in(&mut self, peers: &[Peer]) {
        self.let_in.clear();
        self.let_in.extend_from_slice(peers);
    }

    /// Removes a peer from the list of [`Inbox::let_in`].
    pub(super) fn end_let_in(&mut self, peer: Peer) {
        self.let_in.retain(|&one| one != peer);
    }
}
