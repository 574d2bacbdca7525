//! Completes requests that are complete or will be soon: the fast path of all calls that wait for requests.
//!
//! Usually the caller waits for the oldest receive, and its message is in the ring of its sender, or will be soon. So only that ring is polled
//! ([`PointToPoint::settle`]).
//!
//! *Rules:* no lock, no allocation, no system call, no hash table. (docs/hot-paths.md names the test.)

use crate::point_to_point::PointToPoint;
use crate::request::{Handle, Status};
use crate::transport::{Polled, Transport};

/// The outcome of polling for the message of the oldest posted receive.
enum Look {
    /// The message was received and the request is released.
    Settled(Status),
    /// The message has not arrived.
    InVain,
    /// The request belongs to another receive or another kind of operation.
    Other,
}

impl<T: Transport> PointToPoint<T> {
    /// Completes the oldest posted receive, if the handle is its handle and its message has arrived. Polls a single ring, where `progress` polls
    /// all.
    #[inline(always)]
    fn settle_oldest(&mut self, handle: Handle) -> Look {
        let Some((source, context, tag, id)) = self.inbox.posted.oldest() else {
            return Look::Other;
        };
        let Some(into) = self.requests.plain(handle, id) else {
            return Look::Other;
        };
        let polled = self.transport.poll_matching(source, context, tag, &into);
        let Polled::Received(length) = polled else {
            return Look::InVain;
        };
        self.inbox.posted.take_oldest();
        self.requests.settle_at(id);
        self.note_passed();
        Look::Settled(Status {
            source: source as i32,
            tag,
            length,
            context,
        })
    }

    /// Releases a request that is complete without error. If it is the oldest receive, polls for its message a few times. Returns `None`, without
    /// effect, if the request is not complete or the handle is stale.
    #[inline(always)]
    pub fn settle(&mut self, handle: Handle) -> Option<Status> {
        /// Number of polls between two calls of `progress`, which handles everything else.
        const POLLS_PER_PROGRESS: u32 = 8;
        /// Maximum number of spins after a poll: one for each awaited message.
        const MAX_SPINS_PER_POLL: usize = 16;
        if handle == Handle::COMPLETE {
            return Some(Status::EMPTY);
        }
        for _ in 0..POLLS_PER_PROGRESS {
            match self.settle_oldest(handle) {
                Look::Settled(status) => return Some(status),
                Look::InVain => {}
                Look::Other => return self.requests.settle(handle),
            }
            // A poll takes the cache line from the core that is about to write it. When many messages are awaited, it is faster to let several
            // arrive first.
            for _ in 0..self.inbox.posted.in_run().min(MAX_SPINS_PER_POLL) {
                std::hint::spin_loop();
            }
        }
        None
    }

    /// Marks waiting messages as passed over, since a message was received without waiting.
    #[inline(always)]
    fn note_passed(&mut self) {
        if !self.inbox.waiting().is_empty() {
            self.inbox.pass_over();
        }
    }
}
