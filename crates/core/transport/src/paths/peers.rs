//! The tasks of the job: the table says which are gone, and such a task counts as lost once all that it sent has been
//! received.

use regatta_engine::{Peer, Peers, Presence};

use super::{Composite, Far, Near};

impl<N: Near, F: Far> Peers for Composite<N, F> {
    fn me(&self) -> Peer {
        self.near.me()
    }

    fn peers(&self) -> u32 {
        self.near.peers()
    }

    fn world(&self) -> (Peer, u32) {
        self.near.world()
    }

    fn presence(&self, peer: Peer) -> Presence {
        let told = self.near.presence(peer);
        let far = self.far.as_deref();
        far.map_or(told, |far| far.presence(peer, told))
    }

    #[inline(always)]
    fn losses(&self) -> u32 {
        self.near.losses().wrapping_add(self.far_losses)
    }

    fn host(&self, peer: Peer) -> u32 {
        self.near.host(peer)
    }

    fn shares_memory(&self, peer: Peer) -> bool {
        self.near.shares_memory(peer)
    }

    fn close(&mut self, peer: Peer) {
        match self.far_to(peer) {
            Ok(Some(far)) => far.close(peer),
            _ => self.near.close(peer),
        }
    }

    fn forget(&mut self, peer: Peer) {
        self.near.forget(peer);
        if let Some(far) = &mut self.far {
            far.forget(peer);
        }
    }
}
