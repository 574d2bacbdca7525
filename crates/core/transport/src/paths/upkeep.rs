//! Upkeep: of connections; of the own host, what depends on how crowded it is.

use regatta_engine::{Peer, Reach, Shortage, Upkeep, WaitState};

use super::{Paths, SOCKETS};

impl Upkeep for Paths {
    fn go_on(&mut self) {
        if let Some(tcp) = &mut self.tcp {
            tcp.poll();
        }
    }

    fn look_around(&mut self) {
        self.shm.look_around();
    }

    fn path(&mut self, peer: Peer) -> String {
        match self.tcp_to(peer) {
            Ok(Some(tcp)) => tcp.path(peer),
            Ok(None) => self.shm.path(peer),
            Err(_) => "none: this task listens nowhere".into(),
        }
    }

    fn look_everywhere(&mut self) {
        self.looks = SOCKETS - 1;
    }

    fn note_crossing(&mut self, to: Peer) {
        self.shm.note_crossing(to);
    }

    fn arm(&mut self) {
        if let Some(tcp) = &mut self.tcp
            && self.shm.job().is_scattered()
        {
            tcp.arm();
        }
    }

    fn deliver(&mut self, leaves: bool) -> bool {
        self.tcp.as_mut().is_none_or(|tcp| tcp.deliver(leaves))
    }

    fn inquire(&mut self, peer: Peer) -> Option<WaitState> {
        self.tcp_to(peer).ok()??.inquire(peer)
    }

    fn send_state(&mut self, peer: Peer) {
        if let Ok(Some(tcp)) = self.tcp_to(peer) {
            tcp.send_state(peer, 0);
        }
    }

    fn send_circle(&mut self, peer: Peer, word: u64, members: &[Peer]) -> bool {
        match self.tcp_to(peer) {
            Ok(Some(tcp)) => tcp.send_circle(peer, word, members),
            _ => false,
        }
    }

    fn is_disowned_by(&self, peer: Peer) -> bool {
        let tcp = self.tcp.as_ref();
        tcp.is_some_and(|tcp| tcp.is_disowned_by(peer))
    }

    #[inline]
    fn has_shortages(&self) -> bool {
        self.tcp.as_ref().is_some_and(|tcp| tcp.has_shortages())
    }

    fn take_shortages(&mut self) -> Vec<Shortage> {
        let tcp = self.tcp.as_mut();
        tcp.map_or_else(Vec::new, |tcp| tcp.take_shortages())
    }

    #[inline]
    fn has_reaches(&self) -> bool {
        self.tcp.as_ref().is_some_and(|tcp| tcp.has_reaches())
    }

    fn take_reaches(&mut self) -> Vec<Reach> {
        let tcp = self.tcp.as_mut();
        tcp.map_or_else(Vec::new, |tcp| tcp.take_reaches())
    }

    fn give_up(&mut self, peer: Peer) {
        if let Ok(Some(tcp)) = self.tcp_to(peer) {
            tcp.give_up(peer);
        }
    }

    fn threads(&self) -> usize {
        self.tcp.as_ref().map_or(0, |tcp| tcp.threads())
    }
}
