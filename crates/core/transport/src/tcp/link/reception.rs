//! The state of receiving on a connection: whether something may be available, and the chunk that has not been
//! completely received.

/// Number of polls for a frame, while a chunk that a receive is draining is in front of it, after which the chunk is
/// put aside.
const MAX_CHUNK_POLLS: u32 = 64;

/// The current chunk of the connection, of which some bytes have not been received.
#[derive(Clone, Copy, Debug)]
pub(super) struct InChunk {
    pub(super) stream: u32,
    /// Number of bytes of the chunk that are still to be received. The first `known` of them are repeats: they were
    /// received on an earlier connection, which was lost.
    pub(super) left: usize,
    pub(super) known: usize,
    pub(super) last: bool,
}

/// A link's knowledge of bytes that it has not received yet.
#[derive(Debug, Default)]
pub(crate) struct Reception {
    /// Whether something may be available to be received.
    expects_more: bool,
    /// Whether the last read for parcels filled all its room.
    last_read_was_full: bool,
    chunk: Option<InChunk>,
    /// Number of polls that have left the current chunk to its receive.
    chunk_polls: u32,
}

impl Reception {
    /// Returns whether something may be available to be received.
    #[inline]
    pub(crate) fn expects_more(&self) -> bool {
        self.expects_more
    }

    #[inline]
    pub(crate) fn expect_more(&mut self) {
        self.expects_more = true;
    }

    /// Records a read of the connection. `more` says whether something may be left.
    #[inline]
    pub(super) fn was_read(&mut self, more: bool) {
        self.expects_more = more;
    }

    #[inline]
    pub(super) fn last_read_was_full(&self) -> bool {
        self.last_read_was_full
    }

    #[inline]
    pub(super) fn set_last_read_was_full(&mut self, last_read_was_full: bool) {
        self.last_read_was_full = last_read_was_full;
    }

    /// Returns the current chunk, if there is one.
    #[inline]
    pub(super) fn chunk(&self) -> Option<InChunk> {
        self.chunk
    }

    #[inline]
    pub(super) fn chunk_mut(&mut self) -> Option<&mut InChunk> {
        self.chunk.as_mut()
    }

    /// Returns whether there is no current chunk.
    #[inline]
    pub(in crate::tcp) fn chunk_is_over(&self) -> bool {
        self.chunk.is_none()
    }

    pub(super) fn begin_chunk(&mut self, chunk: InChunk) {
        self.chunk = Some(chunk);
    }

    /// Counts one more poll that leaves the current chunk to the receive that drains it. Returns whether the chunk
    /// may still be left: false from the [`MAX_CHUNK_POLLS`]th poll on.
    pub(super) fn leave_chunk(&mut self) -> bool {
        self.chunk_polls += 1;
        self.chunk_polls < MAX_CHUNK_POLLS
    }

    /// Records that `bytes` of the chunk were received into their destination. `more` says whether something may be
    /// left to be received.
    pub(super) fn drained(&mut self, bytes: usize, more: bool) {
        if let Some(chunk) = &mut self.chunk {
            chunk.left -= bytes;
        }
        (self.chunk_polls, self.expects_more) = (0, more);
    }

    /// Removes and returns the current chunk if it is complete.
    pub(super) fn end_chunk(&mut self) -> Option<InChunk> {
        let chunk = self.chunk.filter(|chunk| chunk.left == 0)?;
        (self.chunk, self.chunk_polls) = (None, 0);
        Some(chunk)
    }

    /// Forgets the current chunk, because the connection is lost.
    pub(super) fn cut(&mut self) {
        (self.chunk, self.expects_more) = (None, false);
    }
}
