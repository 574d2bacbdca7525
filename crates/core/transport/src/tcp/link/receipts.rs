//! Byte positions of a link that neither the outbox nor the inbox tracks: what was acknowledged to the peer, and
//! where the connection's stream is.

use crate::tcp::outbox::RETAIN_BYTES;

/// Byte positions of a link.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    /// Position in the peer's stream that was last acknowledged to it.
    told: u64,
    /// Position of the first byte of the next numbered parcel on the connection. It is below `inbox.reached` while
    /// the connection repeats parcels that the bypass has already delivered.
    stream_at: u64,
    /// Number of bytes received on any connection or by a bypass.
    heard_bytes: u64,
}

impl Receipts {
    /// Records that an acknowledgement up to `taken` is sent.
    #[inline]
    pub(in crate::tcp) fn tell(&mut self, taken: u64) {
        self.told = taken;
    }

    /// Returns whether an acknowledgement must be sent on its own, because no other parcel has carried one for long.
    #[inline]
    pub(super) fn is_due(&self, taken: u64) -> bool {
        taken - self.told >= RETAIN_BYTES as u64 / 4
    }

    #[inline]
    pub(in crate::tcp) fn heard_bytes(&self) -> u64 {
        self.heard_bytes
    }

    /// Adds to the number of bytes received.
    #[inline]
    pub(in crate::tcp) fn hear(&mut self, bytes: usize) {
        self.heard_bytes += bytes as u64;
    }

    /// Resets the positions for a new connection: its stream begins at `reached`, and its first parcel acknowledges
    /// `taken`.
    pub(super) fn begin_again(&mut self, taken: u64, reached: u64) {
        (self.told, self.stream_at) = (taken, reached);
    }

    /// Returns whether the next numbered parcel on the connection is one that the bypass has already delivered.
    #[inline]
    pub(super) fn is_behind(&self, reached: u64) -> bool {
        self.stream_at != reached
    }

    /// Records that the connection has delivered everything up to `reached`, including what the bypass had delivered.
    #[inline]
    pub(super) fn catch_up(&mut self, reached: u64) {
        self.stream_at = reached;
    }

    /// Skips a repeated parcel of `size` bytes, which the bypass has already delivered. Fails if the parcel goes
    /// beyond `reached`.
    pub(super) fn pass_repeated(&mut self, size: usize, reached: u64) -> Result<(), &'static str> {
        self.stream_at += size as u64;
        match self.stream_at > reached {
            true => Err("a connection repeats data that differs from what was received"),
            false => Ok(()),
        }
    }

    /// Moves the connection's stream to `position`, at which the peer continues. Fails if that is not between the
    /// present position and `reached`.
    pub(super) fn go_on_at(&mut self, position: u64, reached: u64) -> Result<(), &'static str> {
        if !(self.stream_at..=reached).contains(&position) {
            return Err("a connection resumes at an impossible position");
        }
        self.stream_at = position;
        Ok(())
    }
}
