//! Chunks of streams as they arrive: they go straight to their destination if a receive is draining their stream,
//! otherwise aside.

use std::io::IoSliceMut;

use regatta_memory::views::Views;
use regatta_wire::link::{HEAD, Head, Parcel};

use super::reception::InChunk;
use super::{Link, Trouble};

/// Number of bytes received together with the end of a chunk, from behind it: the next header, and possibly a small
/// frame.
const TAIL_BYTES: usize = 4 << 10;

impl Link {
    /// Counts a poll that found this chunk in front of the next frame. Returns whether to leave the chunk to the
    /// receive that drains it and to read nothing now.
    pub(super) fn leave_chunk(&mut self) -> bool {
        let Some(chunk) = self.reception.chunk() else {
            return false;
        };
        let stream = self.streams.in_stream(chunk.stream);
        let wanted = stream.is_some_and(|stream| stream.attached && !stream.discarded);
        self.reception.leave_chunk() && wanted
    }

    /// Begins the chunk with this header. Fails if it exceeds the stream's limit or leaves a gap.
    pub(super) fn begin_chunk(&mut self, head: &Head) -> Result<(), Trouble> {
        self.streams.notice(head.context)?;
        let (offset, length) = (head.word, head.length as usize);
        let mut chunk = InChunk {
            stream: head.context,
            left: length,
            known: length,
            last: head.last,
        };
        // An unknown stream has ended, and this chunk was sent before the peer knew that.
        let Some(stream) = self.streams.in_stream(head.context) else {
            self.reception.begin_chunk(chunk);
            return Ok(());
        };
        let end = offset.checked_add(length as u64);
        if end.is_none_or(|end| end > stream.limit) {
            return Err("a stream exceeds its length".into());
        }
        let Some(known) = stream.received.checked_sub(offset) else {
            return Err("a stream has a gap".into());
        };
        if stream.total.is_none() {
            chunk.known = (known as usize).min(length);
        }
        self.reception.begin_chunk(chunk);
        Ok(())
    }

    /// Adds `n` bytes of the current chunk, which are at `at` in the inbox, to its stream.
    pub(super) fn absorb(&mut self, at: usize, n: usize) -> Result<(), Trouble> {
        let Some(chunk) = self.reception.chunk_mut() else {
            return Ok(());
        };
        let bytes = &self.inbox.bytes[at..at + n];
        let known = chunk.known.min(n);
        chunk.known -= known;
        chunk.left -= n;
        let id = chunk.stream;
        if let Some(stream) = self.streams.in_stream(id) {
            stream.hold(&bytes[known..]);
        }
        self.end_chunk();
        Ok(())
    }

    /// Ends the current chunk if all of it has been received.
    fn end_chunk(&mut self) {
        let Some(chunk) = self.reception.end_chunk() else {
            return;
        };
        let Some(stream) = self.streams.in_stream(chunk.stream) else {
            return;
        };
        if chunk.last && stream.total.is_none() {
            stream.total = Some(stream.received);
            if stream.discarded {
                self.streams.release_in(chunk.stream);
            }
            self.keep(Parcel::Complete, chunk.stream);
        }
    }

    /// Receives a part of stream `id`, straight into the destination `into` if possible. Returns whether anything was
    /// received.
    pub(crate) fn pull(&mut self, id: u32, into: &Views) -> Result<bool, Trouble> {
        if self.reception.chunk_is_over() && self.inbox.is_scanned() && self.comes_in_pieces() {
            // Only the header is received, so that the bytes of a chunk behind it can go straight to their
            // destination.
            let came = self.receive_some(HEAD)?;
            if !came || self.reception.chunk_is_over() {
                return Ok(came);
            }
        }
        let Some(channel) = self.state.channel_mut() else {
            return Ok(false);
        };
        let chunk = self.reception.chunk().filter(|chunk| chunk.stream == id);
        let Some(chunk) = chunk else {
            return self.try_receive();
        };
        let stream = self.streams.in_stream(id);
        let (Some(base), Some(stream), 0) = (into.contiguous(), stream, chunk.known) else {
            return self.try_receive();
        };
        let at = stream.drained as usize;
        if !stream.is_empty() || at + chunk.left > into.len() {
            return self.try_receive();
        }
        let Some(room) = self.inbox.room() else {
            return Ok(false);
        };
        // SAFETY: the range is inside the memory of a message that is being received, which nothing else uses until
        // it is complete.
        let place = unsafe { std::slice::from_raw_parts_mut(base.add(at), chunk.left) };
        let tail = TAIL_BYTES.min(room.len());
        let parts = &mut [IoSliceMut::new(place), IoSliceMut::new(&mut room[..tail])];
        let Some(n) = channel.recv(parts)? else {
            self.reception.was_read(false);
            return Ok(false);
        };
        let whole = chunk.left + tail;
        let more = n == whole || channel.holds_back();
        self.receipts.hear(n);
        let placed = n.min(chunk.left);
        stream.passed(placed);
        self.reception.drained(placed, more);
        self.end_chunk();
        if n > placed {
            self.inbox.end += n - placed;
            self.scan()?;
        }
        if self.has_early() {
            self.go_on_with_early()?;
        }
        self.try_pump(0)?;
        Ok(true)
    }
}
