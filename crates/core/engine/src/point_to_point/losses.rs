//! Ends all operations that depend on a task that has died or left.
//!
//! A task that is gone will send nothing more, but what it has sent can be received. So this first receives what has arrived
//! ([`PointToPoint::note_losses`]). Then it fails every operation that still depends on the task, with an error that names the task
//! ([`PointToPoint::end_peer`]). Nothing waits for a task that is gone. Between the two steps, [`Engine::progress`](crate::Engine::progress) lets
//! collectives use what has arrived.
//!
//! A full buffer can keep the last frames of a task in the transport. Receives of its messages fail only once these frames were received: until then
//! the message may be among them, and a waiting caller gets the error that the buffer is full.

use crate::error::Error;
use crate::matching::Select;
use crate::point_to_point::PointToPoint;
use crate::point_to_point::known_losses::KnownLosses;
use crate::point_to_point::outbox::Content;
use crate::transport::{Fault, Peer, Presence, Transport};

impl<T: Transport> PointToPoint<T> {
    /// Returns whether a task is alive. A task that has broken the protocol counts as dead.
    pub fn presence(&self, peer: Peer) -> Presence {
        match self.losses.crime(peer) {
            Some(_) => Presence::Dead,
            None => self.transport.presence(peer),
        }
    }

    /// Returns whether no task is known to be gone.
    #[inline(always)]
    pub fn is_nobody_gone(&self) -> bool {
        self.losses.is_empty()
    }

    /// Returns the tasks that are known to be gone.
    #[inline(always)]
    pub(crate) fn losses(&self) -> &KnownLosses {
        &self.losses
    }

    /// Returns whether no task was lost so far and no group is revoked. Then a receive from any source need not check for deaths.
    #[inline(always)]
    pub fn is_whole(&self) -> bool {
        self.losses.is_empty() && self.contexts.are_open() && self.has_counted_losses()
    }

    /// Returns whether all losses that the transport has counted were checked.
    #[inline(always)]
    pub(crate) fn has_counted_losses(&self) -> bool {
        self.losses.are_counted(self.transport.losses())
    }

    /// Returns the error of an operation with a peer that is gone.
    pub(crate) fn loss(&self, peer: Peer) -> Error {
        if let Some(what) = self.losses.crime(peer) {
            return Error::Corrupt { peer, what };
        }
        match self.transport.presence(peer) {
            Presence::Left => Error::Left(peer),
            _ => Error::Dead(peer),
        }
    }

    /// Ends all messages with a peer that broke the protocol. Nothing that it sends is read any more.
    pub(crate) fn condemn(&mut self, fault: Fault) {
        if let Fault::Corrupt { peer, what } = fault {
            if self.losses.condemn(peer, what) {
                self.transport.close(peer);
            }
            self.note_loss(peer);
        }
    }

    /// Does the same as `condemn` for an error that ends an operation, and returns the error. Otherwise the peer would wait in vain for its part of
    /// the operation.
    #[cold]
    pub(crate) fn judge(&mut self, error: Error) -> Error {
        if let Error::Corrupt { peer, what } = error
            && peer != self.me
        {
            self.condemn(Fault::Corrupt { peer, what });
        }
        error
    }

    /// Removes and returns a lost task. The caller must call [`PointToPoint::end_peer`] for it.
    pub(crate) fn take_loss(&mut self) -> Option<Peer> {
        self.losses.pop_fresh()
    }

    /// Removes and returns a task that has broken the protocol, which the caller must report to other tasks.
    pub(crate) fn take_accused(&mut self) -> Option<Peer> {
        self.losses.pop_accused()
    }

    /// Determines which tasks have died or left since the last check, and receives what has arrived from them.
    #[cold]
    pub(crate) fn note_losses(&mut self) {
        self.losses.note_count(self.transport.losses());
        let streams = !self.bulk.is_empty();
        for peer in 0..self.transport.peers() {
            // For tasks already known to be gone, only streams may still have to be ended.
            let over = peer == self.me || (!streams && self.losses.has(peer));
            if !over && self.transport.presence(peer) != Presence::Here {
                self.note_loss(peer);
            }
        }
    }

    #[cold]
    fn note_loss(&mut self, peer: Peer) {
        if !self.losses.insert(peer) {
            // Detected again, by an invalid stream of the peer.
            return self.end_streams(peer);
        }
        self.drain_peer(peer);
        if self.has_unread(peer) {
            self.losses.keep_unheard(peer);
        }
    }

    /// Ends all messages with a lost task. Receives from any source are left to the layer that knows the groups.
    pub(crate) fn end_peer(&mut self, peer: Peer) {
        let error = self.loss(peer);
        self.end_streams(peer);
        for queued in self.outbox.remove_all(peer) {
            if let Content::Message(_, request) = queued.content {
                self.end_send(request, queued.frame.context, false, error.clone());
            }
        }
        self.fail_receives(peer, &error);
    }

    /// Closes the transport's connection to a lost task.
    pub(crate) fn forget_peer(&mut self, peer: Peer) {
        self.transport.forget(peer);
    }

    /// Returns whether a peer has sent a frame that was not received yet.
    fn has_unread(&mut self, peer: Peer) -> bool {
        self.losses.crime(peer).is_none() && matches!(self.transport.front(peer), Ok(Some(_)))
    }

    /// Returns whether a message for such a receive can be among the unread last frames of a lost peer. After a death, collectives end at once,
    /// since their other members were notified; a peer that has left may have done its part before.
    pub(crate) fn may_have_unread(&self, source: Peer, context: u32) -> bool {
        let of_collective = !context.is_multiple_of(2);
        self.losses.is_unheard(source)
            && (!of_collective || self.presence(source) == Presence::Left)
    }

    /// Fails the receives from lost peers whose last frames were received by now. Returns whether there are such peers.
    #[cold]
    pub(crate) fn read_out(&mut self) -> bool {
        let (losses, transport) = (&self.losses, &mut self.transport);
        let crime = |peer| losses.crime(peer).is_some();
        let unread = losses.unheard().iter().copied();
        let is_read = |peer: &Peer| crime(*peer) || !matches!(transport.front(*peer), Ok(Some(_)));
        let heard: Vec<Peer> = unread.filter(is_read).collect();
        for &peer in &heard {
            self.losses.end_unheard(peer);
            let error = self.loss(peer);
            self.fail_receives(peer, &error);
        }
        !heard.is_empty()
    }

    fn fail_receives(&mut self, peer: Peer, error: &Error) {
        let posted = self.inbox.posted.iter();
        let failed = posted.filter(|(_, (select, _))| {
            select.source == Some(peer)
                && !self.may_have_unread(peer, select.context)
                && !self.outlasts(select.context, error)
        });
        let failed: Vec<u32> = failed.map(|(number, _)| number).collect();
        for number in failed {
            self.fail_receive(number, error.clone());
        }
    }

    /// Completes a posted receive with an error.
    pub(crate) fn fail_receive(&mut self, number: u32, error: Error) {
        if let Some(request) = self.inbox.posted.remove(number) {
            self.requests.complete(request, Some(error));
        }
    }

    /// Returns the posted receives, by their numbers.
    pub(crate) fn posted(&self) -> impl Iterator<Item = (u32, Select)> {
        let posted = self.inbox.posted.iter();
        posted.map(|(number, (select, _))| (number, select))
    }
}
