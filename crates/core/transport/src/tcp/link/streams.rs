//! The streams of a link: opened and attached to, moved to a copy, ended and given up.

use regatta_memory::views::Views;
use regatta_wire::link::Parcel;

use super::super::stream::{InStream, MAX_OUT_STREAMS, OutStream};
use super::{Link, Trouble};

impl Link {
    /// Returns the receiver's end of a stream.
    pub(crate) fn in_stream(&mut self, id: u32) -> Option<&mut InStream> {
        self.ins.iter_mut().find(|stream| stream.id == id)
    }

    /// Notes the number of a stream that the peer has opened. Numbers rise, so those that were skipped are new, too.
    pub(super) fn notice(&mut self, id: u32) -> Result<(), Trouble> {
        if id % 2 == 1 {
            return Ok(());
        }
        while (id.wrapping_sub(self.newest) as i32) > 0 {
            self.noticed.notice()?;
            self.newest = self.newest.wrapping_add(2);
            self.ins.push(InStream::new(self.newest));
        }
        Ok(())
    }

    /// Releases a stream of the peer's, which is not needed here any more.
    pub(crate) fn release_in(&mut self, id: u32) {
        let Some(at) = self.ins.iter().position(|stream| stream.id == id) else {
            return;
        };
        self.ins.swap_remove(at);
        if id.is_multiple_of(2) && !self.forgotten {
            self.noticed.release();
        }
    }

    /// Returns whether the peer is to be told that streams are released.
    #[inline]
    pub(crate) fn owes_release(&self) -> bool {
        self.noticed.is_due()
    }

    /// Opens a stream for a message to the peer, unless too many are open.
    pub(crate) fn open_out(&mut self, message: &Views) -> Option<u32> {
        let open = self.outs.iter().filter(|stream| stream.is_counted());
        if open.count() >= MAX_OUT_STREAMS || !self.opened.may_open() || !self.outbox.has_room(0) {
            return None;
        }
        self.opened.open();
        let id = self.next_out;
        self.next_out = self.next_out.wrapping_add(2);
        self.outs.push(OutStream::new(id, Some(message.clone())));
        Some(id)
    }

    /// Opens a stream for a message from the peer.
    pub(crate) fn open_in(&mut self) -> u32 {
        let id = self.next_in;
        self.next_in = self.next_in.wrapping_add(2);
        let mut stream = InStream::new(id);
        stream.attached = true;
        self.ins.push(stream);
        id
    }

    /// Uses a stream that the peer has opened to receive.
    pub(crate) fn attach_out(&mut self, id: u32) -> Result<(), Trouble> {
        if id.is_multiple_of(2) {
            return Err("the receiver of a message names a stream of a sender".into());
        }
        if self.outs.iter().any(|stream| stream.id == id) {
            return Err("a stream is named twice".into());
        }
        self.outs.push(OutStream::new(id, None));
        Ok(())
    }

    /// Uses a stream that the peer has opened to send.
    pub(crate) fn attach_in(&mut self, id: u32) -> Result<(), Trouble> {
        if !id.is_multiple_of(2) {
            return Err("the sender of a message names a stream of a receiver".into());
        }
        match self.forgotten {
            true => self.ins.push(InStream::new(id)),
            false => self.notice(id)?,
        }
        let stream = self.in_stream(id).filter(|stream| !stream.attached);
        let stream = stream.ok_or("a stream is named that is not there")?;
        stream.attached = true;
        Ok(())
    }

    /// Sends the rest of a stream from a copy of its message, which may lack the bytes that have gone for good. The memory of the message is its owner's
    /// again.
    pub(crate) fn move_out(&mut self, id: u32, message: &Views) {
        if let Some(stream) = self.outs.iter_mut().find(|stream| stream.id == id) {
            stream.message = Some(message.clone());
            self.outbox.let_go(id);
        }
    }

    /// Ends a stream of which the receiver has all. The memory of its message is the user's again, though bytes of it may be on their way once more,
    /// after a cut.
    pub(crate) fn end_out(&mut self, at: usize) {
        let stream = self.outs.swap_remove(at);
        self.outbox.let_go(stream.id);
    }

    /// Gives up a stream, as its sender.
    ///
    /// A peer that the table calls `dead` is not told: should it live, the engine's word that takes the message back never
    /// reaches it, and the end of the stream alone would make no sense to it.
    pub(crate) fn abandon_out(&mut self, id: u32, dead: bool) {
        self.outbox.let_go(id);
        let before = self.outs.len();
        self.outs.retain(|stream| stream.id != id);
        if self.outs.len() != before && !dead {
            self.keep(Parcel::Cancelled, id);
            self.pump(0);
        }
    }

    /// Gives up a stream, as its sender, that nobody else will use. It may have been filled.
    pub(crate) fn retract(&mut self, id: u32, dead: bool) {
        self.outbox.let_go(id);
        self.outs.retain(|stream| stream.id != id);
        if !dead {
            self.keep(Parcel::Retracted, id);
            self.pump(0);
        }
    }

    /// Gives up a stream of the peer's that is not used. The peer is told so by a frame, and retracts it then.
    pub(crate) fn decline(&mut self, id: u32) -> Result<(), Trouble> {
        self.attach_in(id)?;
        self.abandon_in(id);
        Ok(())
    }

    /// Gives up a stream, as its receiver.
    pub(crate) fn abandon_in(&mut self, id: u32) {
        if let Some(stream) = self.in_stream(id) {
            stream.discard();
            if stream.total.is_some() {
                self.release_in(id);
            }
            self.pump(0);
        }
    }
}
