//! Frames: the implementation of the engine's trait.
//!
//! *Rules of a small message:* one system call to send it and one to receive it, none if it arrives by a bypass; no
//! allocation, no reading of the clock.

use regatta_engine::{Arrival, Fault, Frames, Peer};
use regatta_memory::held::Held;
use regatta_memory::views::Views;
use regatta_wire::Frame;
use regatta_wire::link::{Head, Parcel};

use super::Tcp;

/// How to treat a frame while this host lacks a resource for a connection, such as a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfShort {
    /// The call that sends the frame fails, and may be repeated.
    Fail,
    /// The link keeps the frame until there is a connection. Used for the engine's own frames, which would not be
    /// sent again.
    Keep,
}

impl Frames for Tcp {
    fn eager_limit(&self) -> usize {
        Tcp::EAGER
    }

    #[inline]
    fn send(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault> {
        self.send_frame(to, frame, payload, IfShort::Fail)
    }

    fn send_to_all(&mut self, to: &[Peer], frame: Frame, payload: &Views) -> u64 {
        Tcp::send_to_all(self, to, frame, payload)
    }

    fn send_body(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool, Fault> {
        // SAFETY: the body is only read, and only during this call.
        let payload = unsafe { Views::block(body.as_ptr().cast_mut(), body.len()) };
        self.send_frame(to, frame, &payload, IfShort::Keep)
    }

    #[inline]
    fn front(&mut self, from: Peer) -> Result<Option<Arrival>, Fault> {
        Ok(self.look(from)?.and_then(|head| arrival(&head)))
    }

    #[inline]
    fn accept(&mut self, from: Peer, into: &Views) {
        if let Some(link) = self.link(from)
            && let Some(head) = link.inbox.front()
        {
            let payload = link.inbox.payload(&head);
            let keep = payload.len().min(into.len());
            // SAFETY: `payload` has `keep` bytes, and `into` has room for them.
            unsafe { into.scatter(0, payload.as_ptr(), keep) };
            link.take(&head);
        }
        self.retry_words(from);
    }

    fn accept_bytes(&mut self, from: Peer) -> Held {
        let Ok(Some(_)) = self.look(from) else {
            return Held::zeros(0);
        };
        let Some(link) = self.link(from) else {
            return Held::zeros(0);
        };
        let Some(head) = link.inbox.front() else {
            return Held::zeros(0);
        };
        let payload = link.inbox.payload(&head);
        let mut bytes = Held::zeros(payload.len());
        bytes.copy_from_slice(payload);
        link.take(&head);
        self.retry_words(from);
        bytes
    }

    /// Returns the next peer on another host from which `poll` or a bypass has received a frame.
    fn next_ready(&mut self, cursor: &mut usize) -> Option<Peer> {
        if *cursor == 0 {
            self.look_at_bypasses();
        }
        while let Some(&peer) = self.known.get(*cursor) {
            *cursor += 1;
            let Some(link) = self.link(peer).filter(|link| !link.state.is_closed()) else {
                continue;
            };
            let front = match link.reception.expects_more() {
                true => link.front(),
                false => link.inbox.front(),
            };
            let ready = front.is_some() || link.state.has_news_of_fault();
            let (restless, blocked) = (link.is_restless(), link.is_open() && link.is_blocked());
            self.restless |= restless;
            if blocked {
                self.leave_behind();
            }
            if ready {
                return Some(peer);
            }
        }
        None
    }
}

impl Tcp {
    #[inline]
    fn send_frame(
        &mut self,
        to: Peer,
        frame: Frame,
        payload: &Views,
        short: IfShort,
    ) -> Result<bool, Fault> {
        let length = payload.len();
        // A confirmation that has arrived may make a bypass usable.
        self.look_at_bypasses();
        if let Some(link) = self.link(to)
            && link.is_open()
            && link.outbox.has_room(length)
        {
            link.send(frame, payload);
            let (restless, watched) = (link.is_restless(), link.stall.is_watched());
            if link.outbox.is_unsure() {
                self.tick_bypasses();
            }
            if restless {
                self.leave_behind();
            }
            if !watched {
                self.begin_watch(to);
            }
            return Ok(true);
        }
        self.send_slowly(to, frame, payload, short)
    }

    /// Sends a frame where there is no connection or no room.
    #[cold]
    fn send_slowly(
        &mut self,
        to: Peer,
        frame: Frame,
        payload: &Views,
        short: IfShort,
    ) -> Result<bool, Fault> {
        let length = payload.len();
        let link = self.link_to(to)?;
        // The acknowledgement that makes room may be behind other parcels.
        link.reception.expect_more();
        while link.is_open() && link.reception.expects_more() && !link.outbox.has_room(length) {
            link.receive();
        }
        if !link.is_open() {
            match self.reach(to) {
                Err(Fault::System(_)) if short == IfShort::Keep => {}
                reached => reached?,
            }
            self.poll();
        }
        let link = self.link_to(to)?;
        if !link.outbox.has_room(length) {
            link.pump(0);
            return Ok(false);
        }
        link.send(frame, payload);
        if link.outbox.is_unsure() {
            self.tick_bypasses();
        }
        self.leave_behind();
        self.begin_watch(to);
        if short == IfShort::Keep {
            // The link has something to send now, so it keeps trying to connect.
            let _ = self.reach(to);
        }
        Ok(true)
    }

    /// Returns the header of the front frame. Polls the connection if there is none yet. Fails if the peer broke the
    /// protocol, once all frames from before are taken.
    #[inline]
    fn look(&mut self, from: Peer) -> Result<Option<Head>, Fault> {
        if !self.link(from).is_some_and(|link| link.is_open()) {
            self.poll();
        }
        self.look_at_bypasses();
        let Some(link) = self.link(from).filter(|link| !link.state.is_closed()) else {
            return Ok(None);
        };
        let front = link.front();
        match link.state.fault() {
            // Frames from before the fault are valid.
            Some(what) if front.is_none() => {
                link.state.report();
                Err(Fault::Corrupt { peer: from, what })
            }
            _ => {
                if !link.is_open() || link.is_restless() {
                    self.restless = true;
                }
                Ok(front)
            }
        }
    }

    /// Retries to send parcels to a peer for which there was no room, and tends the bypass if that is due.
    pub(super) fn retry_words(&mut self, peer: Peer) {
        let Some(link) = self.link(peer).filter(|link| link.is_open()) else {
            return;
        };
        let (blocked, wants_bypass) = (link.is_blocked(), link.negotiation.is_due());
        if blocked {
            self.leave_behind();
        }
        if wants_bypass {
            self.tend_bypass(peer);
        }
    }
}

/// Converts a front frame's header to the engine's type.
#[inline]
fn arrival(head: &Head) -> Option<Arrival> {
    let Parcel::Frame(kind) = head.parcel else {
        return None;
    };
    let frame = Frame {
        kind,
        context: head.context,
        tag: head.tag,
    };
    Some(Arrival {
        frame,
        length: head.length as usize,
    })
}
