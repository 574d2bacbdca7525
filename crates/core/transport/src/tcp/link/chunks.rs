//! Chunks of streams, as they come: to where they go at once, if somebody drains their stream, or aside.

use std::io::IoSliceMut;

use regatta_memory::views::Views;
use regatta_wire::link::{HEAD, Head, Parcel};

use super::{Link, MAX_CHUNK_POLLS, TAIL_BYTES, Trouble};
use crate::tcp::phase::Phase;

/// The chunk at the head of the connection, of which some bytes are still to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct InChunk {
    pub(super) stream: u32,
    /// Bytes to come, and how many of them have come before, on a connection that was lost.
    pub(super) left: usize,
    pub(super) known: usize,
    pub(super) last: bool,
}

impl Link {
    /// Whether the chunk in the way is left to who drains it.
    pub(super) fn leave_chunk(&mut self) -> bool {
        let Some(chunk) = self.chunk else {
            return false;
        };
        let stream = self.ins.iter().find(|stream| stream.id == chunk.stream);
        let wanted = stream.is_some_and(|stream| stream.attached && !stream.discarded);
        self.waited += 1;
        wanted && self.waited < MAX_CHUNK_POLLS
    }

    /// A chunk begins.
    pub(super) fn begin_chunk(&mut self, head: &Head) -> Result<InChunk, Trouble> {
        self.notice(head.context)?;
        let (offset, length) = (head.word, head.length as usize);
        let mut chunk = InChunk {
            stream: head.context,
            left: length,
            known: length,
            last: head.last,
        };
        // A stream that is not there any more: it has ended, and this was sent before that was known.
        let Some(stream) = self.in_stream(head.context) else {
            return Ok(chunk);
        };
        let end = offset.checked_add(length as u64);
        if end.is_none_or(|end| end > stream.limit) {
            return Err("a stream goes further than it may".into());
        }
        let Some(known) = stream.received.checked_sub(offset) else {
            return Err("a stream has a gap".into());
        };
        if stream.total.is_none() {
            chunk.known = (known as usize).min(length);
        }
        Ok(chunk)
    }

    /// `n` bytes of the present chunk lie at `at` of the inbox.
    pub(super) fn absorb(&mut self, at: usize, n: usize) -> Result<(), Trouble> {
        let Some(chunk) = &mut self.chunk else {
            return Ok(());
        };
        let bytes = &self.inbox.bytes[at..at + n];
        let known = chunk.known.min(n);
        chunk.known -= known;
        chunk.left -= n;
        let id = chunk.stream;
        if let Some(stream) = self.ins.iter_mut().find(|stream| stream.id == id) {
            stream.hold(&bytes[known..]);
        }
        self.end_chunk();
        Ok(())
    }

    /// If the present chunk is through, be done with it.
    fn end_chunk(&mut self) {
        let Some(chunk) = self.chunk.filter(|chunk| chunk.left == 0) else {
            return;
        };
        self.chunk = None;
        self.waited = 0;
        let Some(at) = self.ins.iter().position(|one| one.id == chunk.stream) else {
            return;
        };
        let stream = &mut self.ins[at];
        if chunk.last && stream.total.is_none() {
            stream.total = Some(stream.received);
            if stream.discarded {
                self.release_in(chunk.stream);
            }
            self.keep(Parcel::Complete, chunk.stream);
        }
    }

    /// Receive the present chunk of `id`, straight into its place if it can go there.
    pub(crate) fn pull(&mut self, id: u32, into: &Views) -> Result<bool, Trouble> {
        if self.chunk.is_none() && self.inbox.is_scanned() && self.comes_in_pieces() {
            // The head alone: the bytes of a chunk behind it can go to their place.
            let came = self.receive_some(HEAD)?;
            if !came || self.chunk.is_none() {
                return Ok(came);
            }
        }
        let Phase::Open(channel) = &mut self.phase else {
            return Ok(false);
        };
        let Some(chunk) = self.chunk.as_mut().filter(|chunk| chunk.stream == id) else {
            return self.try_receive();
        };
        let stream = self.ins.iter_mut().find(|stream| stream.id == id);
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
        // SAFETY: inside the memory of a message being received, which is nobody else's until it is.
        let place = unsafe { std::slice::from_raw_parts_mut(base.add(at), chunk.left) };
        let tail = TAIL_BYTES.min(room.len());
        let parts = &mut [IoSliceMut::new(place), IoSliceMut::new(&mut room[..tail])];
        let Some(n) = channel.recv(parts)? else {
            self.hint = false;
            return Ok(false);
        };
        let whole = chunk.left + tail;
        self.hint = n == whole || channel.holds_back();
        self.heard_bytes += n as u64;
        let placed = n.min(chunk.left);
        stream.passed(placed);
        chunk.left -= placed;
        self.waited = 0;
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
