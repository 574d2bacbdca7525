//! All large messages on their way.

use super::incoming::Incoming;
use super::outgoing::Outgoing;
use crate::transport::{Peer, Streams};

/// The large messages on their way, out and in.
pub(in crate::point_to_point) struct Transfers<S: Streams> {
    pub(super) outgoing: Vec<Outgoing<S>>,
    pub(super) incoming: Vec<Incoming<S>>,
    /// This task's token for the last message that it has sent.
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
    /// Returns whether no large message is on its way.
    #[inline(always)]
    pub(in crate::point_to_point) fn is_empty(&self) -> bool {
        self.outgoing.is_empty() && self.incoming.is_empty()
    }

    /// Returns the messages on their way out.
    pub(in crate::point_to_point) fn outgoing(&self) -> impl Iterator<Item = &Outgoing<S>> {
        self.outgoing.iter()
    }

    /// Returns a name for a message to be offered.
    pub(super) fn next_token(&mut self) -> u64 {
        self.last_token += 1;
        self.last_token
    }

    /// Returns the place of a message offered to a peer under this name.
    pub(super) fn offered(&self, to: Peer, token: u64) -> Option<usize> {
        let mut outgoing = self.outgoing.iter();
        outgoing.position(|out| out.to == to && out.token == token)
    }

    /// Returns the place of the message that a request sends.
    pub(super) fn sent_by(&self, request: u32) -> Option<usize> {
        self.outgoing.iter().position(|out| out.request == request)
    }

    /// Returns the message that a request receives.
    pub(super) fn received_by(&mut self, request: u32) -> Option<&mut Incoming<S>> {
        let mut incoming = self.incoming.iter_mut();
        incoming.find(|one| one.request == Some(request))
    }
}
