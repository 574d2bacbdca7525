//! Frames: through a ring to a peer that has one, otherwise by the transport that leads to the peer.

use regatta_engine::{Arrival, Fault, Frames, Peer, Polled, SentLine};
use regatta_memory::held::Held;
use regatta_memory::views::Views;
use regatta_wire::Frame;

use super::{Composite, Far, Near, POLL_INTERVAL};

impl<N: Near, F: Far> Frames for Composite<N, F> {
    fn eager_limit(&self) -> usize {
        self.near.eager_limit()
    }

    fn eager_limit_to(&self, peer: Peer) -> usize {
        match self.far.as_deref() {
            Some(far) if !self.near.leads_to(peer) => {
                far.eager_limit_to(peer).max(self.near.eager_limit())
            }
            _ => self.near.eager_limit_to(peer),
        }
    }

    #[inline(always)]
    fn send(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault> {
        if self.near.shm().sends_to(to) {
            return self.near.send(to, frame, payload);
        }
        match self.far_to(to)? {
            Some(far) => far.send(to, frame, payload),
            None => self.near.send(to, frame, payload),
        }
    }

    #[inline(always)]
    fn send_line(&mut self, to: Peer, context: u32, tag: i32, payload: &Views) -> SentLine {
        self.near.send_line(to, context, tag, payload)
    }

    fn wake(&mut self, to: Peer) {
        self.near.wake(to);
    }

    fn send_to_all(&mut self, to: &[Peer], frame: Frame, payload: &Views) -> u64 {
        let far = self.far.as_deref_mut();
        far.map_or(0, |far| far.send_to_all(to, frame, payload))
    }

    fn send_body(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool, Fault> {
        if self.near.shm().sends_to(to) {
            return self.near.send_body(to, frame, body);
        }
        match self.far_to(to)? {
            Some(far) => far.send_body(to, frame, body),
            None => self.near.send_body(to, frame, body),
        }
    }

    #[inline(always)]
    fn front(&mut self, from: Peer) -> Result<Option<Arrival>, Fault> {
        if self.near.shm().has_received_from(from) {
            return self.near.front(from);
        }
        match self.far_to(from) {
            Ok(Some(far)) => far.front(from),
            Ok(None) => self.near.front(from),
            Err(_) => Ok(None),
        }
    }

    #[inline(always)]
    fn accept(&mut self, from: Peer, into: &Views) {
        if self.near.shm().has_received_from(from) {
            self.near.accept(from, into);
        } else if let Ok(Some(far)) = self.far_to(from) {
            far.accept(from, into);
        }
    }

    #[inline(always)]
    fn prepare(&mut self, peer: Peer) {
        self.near.prepare(peer);
    }

    #[inline(always)]
    fn poll_matching(&mut self, from: Peer, context: u32, tag: i32, into: &Views) -> Polled {
        if self.near.shm().has_received_from(from) {
            return self.near.poll_matching(from, context, tag, into);
        }
        match self.far_to(from) {
            Ok(Some(far)) => far.poll_matching(from, context, tag, into),
            _ => self.near.poll_matching(from, context, tag, into),
        }
    }

    fn accept_bytes(&mut self, from: Peer) -> Held {
        match self.far_to(from) {
            Ok(Some(far)) => far.accept_bytes(from),
            _ => self.near.accept_bytes(from),
        }
    }

    #[inline(always)]
    fn next_ready(&mut self, cursor: &mut usize) -> Option<Peer> {
        let first = *cursor == 0;
        let peer = self.near.next_ready(cursor);
        if peer.is_some() && !first {
            return peer;
        }
        let Some(far) = self.far.as_deref_mut() else {
            return peer;
        };
        if first {
            self.looks = self.looks.wrapping_add(1);
            let shm = self.near.shm();
            let turn = self.looks.is_multiple_of(POLL_INTERVAL) && shm.job().is_scattered();
            let polls = turn || shm.crowded() && far.is_in_use();
            far.begin_look(polls);
            if polls {
                self.far_losses = far.losses();
            }
        }
        if peer.is_some() {
            return peer;
        }
        let mut own = *cursor - self.near.end_of_look();
        let peer = far.next_ready(&mut own);
        *cursor = self.near.end_of_look() + own;
        peer
    }
}
