//! The traits of the parts of a [`Composite`]: what it needs of them besides the engine's contract.

use regatta_engine::{Frames, Peer, Presence, Streams, Transport, Upkeep};

use super::Composite;
use crate::shm::Shm;

/// A transport that is asked first: shared memory, alone or combined with others.
pub trait Near: Transport {
    /// Returns the shared memory, whose fast paths are tried first.
    fn shm(&self) -> &Shm;
    /// Returns the shared memory, mutably.
    fn shm_mut(&mut self) -> &mut Shm;
    /// Returns whether this transport leads to a peer.
    fn leads_to(&self, peer: Peer) -> bool;
    /// Returns the value of [`Frames::next_ready`]'s cursor at which all peers of this transport have been polled.
    fn end_of_look(&self) -> usize;
}

/// A transport to peers that no nearer one leads to. The job's table says which peers exist and which are lost. Its
/// frames may be at least as long as those of shared memory ([`Frames::eager_limit`]).
pub trait Far: Frames + Streams + Upkeep {
    /// Returns whether this transport leads to a peer that no nearer transport leads to. If it does not, a farther
    /// one does.
    fn leads_to(&self, _peer: Peer) -> bool {
        true
    }
    /// Returns the value of the cursor at which all its peers have been polled, as [`Near::end_of_look`] does.
    fn end_of_look(&self) -> usize;
    /// Returns whether this transport is to be polled each time on a crowded host.
    fn is_in_use(&self) -> bool {
        true
    }
    /// Begins a round of polling for messages from any peer. `polls` says whether it may make system calls.
    fn begin_look(&mut self, _polls: bool) {}
    /// Returns the count of losses that this transport has found itself.
    fn losses(&self) -> u32 {
        0
    }
    /// Returns the presence of a peer, for which the job's table says `told`. A peer that is gone is reported as
    /// present until all that it sent has been received.
    fn presence(&self, _peer: Peer, told: Presence) -> Presence {
        told
    }
    /// See [`Peers::close`](regatta_engine::Peers::close).
    fn close(&mut self, peer: Peer);
    /// See [`Peers::forget`](regatta_engine::Peers::forget).
    fn forget(&mut self, _peer: Peer) {}
}

impl Near for Shm {
    #[inline(always)]
    fn shm(&self) -> &Shm {
        self
    }

    #[inline(always)]
    fn shm_mut(&mut self) -> &mut Shm {
        self
    }

    #[inline]
    fn leads_to(&self, peer: Peer) -> bool {
        self.job().is_here(peer)
    }

    #[inline(always)]
    fn end_of_look(&self) -> usize {
        self.open_rings()
    }
}

impl<N: Near, F: Far> Near for Composite<N, F> {
    fn shm(&self) -> &Shm {
        self.near.shm()
    }

    fn shm_mut(&mut self) -> &mut Shm {
        self.near.shm_mut()
    }

    fn leads_to(&self, peer: Peer) -> bool {
        let far = self.far.as_deref();
        self.near.leads_to(peer) || far.is_some_and(|far| far.leads_to(peer))
    }

    fn end_of_look(&self) -> usize {
        let far = self.far.as_deref();
        self.near.end_of_look() + far.map_or(0, Far::end_of_look)
    }
}
