//! What the death or departure of a task ends.
//!
//! A task that is gone will send nothing more, but what it had sent can be received. So: first
//! take in what has arrived, then fail every operation that still depends on it, each with an
//! error that names it. Nothing waits for a task that is gone.

use crate::engine::{Content, Engine};
use crate::error::Error;
use crate::transport::{Peer, Presence, Transport};

impl<T: Transport> Engine<T> {
    /// Is that task still there, and has it kept to the protocol?
    pub fn presence(&self, peer: Peer) -> Presence {
        if self.condemned.contains_key(&peer) {
            return Presence::Dead;
        }
        self.transport.presence(peer)
    }

    /// Is that task known to be gone? Mostly nobody is.
    #[inline(always)]
    pub(crate) fn is_gone(&self, peer: Peer) -> bool {
        !self.gone.is_empty() && self.gone.contains(&peer)
    }

    /// Somebody has died or left since the last look: find out who.
    #[cold]
    pub(crate) fn note_losses(&mut self) {
        self.losses_seen = self.transport.losses();
        let streams = !self.outgoing.is_empty() || !self.incoming.is_empty();
        for peer in 0..self.transport.peers() {
            // Of those known to be gone nothing but a stream can have to be ended.
            let over = peer == self.me || (!streams && self.gone.contains(&peer));
            if !over && self.transport.presence(peer) != Presence::Here {
                self.peer_lost(peer);
            }
        }
    }

    #[cold]
    pub(crate) fn peer_lost(&mut self, peer: Peer) {
        if !self.gone.insert(peer) {
            // Found out again, by a stream of its that makes no sense.
            return self.end_streams(peer);
        }
        if !self.condemned.contains_key(&peer) {
            self.drain_peer(peer);
        }
        self.run_schedules();
        let error = self.loss(peer);
        self.end_streams(peer);
        for queued in self.queued.remove(&peer).into_iter().flatten() {
            if let Content::Message(_, request) = queued.content {
                self.requests.complete(request, Some(error.clone()));
            }
        }
        self.fail_receives(peer, &error);
        for group in self.groups.containing(peer) {
            // A death counts for more than a departure.
            if group.usable().is_ok() {
                group.broken = Some(error.clone());
            }
        }
        self.run_schedules();
        self.transport.forget(peer);
    }

    fn fail_receives(&mut self, peer: Peer, error: &Error) {
        let mut failed = vec![];
        for (number, (select, request)) in self.posted.iter() {
            match select.source {
                Some(source) if source == peer => failed.push((number, request, error.clone())),
                Some(_) => {}
                None => {
                    if let Err(error) = self.check_any_source(select.context) {
                        failed.push((number, request, error));
                    }
                }
            }
        }
        for (number, request, error) in failed {
            self.posted.remove(number);
            self.requests.complete(request, Some(error));
        }
    }
}
