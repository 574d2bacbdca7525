//! The two ends of a stream.
//!
//! A stream is numbered by the side that opens it: even numbers by its sender, odd numbers by its receiver. The
//! receiver lets the sender run ahead of what has been drained by a window. The window is small until the receiver
//! has attached, since it must hold bytes that it cannot put into their destination at once.

use regatta_engine::Sent;
use regatta_memory::views::Views;
use regatta_wire::fields::whole;

/// Number of bytes that a sender may send before it has received credit.
pub(crate) const FIRST_WINDOW_BYTES: u64 = 64 << 10;
/// Maximum number of bytes that a sender may be ahead of a receiver that drains.
pub(crate) const WINDOW_BYTES: u64 = 4 << 20;
/// Returns the first limit of a stream's sender. A receiver that opens a stream is attached to it, and its credit
/// could overtake the frame that names the stream to the sender.
fn first_window(id: u32) -> u64 {
    match id.is_multiple_of(2) {
        true => FIRST_WINDOW_BYTES,
        false => WINDOW_BYTES,
    }
}

/// Maximum number of streams that a sender fills at a time; more would only share the same connection.
pub(crate) const MAX_OUT_STREAMS: usize = 16;

/// The sender's end of a stream.
#[derive(Debug)]
pub(crate) struct OutStream {
    pub(crate) id: u32,
    /// The message, known from the first `fill` on.
    pub(crate) message: Option<Views>,
    pub(crate) sent: u64,
    /// Position up to which the stream had been sent on connections that were lost.
    furthest: u64,
    /// Position that the receiver has confirmed.
    pub(crate) taken: u64,
    limit: u64,
    /// Whether the receiver has everything.
    pub(crate) complete: bool,
}

impl OutStream {
    pub(crate) fn new(id: u32, message: Option<Views>) -> OutStream {
        OutStream {
            id,
            message,
            sent: 0,
            furthest: 0,
            taken: 0,
            limit: first_window(id),
            complete: false,
        }
    }

    /// Returns whether this side, as the sender, has opened the stream.
    pub(crate) fn is_counted(&self) -> bool {
        self.id.is_multiple_of(2)
    }

    /// Returns the message, and how many bytes of it may be sent now. Returns `None` if there are none.
    pub(crate) fn sendable(&self) -> Option<(&Views, usize)> {
        let message = self.message.as_ref()?;
        let end = self.limit.min(message.len() as u64);
        let left = end.checked_sub(self.sent).filter(|&left| left > 0)?;
        Some((message, left as usize))
    }

    /// Returns whether this side has opened the stream and sent nothing of it yet.
    #[inline]
    pub(crate) fn is_fresh(&self) -> bool {
        self.sent == 0 && self.is_counted()
    }

    /// Handles credit from the receiver: its position, and the new limit. Fails if the receiver claims more than was
    /// sent.
    pub(crate) fn credit(&mut self, taken: u64, limit: u64) -> Result<(), &'static str> {
        if taken > self.sent.max(self.furthest) {
            return Err("a stream's receiver acknowledges more than was sent");
        }
        self.taken = self.taken.max(taken);
        // The receiver may have received more on the previous connection than it could confirm there.
        self.sent = self.sent.max(taken);
        self.limit = self.limit.max(limit);
        Ok(())
    }

    /// Returns how much of the message has been sent. Bytes that the receiver has not confirmed may be sent again.
    pub(crate) fn sent(&self) -> Sent {
        Sent {
            bytes: self.sent,
            for_good: self.taken,
        }
    }

    /// Resets the stream for a new connection to the last position that the receiver has confirmed.
    pub(crate) fn rewind(&mut self) {
        self.furthest = self.furthest.max(self.sent);
        self.sent = self.taken;
    }
}

/// Hands credit to the stream with this number, if it still exists.
pub(crate) fn credit(
    outs: &mut [OutStream],
    id: u32,
    body: &[u8],
    limit: u64,
) -> Result<(), &'static str> {
    let taken = whole(body).map_err(|_| "a stream's credit has the wrong length")?;
    match outs.iter_mut().find(|stream| stream.id == id) {
        Some(stream) => stream.credit(taken, limit),
        None => Ok(()),
    }
}

/// The receiver's end of a stream.
#[derive(Debug)]
pub(crate) struct InStream {
    pub(crate) id: u32,
    /// Whether a receive drains the stream.
    pub(crate) attached: bool,
    /// Whether the stream will not be drained: what is received is dropped.
    pub(crate) discarded: bool,
    /// Number of bytes received; `drained` counts those that have reached their destination.
    pub(crate) received: u64,
    pub(crate) drained: u64,
    /// Position up to which the sender may send.
    pub(crate) limit: u64,
    /// Length of the message, once its last chunk has been received; or the number of bytes received when its sender
    /// abandoned it.
    pub(crate) total: Option<u64>,
    /// Whether its sender has abandoned it.
    pub(crate) cancelled: bool,
    /// Bytes that were received and not drained, from `read` on.
    held: Vec<u8>,
    read: usize,
    /// Whether the new limit must be sent to the sender.
    pub(crate) announce: bool,
}

impl InStream {
    pub(crate) fn new(id: u32) -> InStream {
        InStream {
            id,
            attached: false,
            discarded: false,
            received: 0,
            drained: 0,
            limit: first_window(id),
            total: None,
            cancelled: false,
            held: Vec::new(),
            read: 0,
            announce: false,
        }
    }

    /// Raises the limit of the sender of a message of `total` bytes, well before the sender has to stop. A sender
    /// that may already send all of it gets no credit.
    pub(crate) fn extend(&mut self, total: u64) {
        let may_stop = self.limit < total.min(self.drained + WINDOW_BYTES / 2);
        if self.total.is_none() && may_stop {
            self.limit = self.drained + WINDOW_BYTES;
            self.announce = true;
        }
    }

    /// Holds bytes that cannot go to their destination now, or drops them if the stream is discarded.
    pub(crate) fn hold(&mut self, bytes: &[u8]) {
        self.received += bytes.len() as u64;
        if self.discarded {
            self.drained = self.received;
            self.extend(u64::MAX);
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    /// Counts bytes that were received straight into their destination.
    pub(crate) fn passed(&mut self, bytes: usize) {
        self.received += bytes as u64;
        self.drained += bytes as u64;
    }

    /// Returns whether no bytes are held.
    pub(crate) fn is_empty(&self) -> bool {
        self.read == self.held.len()
    }

    /// Copies what is held into the destination, as far as that has room. Returns how many bytes were held.
    pub(crate) fn release(&mut self, into: &Views) -> usize {
        let held = &self.held[self.read..];
        let at = (self.drained as usize).min(into.len());
        let keep = held.len().min(into.len() - at);
        // SAFETY: `keep` bytes are held, and there is room for them behind `at`.
        unsafe { into.scatter(at, held.as_ptr(), keep) };
        let n = held.len();
        self.drained += n as u64;
        self.read = 0;
        self.held.clear();
        if self.held.capacity() > FIRST_WINDOW_BYTES as usize {
            self.held = Vec::new();
        }
        n
    }

    /// Records that the sender has abandoned the stream: no more of the message will be received. What was received
    /// is dropped if the stream is not attached, unless it is the whole message.
    pub(crate) fn cancel(&mut self) {
        self.cancelled = true;
        if self.total.is_none() {
            self.total = Some(self.received);
            if !self.attached {
                self.release(&Views::none());
            }
        }
    }

    /// Discards the stream, which will not be drained.
    pub(crate) fn discard(&mut self) {
        self.discarded = true;
        self.release(&Views::none());
        self.extend(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_cut_the_receiver_may_have_more_than_has_been_sent_again() {
        let mut stream = OutStream::new(2, None);
        stream.sent = 50_000;
        stream.rewind();
        assert_eq!(stream.sent, 0);
        assert_eq!(stream.credit(30_000, 90_000), Ok(()));
        assert_eq!(stream.sent, 30_000);
        assert!(stream.credit(50_001, 90_000).is_err());
    }
}
