//! Finishing requests that are complete, or soon are: the fast path of all calls that wait for requests.
//!
//! Most of the time the oldest receive is waited for, and its message lies in the ring of its sender, or soon does: so a look goes there alone ([`PointToPoint::settle`]).
//!
//! *Rules:* no lock, no allocation, no system call, no hash table. (docs/hot-paths.md names the test.)

use crate::point_to_point::PointToPoint;
use crate::request::{Handle, Status};
use crate::transport::{Polled, Transport};

/// The outcome of a look for the message of the oldest posted receive.
enum Look {
    /// It has come, and the request is finished.
    Settled(Status),
    /// It has not.
    InVain,
    /// The request is of another receive, or of another kind.
    Other,
}

impl<T: Transport> PointToPoint<T> {
    /// Settles the oldest posted receive, if this is it and its message has come. A look at
    /// one ring, where `progress` looks at all.
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

    /// Finishes a request that is complete without error; if it is not complete, looks for its message
    /// a few times. `None`: it is not, or the handle is stale, and nothing has happened.
    #[inline(always)]
    pub fn settle(&mut self, handle: Handle) -> Option<Status> {
        /// Number of polls between two calls of `progress`, which sees to everything else.
        const POLLS_PER_PROGRESS: u32 = 8;
        /// Maximum number of spins after a poll, one for each message that is awaited.
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
            // One look takes the line from the core that is about to write it. When many messages
            // are awaited it is faster to let some come.
            for _ in 0..self.inbox.posted.in_run().min(MAX_SPINS_PER_POLL) {
                std::hint::spin_loop();
            }
        }
        None
    }

    /// Notes that a message has gone to its receive: those that wait have been passed over.
    #[inline(always)]
    fn note_passed(&mut self) {
        if !self.inbox.waiting().is_empty() {
            self.inbox.pass_over();
        }
    }
}
