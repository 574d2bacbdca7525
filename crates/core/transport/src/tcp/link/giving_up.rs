//! Opening, attaching, ending and giving up streams of a link: what happens to the message's memory, and what the peer is told.

use regatta_memory::views::Views;
use regatta_wire::link::Parcel;

use super::{Link, Trouble};

impl Link {
    /// Opens a stream for a message to the peer, unless too many are open, or no frame could name it.
    pub(crate) fn open_out(&mut self, message: &Views) -> Option<u32> {
        match self.outbox.has_room(0) {
            true => self.streams.open_out(message),
            false => None,
        }
    }

    /// Uses a stream that the peer has opened to receive.
    pub(crate) fn attach_out(&mut self, id: u32) -> Result<(), Trouble> {
        Ok(self.streams.attach_out(id)?)
    }

    /// Uses a stream that the peer has opened to send.
    pub(crate) fn attach_in(&mut self, id: u32) -> Result<(), Trouble> {
        Ok(self.streams.attach_in(id)?)
    }

    /// Sends the rest of a stream from a copy of its message, which may lack the bytes that have gone for good. The memory of the message is its owner's
    /// again.
    pub(crate) fn move_out(&mut self, id: u32, message: &Views) {
        if let Some(stream) = self.streams.out(id) {
            stream.message = Some(message.clone());
            self.outbox.let_go(id);
        }
    }

    /// Ends a stream of which the receiver has all. The memory of its message is the user's again, though bytes of it may be on their way once more,
    /// after a cut.
    pub(crate) fn end_out(&mut self, id: u32) {
        self.streams.remove_out(id);
        self.outbox.let_go(id);
    }

    /// Gives up a stream, as its sender.
    ///
    /// A peer that the table calls `dead` is not told: should it live, the engine's word that takes the message back never
    /// reaches it, and the end of the stream alone would make no sense to it.
    pub(crate) fn abandon_out(&mut self, id: u32, dead: bool) {
        self.outbox.let_go(id);
        if self.streams.remove_out(id) && !dead {
            self.keep(Parcel::Cancelled, id);
            self.pump(0);
        }
    }

    /// Gives up a stream, as its sender, that nobody else will use. It may have been filled.
    pub(crate) fn retract(&mut self, id: u32, dead: bool) {
        self.outbox.let_go(id);
        self.streams.remove_out(id);
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
        if self.streams.discard(id) {
            self.pump(0);
        }
    }
}
