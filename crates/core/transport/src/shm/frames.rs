//! Frames through rings.
//!
//! *Rules for sending and accepting a small message:* no lock, no allocation, no system call unless the receiver
//! sleeps, one line written, one line read. (docs/hot-paths.md names the test.)

use regatta_engine::{Arrival, Fault, Frames, Peer, Polled, SentLine};
use regatta_memory::bell::Fencing;
use regatta_memory::held::Held;
use regatta_memory::views::Views;
use regatta_wire::Frame;

use super::{Shm, place};
use crate::shm_channel::{In, Out, Positions};
use regatta_segment::job::Geometry;

impl Frames for Shm {
    fn eager_limit(&self) -> usize {
        self.job.geometry().eager_limit()
    }

    fn eager_limit_to(&self, peer: Peer) -> usize {
        match self.outs.get(peer as usize) {
            Some(Some(channel)) => channel.longest(),
            _ if peer.max(self.me) < self.job.first() => self.eager_limit(),
            // The ring's size is known only once it exists.
            _ => Geometry::SMALLEST.eager_limit(),
        }
    }

    #[inline(always)]
    fn send(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault> {
        self.write(to, frame, payload)
    }

    #[inline(always)]
    fn send_line(&mut self, to: Peer, context: u32, tag: i32, payload: &Views) -> SentLine {
        let Some(Some(channel)) = self.outs.get_mut(to as usize) else {
            return SentLine::No;
        };
        if !channel.send_line(context, tag, payload) {
            return SentLine::No;
        }
        match channel.bell().must_be_rung(self.fencing) {
            true => SentLine::ToSleeper,
            false => SentLine::Yes,
        }
    }

    fn wake(&mut self, to: Peer) {
        if let Some(Some(channel)) = self.outs.get(to as usize) {
            channel.bell().wake();
        }
    }

    fn send_body(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool, Fault> {
        // SAFETY: the body is only read, and only during this call.
        let payload = unsafe { Views::block(body.as_ptr().cast_mut(), body.len()) };
        self.write(to, frame, &payload)
    }

    #[inline(always)]
    fn front(&mut self, from: Peer) -> Result<Option<Arrival>, Fault> {
        let Some(Some(channel)) = self.ins.get_mut(from as usize) else {
            return self.first_front(from);
        };
        channel.front().map_err(|corrupt| Fault::Corrupt {
            peer: from,
            what: corrupt.what,
        })
    }

    #[inline(always)]
    fn accept(&mut self, from: Peer, into: &Views) {
        let fencing = self.fencing;
        if let Some(Some(channel)) = self.ins.get_mut(from as usize)
            && channel.accept(into)
        {
            channel.bell().ring(fencing);
        }
    }

    #[inline(always)]
    fn prepare(&mut self, peer: Peer) {
        if let Some(Some(channel)) = self.outs.get_mut(peer as usize) {
            channel.prepare();
        }
    }

    #[inline(always)]
    fn poll_matching(&mut self, from: Peer, context: u32, tag: i32, into: &Views) -> Polled {
        let Some(Some(channel)) = self.ins.get_mut(from as usize) else {
            // A ring that was just opened is polled next time.
            if self.was_opened_to() {
                self.notice_opened();
            }
            return Polled::Nothing;
        };
        let (polled, room) = channel.poll_matching(context, tag, into);
        if room {
            channel.bell().ring(self.fencing);
        }
        polled
    }

    fn accept_bytes(&mut self, from: Peer) -> Held {
        let length = match self.front(from) {
            Ok(Some(front)) => front.length,
            _ => return Held::zeros(0),
        };
        let mut bytes = Held::zeros(length);
        // SAFETY: `bytes` is owned by this function, and is written before it is used again.
        let into = unsafe { Views::block(bytes.as_mut_ptr(), length) };
        self.accept(from, &into);
        bytes
    }

    #[inline(always)]
    fn next_ready(&mut self, cursor: &mut usize) -> Option<Peer> {
        if *cursor == 0 {
            if self.was_opened_to() {
                self.notice_opened();
            }
            self.open.look(self.job.marks(self.me));
        }
        let ins = &self.ins;
        self.open.next(
            cursor,
            |peer| matches!(ins.get(peer as usize), Some(Some(channel)) if channel.has_line()),
        )
    }
}

impl Shm {
    #[cold]
    pub(super) fn open_out(&mut self, to: Peer) -> Result<(), Fault> {
        self.let_go_of_read_out();
        let channel = Out::open(&self.job, self.me, to, self.policy, &mut self.ring_cursor)
            .map_err(|error| {
                Fault::Memory(format!(
                    "the ring to task {to} could not be opened: {error}"
                ))
            })?;
        *place(&mut self.outs, to) = Some(channel);
        Ok(())
    }

    /// Returns whether another task has opened a ring to this one that has not been noticed yet.
    #[inline(always)]
    fn was_opened_to(&self) -> bool {
        !self.job.opened_rings(self.me).is_empty()
    }

    /// Returns the front of a ring that was not noticed yet. By now the ring may have been opened and filled, and its
    /// owner may be gone: without this look, the frames that it sent would be lost.
    #[cold]
    fn first_front(&mut self, from: Peer) -> Result<Option<Arrival>, Fault> {
        if !self.was_opened_to() {
            return Ok(None);
        }
        self.notice_opened();
        let fault = self.fault(from);
        match self.ins.get_mut(from as usize) {
            Some(Some(channel)) => channel.front().map_err(fault),
            _ => Ok(None),
        }
    }

    /// Adds the rings that other tasks have opened towards this one.
    #[cold]
    fn notice_opened(&mut self) {
        self.let_go_of_read_out();
        for (source, channel) in In::opened(&self.job, self.me) {
            let place = place(&mut self.ins, source);
            if place.is_none() && !self.closed.contains(&source) {
                self.open.add(source, channel.is_marked());
                *place = Some(channel);
            }
        }
    }

    #[inline(always)]
    fn write(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault> {
        let fencing = self.fencing;
        let back = &self.ins;
        match self.outs.get_mut(to as usize) {
            Some(Some(channel)) => write_to(channel, to, back, fencing, frame, payload),
            _ => self.write_first(to, frame, payload),
        }
    }

    #[cold]
    fn write_first(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault> {
        self.open_out(to)?;
        let fencing = self.fencing;
        let back = &self.ins;
        match self.outs.get_mut(to as usize) {
            Some(Some(channel)) => write_to(channel, to, back, fencing, frame, payload),
            _ => Ok(false),
        }
    }
}

#[inline(always)]
fn write_to(
    channel: &mut Out,
    to: Peer,
    back: &[Option<In>],
    fencing: Fencing,
    frame: Frame,
    payload: &Views,
) -> Result<bool, Fault> {
    let positions = || match back.get(to as usize) {
        Some(Some(back)) => back.positions(),
        _ => Positions::default(),
    };
    let sent = channel
        .send(frame, payload, positions)
        .map_err(|corrupt| Fault::Corrupt {
            peer: to,
            what: corrupt.what,
        })?;
    if sent {
        channel.bell().ring(fencing);
    }
    Ok(sent)
}
