//! Frames through rings with space for few.

use std::collections::VecDeque;

use regatta_engine::{Arrival, Fault, Frames, Peer};
use regatta_memory::held::Held;
use regatta_memory::views::{Scratch, Views};
use regatta_wire::{BODY, Frame, Kind};

use super::{End, Taken};

impl Frames for End {
    fn eager_limit(&self) -> usize {
        self.net.0.borrow().sizes.eager
    }

    fn send(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault> {
        assert_ne!(to, self.me, "messages to oneself never reach a transport");
        let mut net = self.net.0.borrow_mut();
        let longest = match frame.kind {
            Kind::Eager => net.sizes.eager,
            _ => BODY,
        };
        assert!(payload.len() <= longest, "longer than a frame may be");
        let room = net.sizes.ring;
        let ring = net.rings.entry((self.me, to)).or_default();
        if ring.len() >= room {
            return Ok(false);
        }
        let lives = net.lives_to_send(self.me) && !net.apart.contains(&(self.me, to));
        let ring = net.rings.entry((self.me, to)).or_default();
        if lives {
            ring.push_back((frame, payload.to_vec()));
        }
        Ok(true)
    }

    fn send_body(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool, Fault> {
        let held = Scratch::new(body.len())
            .expect("memory")
            .part(0, body.len());
        held.fill(body);
        self.send(to, frame, &held)
    }

    fn front(&mut self, from: Peer) -> Result<Option<Arrival>, Fault> {
        let net = self.net.0.borrow();
        if net.closed.contains(&(from, self.me)) {
            return Ok(None);
        }
        if net.damaged.contains(&(from, self.me)) {
            return Err(Fault::Corrupt {
                peer: from,
                what: "damage",
            });
        }
        let front = net.rings.get(&(from, self.me)).and_then(VecDeque::front);
        Ok(front.map(|(frame, payload)| Arrival {
            frame: *frame,
            length: payload.len(),
        }))
    }

    fn accept(&mut self, from: Peer, into: &Views) {
        let front = self.net.front_of(from, self.me);
        assert!(front, "only a frame that is at the front is accepted");
        into.fill(&self.accept_bytes(from));
    }

    fn accept_bytes(&mut self, from: Peer) -> Held {
        let mut net = self.net.0.borrow_mut();
        let ring = net.rings.get_mut(&(from, self.me));
        let Some((frame, payload)) = ring.and_then(VecDeque::pop_front) else {
            return Held::zeros(0);
        };
        if matches!(frame.kind, Kind::Eager | Kind::Offer | Kind::Loan) {
            net.taken[self.me as usize].push(Taken {
                from,
                context: frame.context,
                tag: frame.tag,
            });
        }
        payload.into()
    }

    fn next_ready(&mut self, cursor: &mut usize) -> Option<Peer> {
        let net = self.net.0.borrow();
        while *cursor < net.presence.len() {
            let peer = *cursor as Peer;
            *cursor += 1;
            let ring = net.rings.get(&(peer, self.me));
            if net.closed.contains(&(peer, self.me)) {
                continue;
            }
            let damaged = net.damaged.contains(&(peer, self.me));
            if damaged || ring.is_some_and(|ring| !ring.is_empty()) {
                return Some(peer);
            }
        }
        None
    }
}
