//! Ends all that depends on a task that has died or left.
//!
//! A task that is gone will send nothing more, but what it had sent can be received. So: first
//! take in what has arrived, then fail every operation that still depends on it, each with an
//! error that names it. Nothing waits for a task that is gone.
//!
//! A full buffer can keep the last frames of a task outside. Receives of its messages fail when
//! these have been taken in: until then the message may be among them, and whoever waits is told
//! that the buffer is full.

use crate::engine::Engine;
use crate::error::Error;
use crate::queue::Content;
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
        self.is_whole = false;
        if !self.condemned.contains_key(&peer) {
            self.drain_peer(peer);
            // Its word of a group that is revoked explains more than that it is gone.
            self.run_revocations();
            if self.has_unread(peer) {
                self.unheard.push(peer);
            }
        }
        self.run_schedules();
        let error = self.loss(peer);
        self.end_streams(peer);
        for queued in self.queued.remove(&peer).into_iter().flatten() {
            if let Content::Message(_, request) = queued.content {
                self.end_send(request, queued.frame.context, false, error.clone());
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
        self.revocations.note_loss();
        self.stirred = true;
        self.transport.forget(peer);
    }

    /// Has a peer sent something that has not been taken in?
    fn has_unread(&mut self, peer: Peer) -> bool {
        !self.condemned.contains_key(&peer) && matches!(self.transport.front(peer), Ok(Some(_)))
    }

    /// Could a message for such a receive be among the last frames of a peer that is gone? After a death collectives end at
    /// once, for their other members have been told; one that has left may have done its part before.
    pub(crate) fn may_have_unread(&self, source: Peer, context: u32) -> bool {
        let of_collective = !context.is_multiple_of(2);
        self.unheard.contains(&source)
            && (!of_collective || self.presence(source) == Presence::Left)
    }

    /// Fail the receives of peers that are gone and whose last frames have been taken in by now.
    #[cold]
    pub(crate) fn read_out(&mut self) -> bool {
        let mut moved = false;
        for at in (0..self.unheard.len()).rev() {
            let peer = self.unheard[at];
            if !self.has_unread(peer) {
                self.unheard.swap_remove(at);
                let error = self.loss(peer);
                self.fail_receives(peer, &error);
                moved = true;
            }
        }
        moved
    }

    fn fail_receives(&mut self, peer: Peer, error: &Error) {
        let mut failed = vec![];
        for (number, (select, request)) in self.posted.iter() {
            match select.source {
                Some(source) if source == peer => {
                    if !self.may_have_unread(source, select.context)
                        && !self.outlasts(select.context, error)
                    {
                        failed.push((number, request, error.clone()));
                    }
                }
                Some(_) => {}
                None => {
                    if let Err(error) = self.check_pending_any(select.context) {
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
