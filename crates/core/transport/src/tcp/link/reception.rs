//! Looks at what comes on a connection: whether there may be something, and the chunk of a stream in the way.

/// Number of polls for a frame, while a chunk that somebody drains is in front of it, after which the chunk is put aside.
const MAX_CHUNK_POLLS: u32 = 64;

/// The chunk at the head of the connection, of which some bytes are still to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct InChunk {
    pub(super) stream: u32,
    /// Bytes of the chunk that are still to come. The first `known` of them are repeats: they came on an earlier connection, which was lost.
    pub(super) left: usize,
    pub(super) known: usize,
    pub(super) last: bool,
}

/// What a link knows of bytes that it has not received yet.
#[derive(Debug, Default)]
pub(crate) struct Reception {
    /// Something may be there to be received.
    expects_more: bool,
    /// The last look for parcels has filled all its room.
    last_read_was_full: bool,
    chunk: Option<InChunk>,
    /// Vain looks at the chunk in the way.
    chunk_polls: u32,
}

impl Reception {
    /// Whether something may be there to be received.
    #[inline]
    pub(crate) fn expects_more(&self) -> bool {
        self.expects_more
    }

    #[inline]
    pub(crate) fn expect_more(&mut self) {
        self.expects_more = true;
    }

    /// The connection has been read; `more`: something may be left.
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

    /// The chunk in the way.
    #[inline]
    pub(super) fn chunk(&self) -> Option<InChunk> {
        self.chunk
    }

    #[inline]
    pub(super) fn chunk_mut(&mut self) -> Option<&mut InChunk> {
        self.chunk.as_mut()
    }

    /// Whether no chunk is under way.
    #[inline]
    pub(in crate::tcp) fn chunk_is_over(&self) -> bool {
        self.chunk.is_none()
    }

    pub(super) fn begin_chunk(&mut self, chunk: InChunk) {
        self.chunk = Some(chunk);
    }

    /// Counts one more poll that leaves the chunk in the way to its drainer. Returns whether it may still be left there: false
    /// from the [`MAX_CHUNK_POLLS`]th poll on.
    pub(super) fn leave_chunk(&mut self) -> bool {
        self.chunk_polls += 1;
        self.chunk_polls < MAX_CHUNK_POLLS
    }

    /// This many bytes of the chunk have gone to their place; `more`: something may be left to be received.
    pub(super) fn drained(&mut self, bytes: usize, more: bool) {
        if let Some(chunk) = &mut self.chunk {
            chunk.left -= bytes;
        }
        (self.chunk_polls, self.expects_more) = (0, more);
    }

    /// Returns the chunk that is through, if it is, and is done with it.
    pub(super) fn end_chunk(&mut self) -> Option<InChunk> {
        let chunk = self.chunk.filter(|chunk| chunk.left == 0)?;
        (self.chunk, self.chunk_polls) = (None, 0);
        Some(chunk)
    }

    /// The connection is lost, and what was to come on it.
    pub(super) fn cut(&mut self) {
        (self.chunk, self.expects_more) = (None, false);
    }
}
