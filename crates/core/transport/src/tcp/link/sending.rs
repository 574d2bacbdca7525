//! Sending on a link: frames, acknowledgements, and the last parcels.

use regatta_memory::views::Views;
use regatta_wire::Frame;
use regatta_wire::deadlock_probe::DeadlockProbe;
use regatta_wire::link::{Head, Parcel};

use super::{Link, Trouble};
use crate::tcp::stream::OutStream;

impl Link {
    /// Queues a frame, and writes it if that is possible at once.
    #[inline]
    pub(crate) fn send(&mut self, frame: Frame, payload: &Views) {
        let head = Head::frame(frame, payload.len() as u32, self.inbox.taken);
        let by_bypass = self.bypass.is_some() && self.is_bypass_free(head.size());
        self.outbox.keep(&head, payload);
        self.receipts.tell(self.inbox.taken);
        if by_bypass && self.send_by_bypass() {
            return;
        }
        if self.bypass.is_some() {
            self.passes_by_bypass();
        }
        let Some(channel) = self.state.sending_channel() else {
            return;
        };
        if self.streams.outs().last().is_some_and(OutStream::is_fresh) {
            // The frame that offers the stream is sent together with the front of the message, in one system call.
            return self.pump(1);
        }
        match self.outbox.write_now(channel) {
            Ok(true) => {}
            Ok(false) => self.pump(0),
            Err(_) => self.fall_mute(),
        }
    }

    /// Stops sending on the connection, which takes nothing more. Not every failure to send ends the connection for
    /// the other side or for receiving here: examples are a key that cannot be changed, or a kernel without memory.
    /// So the connection is shut down here.
    fn fall_mute(&mut self) {
        if let Some(channel) = self.state.channel() {
            channel.end();
        }
        self.state.fell_mute();
        self.reception.expect_more();
    }

    /// Queues a numbered parcel that consists of a header only.
    pub(super) fn keep(&mut self, parcel: Parcel, context: u32) {
        self.outbox.keep_bare(parcel, context, self.inbox.taken);
    }

    /// Handles the peer's acknowledgement that it has taken everything up to `position`, which may make room.
    #[inline]
    pub(super) fn acknowledged(&mut self, position: u64) -> Result<(), Trouble> {
        self.outbox.acknowledged(position)?;
        if self.outbox.has_late() {
            self.outbox.keep_late(self.inbox.taken);
        }
        Ok(())
    }

    /// Handles an acknowledgement in a frame of the bypass. It is ignored if the connection has ended, because it
    /// says nothing about the next one.
    #[inline]
    pub(in crate::tcp) fn acknowledge_by_bypass(&mut self, position: u64) -> Result<(), Trouble> {
        match self.is_open() {
            true => self.acknowledged(position),
            false => Ok(()),
        }
    }

    /// Sends a deadlock probe behind everything sent before. Returns false, having sent nothing, if there is no
    /// connection or if something sent before has not been written yet.
    pub(crate) fn send_probe(&mut self, probe: &DeadlockProbe) -> bool {
        if !self.is_open() || self.is_blocked() {
            return false;
        }
        let body = probe.encode();
        let mut head = Head::bare(Parcel::DeadlockProbe, 0, self.inbox.taken);
        head.length = body.len() as u32;
        self.receipts.tell(self.inbox.taken);
        self.outbox.urge(&head, &body);
        self.pump(0);
        true
    }

    /// Sends the last parcel, once, if that is possible now.
    pub(crate) fn send_bye(&mut self) {
        if self.state.say_bye() {
            self.keep(Parcel::Bye, 0);
            self.pump(0);
        }
    }

    /// Writes what can be written, with up to `budget` chunks of streams.
    pub(crate) fn pump(&mut self, budget: usize) {
        if let Err(trouble) = self.try_pump(budget) {
            self.trouble(trouble);
        }
    }

    pub(crate) fn try_pump(&mut self, budget: usize) -> Result<bool, Trouble> {
        if self.state.sending_channel().is_none() {
            return Ok(false);
        }
        let (mut moved, mut budget) = (false, budget);
        loop {
            let all = self.urge_what_is_due();
            let Some(channel) = self.state.channel_mut() else {
                return Ok(moved);
            };
            match self.outbox.pump(channel, self.streams.outs_mut(), budget) {
                Ok(some) => moved |= some,
                Err(_) => {
                    self.fall_mute();
                    return Ok(false);
                }
            }
            if all || !self.outbox.has_room_to_urge() {
                return Ok(moved);
            }
            budget = 0;
        }
    }

    /// Queues the acknowledgements and credits that the peer needs. Returns false if there is more to send than there
    /// is room for now.
    fn urge_what_is_due(&mut self) -> bool {
        let taken = self.inbox.taken;
        if self.receipts.is_due(taken) {
            if !self.outbox.has_room_to_urge() {
                return false;
            }
            self.receipts.tell(taken);
            self.outbox.urge(&Head::bare(Parcel::Taken, 0, taken), &[]);
        }
        for stream in self.streams.announcing() {
            if !self.outbox.has_room_to_urge() {
                return false;
            }
            stream.announce = false;
            let mut head = Head::bare(Parcel::Credit, stream.id, stream.limit);
            head.length = 8;
            self.outbox.urge(&head, &stream.received.to_le_bytes());
        }
        // A peer that is slow to acknowledge is not notified of released streams, so it cannot open more.
        if self.streams.owe_release() && self.outbox.is_acknowledged() {
            if !self.outbox.has_room_to_urge() {
                return false;
            }
            let head = Head::bare(Parcel::Released, 0, self.streams.take_release());
            self.outbox.urge(&head, &[]);
        }
        true
    }
}
