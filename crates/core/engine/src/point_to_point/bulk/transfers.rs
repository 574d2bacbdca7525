//! All large messages in transfer.

use super::incoming::Incoming;
use super::outgoing::Outgoing;
use crate::transport::{Peer, Streams};

/// The large messages in transfer, outgoing and incoming.
pub(in crate::point_to_point) struct Transfers<S: Streams> {
    pub(super) outgoing: Vec<Outgoing<S>>,
    pub(super) incoming: Vec<Incoming<S>>,
    /// This task's token for the last message that it has offered.
    last_token: u64,
}

impl<S: Streams> Default for Transfers<S> {
    fn default() -> Self {
        Transfers {
            outgoing: Vec::new(),
            incoming: Vec::new(),
            last_token: 0,
        }
    }
}

impl<S: Streams> Transfers<S> {
    /// Returns whether no large message is in transfer.
    #[inline(always)]
    pub(in crate::point_to_point) fn is_empty(&self) -> bool {
        self.outgoing.is_empty() && self.incoming.is_empty()
    }

    /// Returns the outgoing messages.
    pub(in crate::point_to_point) fn outgoing(&self) -> impl Iterator<Item = &Outgoing<S>> {
        self.outgoing.iter()
    }

    /// Returns a new token for a message to be offered.
    pub(super) fn next_token(&mut self) -> u64 {
        self.last_token += 1;
        self.last_token
    }

    /// Returns the index of the message that was offered to a peer with this token.
    pub(super) fn offered(&self, to: Peer, token: u64) -> Option<usize> {
        let mut outgoing = self.outgoing.iter();
        outgoing.position(|out| out.to == to && out.token == token)
    }

    /// Returns the index of the message that a request sends.
    pub(super) fn sent_by(&self, request: u32) -> Option<usize> {
        self.outgoing.iter().position(|out| out.request == request)
    }

    /// Returns the message that a request receives.
    pub(super) fn received_by(&mut self, request: u32) -> Option<&mut Incoming<S>> {
        let mut incoming = self.incoming.iter_mut();
        incoming.find(|one| one.request == Some(request))
    }
}
