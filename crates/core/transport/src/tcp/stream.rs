//! The two ends of a stream.
//!
//! A stream is numbered by the side that opens it: even numbers by its sender, odd ones by its receiver. The
//! receiver lets the sender run ahead of what has been drained by a window, small until it has attached: what
//! it cannot put into its place at once it must hold.

use regatta_engine::Sent;
use regatta_memory::views::Views;
use regatta_wire::fields::whole;

/// Bytes that a sender may send before it has heard from the receiver.
pub(crate) const FIRST_WINDOW_BYTES: u64 = 64 << 10;
/// Bytes that a sender may be ahead of a receiver that drains.
pub(crate) const WINDOW_BYTES: u64 = 4 << 20;
/// The first limit of a stream's sender. A receiver that opens one is attached to it, and a word of
/// credit could overtake the frame that tells the sender of the stream.
fn first_window(id: u32) -> u64 {
    match id.is_multiple_of(2) {
        true => FIRST_WINDOW_BYTES,
        false => WINDOW_BYTES,
    }
}

/// Maximum number of streams that a sender fills at a time; more would only share the same connection.
pub(crate) const MAX_OUT_STREAMS: usize = 16;

/// The sender's end.
#[derive(Debug)]
pub(crate) struct OutStream {
    pub(crate) id: u32,
    /// Known from the first `fill` on.
    pub(crate) message: Option<Views>,
    pub(crate) sent: u64,
    /// How far it had been sent on a connection that was lost.
    furthest: u64,
    /// The receiver has so much, at least.
    pub(crate) taken: u64,
    limit: u64,
    /// The receiver has everything.
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

    /// Opened by this side, its sender?
    pub(crate) fn is_counted(&self) -> bool {
        self.id.is_multiple_of(2)
    }

    /// The message, and how much of it may be sent now.
    pub(crate) fn sendable(&self) -> Option<(&Views, usize)> {
        let message = self.message.as_ref()?;
        let end = self.limit.min(message.len() as u64);
        let left = end.checked_sub(self.sent).filter(|&left| left > 0)?;
        Some((message, left as usize))
    }

    /// Opened just now, and nothing sent of it?
    #[inline]
    pub(crate) fn is_fresh(&self) -> bool {
        self.sent == 0 && self.is_counted()
    }

    /// The receiver has said how far it is, and how far to go.
    pub(crate) fn credit(&mut self, taken: u64, limit: u64) -> Result<(), &'static str> {
        if taken > self.sent.max(self.furthest) {
            return Err("a stream's receiver has more than was sent");
        }
        self.taken = self.taken.max(taken);
        // It may have more from the connection before than it could say on that.
        self.sent = self.sent.max(taken);
        self.limit = self.limit.max(limit);
        Ok(())
    }

    /// Returns how much of the message has gone. Bytes that the receiver has not confirmed may be sent again.
    pub(crate) fn sent(&self) -> Sent {
        Sent {
            bytes: self.sent,
            for_good: self.taken,
        }
    }

    /// On a new connection: again from where the receiver is known to be.
    pub(crate) fn rewind(&mut self) {
        self.furthest = self.furthest.max(self.sent);
        self.sent = self.taken;
    }
}

/// The stream of this number, if it is still there, hears how far its receiver is and how far it may go itself.
pub(crate) fn credit(
    outs: &mut [OutStream],
    id: u32,
    body: &[u8],
    limit: u64,
) -> Result<(), &'static str> {
    let taken = whole(body).map_err(|_| "a stream's credit has another length")?;
    match outs.iter_mut().find(|stream| stream.id == id) {
        Some(stream) => stream.credit(taken, limit),
        None => Ok(()),
    }
}

/// The receiver's end.
#[derive(Debug)]
pub(crate) struct InStream {
    pub(crate) id: u32,
    /// Somebody drains it.
    pub(crate) attached: bool,
    /// Nobody will: what comes is dropped.
    pub(crate) discarded: bool,
    /// Bytes that have come, and bytes that have gone to their place.
    pub(crate) received: u64,
    pub(crate) drained: u64,
    /// The sender may go so far.
    pub(crate) limit: u64,
    /// Length of the message, when its last chunk has come; or what there is of it, when its sender has given it up.
    pub(crate) total: Option<u64>,
    /// Its sender has given it up.
    pub(crate) cancelled: bool,
    /// Bytes that have come and not gone: from `read` on.
    held: Vec<u8>,
    read: usize,
    /// The sender should hear how far it may go.
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

    /// Let the sender of a message of `total` bytes go on, well before it has to stop. One that may send all of it needs no word.
    pub(crate) fn extend(&mut self, total: u64) {
        let may_stop = self.limit < total.min(self.drained + WINDOW_BYTES / 2);
        if self.total.is_none() && may_stop {
            self.limit = self.drained + WINDOW_BYTES;
            self.announce = true;
        }
    }

    /// Bytes have come that cannot go to their place now.
    pub(crate) fn hold(&mut self, bytes: &[u8]) {
        self.received += bytes.len() as u64;
        if self.discarded {
            self.drained = self.received;
            self.extend(u64::MAX);
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    /// Bytes have gone straight to their place.
    pub(crate) fn passed(&mut self, bytes: usize) {
        self.received += bytes as u64;
        self.drained += bytes as u64;
    }

    /// Is nothing held?
    pub(crate) fn is_empty(&self) -> bool {
        self.read == self.held.len()
    }

    /// Put what is held into its place, as far as `into` goes; how much it was.
    pub(crate) fn release(&mut self, into: &Views) -> usize {
        let held = &self.held[self.read..];
        let at = (self.drained as usize).min(into.len());
        let keep = held.len().min(into.len() - at);
        // SAFETY: `keep` bytes are held, and fit behind `at`.
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

    /// Its sender has given it up: no more of the message will come. A stream that nobody drains yet need not be held,
    /// unless it is the whole message.
    pub(crate) fn cancel(&mut self) {
        self.cancelled = true;
        if self.total.is_none() {
            self.total = Some(self.received);
            if !self.attached {
                self.release(&Views::none());
            }
        }
    }

    /// Nobody will drain it.
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
