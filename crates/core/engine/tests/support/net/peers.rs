//! The tasks of a net, and which of them are lost.

use regatta_engine::{Peer, Peers, Presence};

use super::End;

impl Peers for End {
    fn me(&self) -> Peer {
        self.me
    }

    fn peers(&self) -> u32 {
        self.net.0.borrow().presence.len() as u32
    }

    fn presence(&self, peer: Peer) -> Presence {
        self.net.0.borrow_mut().presence_questions += 1;
        match self.net.are_apart(self.me, peer) {
            true => Presence::Dead,
            false => self.net.told(self.me, peer),
        }
    }

    fn losses(&self) -> u32 {
        self.net.0.borrow().losses
    }

    fn host(&self, peer: Peer) -> u32 {
        peer % self.net.0.borrow().hosts
    }

    fn shares_memory(&self, _peer: Peer) -> bool {
        false
    }

    fn close(&mut self, peer: Peer) {
        let mut net = self.net.0.borrow_mut();
        net.closed.push((peer, self.me));
        net.damaged.push((self.me, peer));
    }
}
