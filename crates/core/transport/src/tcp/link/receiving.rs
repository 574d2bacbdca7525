//! Receiving on a link: frames for the engine, chunks, and the other parcels between them.

use std::io::IoSliceMut;

use regatta_connection::channel::Channel;
use regatta_wire::bypass::Offer;
use regatta_wire::link::{HEAD, Head, Parcel};

use super::{Link, MAX_PAYLOAD_BYTES, PEER_CLOSED, Trouble};

/// Size in bytes of a read on an encrypted connection when the kind of the next parcel is unknown. There is room for
/// any frame, and for little of a large message behind its offer, since that would have to be copied once more.
const SMALL_READ_BYTES: usize = HEAD + MAX_PAYLOAD_BYTES;

impl Link {
    /// Returns the header of the oldest frame. Reads from the connection if none has been received.
    #[inline]
    pub(crate) fn front(&mut self) -> Option<Head> {
        let front = self.inbox.front();
        if front.is_some() || !self.is_open() {
            return front;
        }
        if !self.reception.expects_more()
            && let Some(bypass) = &mut self.bypass
            && bypass.spares_look()
        {
            return None;
        }
        self.receive();
        self.inbox.front()
    }

    /// Removes the front frame, which has been taken.
    #[inline]
    pub(crate) fn take(&mut self, head: &Head) {
        self.inbox.take(head);
        if self.receipts.is_due(self.inbox.taken) {
            self.pump(0);
        }
    }

    /// Receives what is available. A chunk that a receive is draining is left to that receive for a while.
    #[inline]
    pub(crate) fn receive(&mut self) {
        if !self.reception.chunk_is_over() && self.leave_chunk() {
            self.reception.was_read(false);
            return;
        }
        if let Err(trouble) = self.try_receive() {
            self.trouble(trouble);
        }
    }

    /// Returns whether records have been received of which no event of the socket will notify.
    pub(in crate::tcp) fn holds_back(&self) -> bool {
        let channel = self.state.channel();
        self.reception.expects_more() && channel.is_some_and(Channel::holds_back)
    }

    /// Receives the records of which no event of the socket will notify, as far as there is room.
    pub(in crate::tcp) fn receive_held_back(&mut self) {
        while self.holds_back() {
            self.receive();
        }
    }

    pub(in crate::tcp) fn try_receive(&mut self) -> Result<bool, Trouble> {
        let reads_little = !self.reception.last_read_was_full() && self.comes_in_pieces();
        self.receive_some(if reads_little {
            SMALL_READ_BYTES
        } else {
            usize::MAX
        })
    }

    /// Returns whether small pieces can be received as cheaply as large ones. An encrypted connection buffers what it
    /// has received. On a plain one each piece costs a system call, and a window update from the kernel to the peer.
    pub(super) fn comes_in_pieces(&self) -> bool {
        self.state.channel().is_some_and(Channel::is_secure)
    }

    /// Receives up to `most` bytes, or up to the rest of the current chunk. Returns whether anything was received.
    pub(super) fn receive_some(&mut self, most: usize) -> Result<bool, Trouble> {
        let Some(channel) = self.state.channel_mut() else {
            return Ok(false);
        };
        let Some(room) = self.inbox.room() else {
            self.reception.was_read(false);
            return Ok(false);
        };
        let most = self.reception.chunk().map_or(most, |chunk| chunk.left);
        let asked = most.min(room.len());
        let room = &mut room[..asked];
        let Some(n) = channel.recv(&mut [IoSliceMut::new(room)])? else {
            self.reception.was_read(false);
            return Ok(false);
        };
        let more = n == asked || channel.holds_back();
        self.reception.was_read(more);
        self.receipts.hear(n);
        self.arrived(n)?;
        if self.has_early() {
            self.go_on_with_early()?;
        }
        let was_full = n == asked && n >= SMALL_READ_BYTES && self.reception.chunk_is_over();
        self.reception.set_last_read_was_full(was_full);
        if !self.reception.expects_more() {
            self.has_read();
        }
        Ok(true)
    }

    /// Handles `n` bytes that were received into the inbox's room.
    fn arrived(&mut self, n: usize) -> Result<(), Trouble> {
        if !self.reception.chunk_is_over() {
            // The bytes are not kept in the inbox: they go on into the stream.
            let at = self.inbox.end;
            self.absorb(at, n)?;
            if self.reception.chunk_is_over() {
                self.try_pump(0)?;
            }
            return Ok(());
        }
        self.inbox.end += n;
        self.scan()
    }

    /// Scans the bytes that have been received, and handles the complete parcels.
    pub(super) fn scan(&mut self) -> Result<(), Trouble> {
        let mut answer = false;
        while let Some(bytes) = self.inbox.head_at(self.inbox.scanned) {
            let head = Head::decode(bytes)
                .map_err(|_| "a connection carries a header that is not valid")?;
            let there = self.inbox.end - self.inbox.scanned - HEAD;
            if head.parcel == Parcel::Chunk {
                let n = there.min(head.length as usize);
                self.begin_chunk(&head)?;
                self.absorb(self.inbox.scanned + HEAD, n)?;
                self.inbox.pass(HEAD + n);
                answer = true;
                continue;
            }
            if matches!(head.parcel, Parcel::Frame(_)) && head.length as usize > MAX_PAYLOAD_BYTES {
                return Err("a frame is longer than the limit".into());
            }
            if there < head.length as usize {
                break;
            }
            answer |= self.parcel(&head)?;
        }
        // The end of a stream is confirmed, so that its sender can continue.
        if answer {
            self.try_pump(0)?;
        }
        Ok(())
    }

    /// Handles a complete parcel that is not a chunk. Returns whether there may be something to send in reply.
    #[inline]
    fn parcel(&mut self, head: &Head) -> Result<bool, Trouble> {
        if self.receipts.is_behind(self.inbox.reached) && head.parcel.is_numbered() {
            return self.pass_repeated(head);
        }
        match head.parcel {
            Parcel::Credit => {
                let body = self.inbox.body(head);
                self.streams.credit(head.context, body, head.word)?;
                self.inbox.pass(head.size());
                return Ok(true);
            }
            Parcel::Taken => {
                self.acknowledged(head.word)?;
                self.inbox.pass(head.size());
                // There may now be room for a release that was held back.
                return Ok(self.streams.owe_release());
            }
            Parcel::Released => {
                self.streams.released(head.word)?;
                self.inbox.pass(head.size());
                return Ok(false);
            }
            Parcel::DeadlockProbe => return self.deadlock_probe(head),
            Parcel::Resume | Parcel::Chunk | Parcel::Shortage => {
                return Err("a connection begins twice".into());
            }
            Parcel::Bypass | Parcel::BypassKey | Parcel::Place => return self.bypass_parcel(head),
            Parcel::Closed => return Err(PEER_CLOSED.into()),
            Parcel::Disowned => return Err(Trouble::Disowned),
            Parcel::Frame(_) => self.negotiation.count_frame(),
            Parcel::Complete => self.streams.complete(head.context),
            Parcel::Cancelled => self.streams.cancelled(head.context)?,
            Parcel::Retracted => self.streams.retracted(head.context)?,
            Parcel::Bye => self.state.hear_bye(),
        }
        self.acknowledged(head.word)?;
        self.inbox.hold(head);
        self.receipts.catch_up(self.inbox.reached);
        Ok(false)
    }

    fn deadlock_probe(&mut self, head: &Head) -> Result<bool, Trouble> {
        self.probes.read(self.inbox.body(head))?;
        self.acknowledged(head.word)?;
        self.inbox.pass(head.size());
        Ok(false)
    }

    /// Skips a numbered parcel on the connection that the bypass has already delivered.
    #[cold]
    fn pass_repeated(&mut self, head: &Head) -> Result<bool, Trouble> {
        self.receipts
            .pass_repeated(head.size(), self.inbox.reached)?;
        self.inbox.pass(head.size());
        Ok(false)
    }

    /// Handles a parcel about the bypass.
    #[cold]
    fn bypass_parcel(&mut self, head: &Head) -> Result<bool, Trouble> {
        match head.parcel {
            Parcel::Place => self.receipts.go_on_at(head.word, self.inbox.reached)?,
            Parcel::BypassKey => self.bypass_key_changed(head.word)?,
            _ => {
                let offer = Offer::decode(self.inbox.body(head));
                let offer = offer.map_err(|_| "the offer of a bypass is not valid")?;
                self.negotiation.offered(offer);
            }
        }
        self.inbox.pass(head.size());
        Ok(false)
    }
}
