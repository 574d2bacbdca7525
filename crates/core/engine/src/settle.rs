//! Finishing requests that are complete, or soon are: the fast path of all calls that wait for requests.
//!
//! Most of the time the oldest receives are waited for in the order in which they were posted, and their messages lie one behind the other in the ring of
//! their sender. So one look takes many of them ([`Engine::settle_run`]): what they have in common is looked at once.
//!
//! *Rules:* no lock, no allocation, no system call, no hash table. (ARCHITECTURE.md, "Hot paths", names the test.)

use crate::engine::Engine;
use crate::request::{Handle, Status};
use crate::transport::Transport;

/// The outcome of a look for the message of the oldest posted receive.
enum Look {
    /// It has come, and the request is finished.
    Settled(Status),
    /// It has not.
    InVain,
    /// The request is of another receive, or of another kind.
    Other,
}

impl<T: Transport> Engine<T> {
    /// If this is the oldest posted receive and its message has come: that is settled. A look at
    /// one ring, where `progress` looks at all.
    #[inline(always)]
    fn settle_oldest(&mut self, handle: Handle) -> Look {
        let Some((source, context, tag, id)) = self.posted.oldest() else {
            return Look::Other;
        };
        let Some(into) = self.requests.plain(handle, id) else {
            return Look::Other;
        };
        let accepted = self.transport.accept_matching(source, context, tag, &into);
        let Some(length) = accepted else {
            return Look::InVain;
        };
        self.posted.take_oldest(1);
        self.requests.settle_at(id);
        Look::Settled(Status {
            source: source as i32,
            tag,
            length,
            context,
        })
    }

    /// Finish a request that is complete without error; if it is not complete, look for its message
    /// a few times. `None`: it is not, or the handle is stale, and nothing has happened.
    #[inline(always)]
    pub fn settle(&mut self, handle: Handle) -> Option<Status> {
        /// Looks between two of `progress`, which sees to everything else.
        const LOOKS: u32 = 8;
        const PATIENCE: usize = 16;
        if handle == Handle::COMPLETE {
            return Some(Status::EMPTY);
        }
        for _ in 0..LOOKS {
            match self.settle_oldest(handle) {
                Look::Settled(status) => return Some(status),
                Look::InVain => {}
                Look::Other => return self.requests.settle(handle),
            }
            // One look takes the line from the core that is about to write it. When many messages
            // are awaited it is faster to let some come.
            for _ in 0..self.posted.in_run().min(PATIENCE) {
                std::hint::spin_loop();
            }
        }
        None
    }

    /// The status that the oldest posted receives have in common, if these select one source and one tag.
    #[inline(always)]
    pub fn oldest_receives(&self) -> Option<Status> {
        let (source, context, tag, _) = self.posted.oldest()?;
        Some(Status {
            source: source as i32,
            tag,
            length: 0,
            context,
        })
    }

    /// Finish the oldest posted receives, as far as the next `handles` are theirs and their messages lie in lines of a ring, one behind the other: those handles are
    /// taken, and the length of each message is told. How many.
    #[inline(always)]
    pub fn settle_run(
        &mut self,
        handles: &mut (impl Iterator<Item = Handle> + Clone),
        mut told: impl FnMut(usize),
    ) -> usize {
        let Some((source, context, tag, _)) = self.posted.oldest() else {
            return 0;
        };
        let (mut settled, mut left) = (0, handles.clone());
        let mut oldest = self.posted.oldest_alike();
        let mut releasing = self.requests.releasing();
        self.transport.accept_lines(source, context, tag, |length| {
            let mut behind = left.clone();
            let into = releasing.receive(oldest.next()?, behind.next()?, length)?;
            left = behind;
            settled += 1;
            told(length);
            Some(into)
        });
        releasing.end(settled);
        drop(oldest);
        self.posted.take_oldest(settled);
        *handles = left;
        settled
    }
}
