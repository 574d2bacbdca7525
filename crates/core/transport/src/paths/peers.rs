//! The tasks of the job: told by the table, and ended by what came on their connections.

use regatta_engine::{Peer, Peers, Presence};

use super::Paths;

impl Peers for Paths {
    fn me(&self) -> Peer {
        self.shm.me()
    }

    fn peers(&self) -> u32 {
        self.shm.peers()
    }

    fn world(&self) -> (Peer, u32) {
        self.shm.world()
    }

    fn presence(&self, peer: Peer) -> Presence {
        let told = self.shm.presence(peer);
        match &self.tcp {
            Some(tcp) if told != Presence::Here || tcp.disowners > 0 => tcp.presence(peer, told),
            _ => told,
        }
    }

    #[inline(always)]
    fn losses(&self) -> u32 {
        self.shm.losses().wrapping_add(self.ended)
    }

    fn host(&self, peer: Peer) -> u32 {
        self.shm.job().host_of(peer)
    }

    fn shares_memory(&self, peer: Peer) -> bool {
        self.shm.shares_memory(peer)
    }

    fn close(&mut self, peer: Peer) {
        match self.tcp_to(peer) {
            Ok(Some(tcp)) => tcp.shut(peer),
            _ => self.shm.close(peer),
        }
    }

    fn forget(&mut self, peer: Peer) {
        self.shm.forget(peer);
        if let Some(tcp) = &mut self.tcp {
            tcp.part(peer);
        }
    }
}
