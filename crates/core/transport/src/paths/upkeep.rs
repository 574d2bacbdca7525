//! Upkeep of both transports. What depends on how crowded this host is concerns the near one alone.

use regatta_engine::{Peer, Reach, Shortage, Upkeep, WaitState};

use super::{Composite, Far, Near, POLL_INTERVAL};

impl<N: Near, F: Far> Upkeep for Composite<N, F> {
    fn go_on(&mut self) {
        self.near.go_on();
        if let Some(far) = &mut self.far {
            far.go_on();
        }
    }

    fn look_around(&mut self) {
        self.near.look_around();
    }

    fn path(&mut self, peer: Peer) -> String {
        match self.far_to(peer) {
            Ok(Some(far)) => far.path(peer),
            Ok(None) => self.near.path(peer),
            Err(_) => "none: this task has no listening socket".into(),
        }
    }

    fn look_everywhere(&mut self) {
        self.near.look_everywhere();
        self.looks = POLL_INTERVAL - 1;
    }

    fn note_crossing(&mut self, to: Peer) {
        self.near.note_crossing(to);
    }

    fn arm(&mut self) {
        self.near.arm();
        if let Some(far) = &mut self.far {
            far.arm();
        }
    }

    fn deliver(&mut self, leaves: bool) -> bool {
        let far = self.far.as_mut();
        far.is_none_or(|far| far.deliver(leaves)) & self.near.deliver(leaves)
    }

    fn inquire(&mut self, peer: Peer) -> Option<WaitState> {
        match self.far_to(peer).ok()? {
            Some(far) => far.inquire(peer),
            None => self.near.inquire(peer),
        }
    }

    fn send_state(&mut self, peer: Peer) {
        match self.far_to(peer) {
            Ok(Some(far)) => far.send_state(peer),
            _ => self.near.send_state(peer),
        }
    }

    fn send_circle(&mut self, peer: Peer, word: u64, members: &[Peer]) -> bool {
        match self.far_to(peer) {
            Ok(Some(far)) => far.send_circle(peer, word, members),
            _ => self.near.send_circle(peer, word, members),
        }
    }

    fn is_disowned_by(&self, peer: Peer) -> bool {
        let far = self.far.as_deref();
        self.near.is_disowned_by(peer) || far.is_some_and(|far| far.is_disowned_by(peer))
    }

    #[inline]
    fn has_shortages(&self) -> bool {
        self.near.has_shortages() || self.far.as_deref().is_some_and(Upkeep::has_shortages)
    }

    fn take_shortages(&mut self) -> Vec<Shortage> {
        let mut taken = self.near.take_shortages();
        taken.extend(self.far.iter_mut().flat_map(|far| far.take_shortages()));
        taken
    }

    #[inline]
    fn has_reaches(&self) -> bool {
        self.near.has_reaches() || self.far.as_deref().is_some_and(Upkeep::has_reaches)
    }

    fn take_reaches(&mut self) -> Vec<Reach> {
        let mut taken = self.near.take_reaches();
        taken.extend(self.far.iter_mut().flat_map(|far| far.take_reaches()));
        taken
    }

    fn give_up(&mut self, peer: Peer) {
        match self.far_to(peer) {
            Ok(Some(far)) => far.give_up(peer),
            _ => self.near.give_up(peer),
        }
    }

    fn threads(&self) -> usize {
        self.near.threads() + self.far.as_deref().map_or(0, Upkeep::threads)
    }
}
