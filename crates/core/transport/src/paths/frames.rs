//! Frames: through a ring to whoever has one, through a connection to whoever is on another host.

use regatta_engine::{Arrival, Fault, Frames, Peer, Peers, Polled, SentLine};
use regatta_memory::held::Held;
use regatta_memory::views::Views;
use regatta_wire::Frame;

use super::{Paths, SOCKETS};
use crate::tcp::Tcp;

impl Frames for Paths {
    fn eager_limit(&self) -> usize {
        self.shm.eager_limit()
    }

    fn eager_limit_to(&self, peer: Peer) -> usize {
        match self.shares_memory(peer) {
            true => self.shm.eager_limit_to(peer),
            false => Tcp::EAGER.max(self.shm.eager_limit()),
        }
    }

    #[inline(always)]
    fn send(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault> {
        if self.shm.sends_to(to) {
            return self.shm.send(to, frame, payload);
        }
        match self.tcp_to(to)? {
            Some(tcp) => tcp.send(to, frame, payload),
            None => self.shm.send(to, frame, payload),
        }
    }

    #[inline(always)]
    fn send_line(&mut self, to: Peer, context: u32, tag: i32, payload: &Views) -> SentLine {
        self.shm.send_line(to, context, tag, payload)
    }

    fn wake(&mut self, to: Peer) {
        self.shm.wake(to);
    }

    fn send_to_all(&mut self, to: &[Peer], frame: Frame, payload: &Views) -> u64 {
        let tcp = self.tcp.as_deref_mut();
        tcp.map_or(0, |tcp| tcp.send_to_all(to, frame, payload))
    }

    fn send_body(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool, Fault> {
        if self.shm.sends_to(to) {
            return self.shm.send_body(to, frame, body);
        }
        match self.tcp_to(to)? {
            Some(tcp) => tcp.send_body(to, frame, body),
            None => self.shm.send_body(to, frame, body),
        }
    }

    #[inline(always)]
    fn front(&mut self, from: Peer) -> Result<Option<Arrival>, Fault> {
        if self.shm.has_received_from(from) {
            return self.shm.front(from);
        }
        match self.tcp_to(from) {
            Ok(Some(tcp)) => tcp.front(from),
            Ok(None) => self.shm.front(from),
            Err(_) => Ok(None),
        }
    }

    #[inline(always)]
    fn accept(&mut self, from: Peer, into: &Views) {
        if self.shm.has_received_from(from) {
            self.shm.accept(from, into);
        } else if let Ok(Some(tcp)) = self.tcp_to(from) {
            tcp.accept(from, into);
        }
    }

    #[inline(always)]
    fn prepare(&mut self, peer: Peer) {
        self.shm.prepare(peer);
    }

    #[inline(always)]
    fn poll_matching(&mut self, from: Peer, context: u32, tag: i32, into: &Views) -> Polled {
        if self.shm.has_received_from(from) {
            return self.shm.poll_matching(from, context, tag, into);
        }
        match self.tcp_to(from) {
            Ok(Some(tcp)) => tcp.poll_matching(from, context, tag, into),
            _ => self.shm.poll_matching(from, context, tag, into),
        }
    }

    fn accept_bytes(&mut self, from: Peer) -> Held {
        match self.tcp_to(from) {
            Ok(Some(tcp)) => tcp.accept_bytes(from),
            _ => self.shm.accept_bytes(from),
        }
    }

    #[inline(always)]
    fn next_ready(&mut self, cursor: &mut usize) -> Option<Peer> {
        let first = *cursor == 0;
        let peer = self.shm.next_ready(cursor);
        if peer.is_some() && !first {
            return peer;
        }
        let Some(tcp) = self.tcp.as_deref_mut() else {
            return peer;
        };
        if first {
            tcp.free_parted();
            self.looks = self.looks.wrapping_add(1);
            let often = self.shm.crowded() && tcp.has_links();
            let turn = self.looks.is_multiple_of(SOCKETS) && self.shm.job().is_scattered();
            if often || turn {
                tcp.poll();
                self.ended = tcp.ended;
            }
        }
        if peer.is_some() {
            return peer;
        }
        let mut own = *cursor - self.shm.open_rings();
        let peer = tcp.next_ready(&mut own);
        *cursor = self.shm.open_rings() + own;
        peer
    }
}
