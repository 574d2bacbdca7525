//! The parts of a [`Composite`]: what it asks of them beside the engine's contract.

use regatta_engine::{Frames, Peer, Presence, Streams, Transport, Upkeep};

use super::Composite;
use crate::shm::Shm;

/// A transport that is asked first: shared memory, alone or with others behind it.
pub trait Near: Transport {
    /// Returns the shared memory, whose fast paths come before everything else.
    fn shm(&self) -> &Shm;
    /// As [`Near::shm`], to be changed.
    fn shm_mut(&mut self) -> &mut Shm;
    /// Returns whether it leads to a peer.
    fn leads_to(&self, peer: Peer) -> bool;
    /// Returns the position of [`Frames::next_ready`]'s cursor at which all of its peers have been looked at.
    fn end_of_look(&self) -> usize;
}

/// A transport to peers that no nearer one leads to. The job's table says who is there, and who is lost. Its frames may be at least as long
/// as those of shared memory ([`Frames::eager_limit`]).
pub trait Far: Frames + Streams + Upkeep {
    /// Returns whether it leads to a peer that no nearer transport leads to. One that does not has others behind it.
    fn leads_to(&self, _peer: Peer) -> bool {
        true
    }
    /// As [`Near::end_of_look`].
    fn end_of_look(&self) -> usize;
    /// Returns whether it is to be polled at every look of a crowded host.
    fn is_in_use(&self) -> bool {
        true
    }
    /// Begins a look for messages of anybody. `polls`: the look may call the system.
    fn begin_look(&mut self, _polls: bool) {}
    /// Returns the count of losses that it has found itself.
    fn losses(&self) -> u32 {
        0
    }
    /// Returns the presence of a peer of which the job's table says `told`. A peer that is gone is here until all that it sent has come.
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
