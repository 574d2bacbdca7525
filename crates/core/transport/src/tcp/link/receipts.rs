//! How far the bytes of both directions have come, beyond what outbox and inbox count themselves.

use crate::tcp::outbox::RETAIN_BYTES;

/// Positions of a link.
#[derive(Debug, Default)]
pub(crate) struct Receipts {
    /// Position of the peer's bytes it has last been told of.
    told: u64,
    /// Position of the first byte of the next numbered parcel on the connection. It is below `inbox.reached` while the connection repeats what came by a bypass.
    stream_at: u64,
    /// Bytes that have come on any connection, or by a bypass.
    heard_bytes: u64,
}

impl Receipts {
    /// The peer is told that everything up to `taken` has been taken.
    #[inline]
    pub(in crate::tcp) fn tell(&mut self, taken: u64) {
        self.told = taken;
    }

    /// Whether the peer should be told so, though nothing else is said to it.
    #[inline]
    pub(super) fn is_due(&self, taken: u64) -> bool {
        taken - self.told >= RETAIN_BYTES as u64 / 4
    }

    #[inline]
    pub(in crate::tcp) fn heard_bytes(&self) -> u64 {
        self.heard_bytes
    }

    /// This many bytes have come.
    #[inline]
    pub(in crate::tcp) fn hear(&mut self, bytes: usize) {
        self.heard_bytes += bytes as u64;
    }

    /// The next connection begins behind what has been reached, and says what has been taken.
    pub(super) fn begin_again(&mut self, taken: u64, reached: u64) {
        (self.told, self.stream_at) = (taken, reached);
    }

    /// Returns whether the next numbered parcel on the connection is one that has already come by the bypass.
    #[inline]
    pub(super) fn is_behind(&self, reached: u64) -> bool {
        self.stream_at != reached
    }

    /// Notes that the connection has delivered everything up to `reached`, so that nothing is left that only the bypass has brought.
    #[inline]
    pub(super) fn catch_up(&mut self, reached: u64) {
        self.stream_at = reached;
    }

    /// A parcel of this many bytes has come again.
    pub(super) fn pass_repeated(&mut self, size: usize, reached: u64) -> Result<(), &'static str> {
        self.stream_at += size as u64;
        match self.stream_at > reached {
            true => Err("a connection repeats something else than came"),
            false => Ok(()),
        }
    }

    /// The connection goes on at this byte.
    pub(super) fn go_on_at(&mut self, position: u64, reached: u64) -> Result<(), &'static str> {
        if !(self.stream_at..=reached).contains(&position) {
            return Err("a connection goes on where it cannot");
        }
        self.stream_at = position;
        Ok(())
    }
}
