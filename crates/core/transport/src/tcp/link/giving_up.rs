//! Opening, attaching, ending and abandoning streams of a link: what happens to the message's memory, and what is
//! sent to the peer.

use regatta_memory::views::Views;
use regatta_wire::link::Parcel;

use super::{Link, Trouble};

impl Link {
    /// Opens a stream for a message to the peer. Returns `None` if too many are open, or if there is no room for a
    /// frame that offers it.
    pub(crate) fn open_out(&mut self, message: &Views) -> Option<u32> {
        match self.outbox.has_room(0) {
            true => self.streams.open_out(message),
            false => None,
        }
    }

    /// Attaches to a stream that the peer has opened in order to receive.
    pub(crate) fn attach_out(&mut self, id: u32) -> Result<(), Trouble> {
        Ok(self.streams.attach_out(id)?)
    }

    /// Attaches to a stream that the peer has opened in order to send.
    pub(crate) fn attach_in(&mut self, id: u32) -> Result<(), Trouble> {
        Ok(self.streams.attach_in(id)?)
    }

    /// Sends the rest of a stream from a copy of its message, which may lack the bytes that need not be sent again.
    /// The link no longer uses the memory of the message.
    pub(crate) fn move_out(&mut self, id: u32, message: &Views) {
        if let Some(stream) = self.streams.out(id) {
            stream.message = Some(message.clone());
            self.outbox.let_go(id);
        }
    }

    /// Ends a stream whose receiver has received everything. The link no longer uses the memory of the message,
    /// though a part of it may have been about to be sent again after a cut.
    pub(crate) fn end_out(&mut self, id: u32) {
        self.streams.remove_out(id);
        self.outbox.let_go(id);
    }

    /// Abandons a stream, as its sender.
    ///
    /// A peer that the table calls `dead` is not notified: if it lives, the engine's frame that withdraws the message
    /// never reaches it, and the end of the stream alone would be invalid there.
    pub(crate) fn abandon_out(&mut self, id: u32, dead: bool) {
        self.outbox.let_go(id);
        if self.streams.remove_out(id) && !dead {
            self.keep(Parcel::Cancelled, id);
            self.pump(0);
        }
    }

    /// Abandons a stream, as its sender, to which the peer will not attach. It may have been filled.
    pub(crate) fn retract(&mut self, id: u32, dead: bool) {
        self.outbox.let_go(id);
        self.streams.remove_out(id);
        if !dead {
            self.keep(Parcel::Retracted, id);
            self.pump(0);
        }
    }

    /// Declines a stream that the peer has opened. A frame notifies the peer, which then retracts the stream.
    pub(crate) fn decline(&mut self, id: u32) -> Result<(), Trouble> {
        self.attach_in(id)?;
        self.abandon_in(id);
        Ok(())
    }

    /// Abandons a stream, as its receiver.
    pub(crate) fn abandon_in(&mut self, id: u32) {
        if self.streams.discard(id) {
            self.pump(0);
        }
    }
}
