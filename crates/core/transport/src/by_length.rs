//! The choices of footprint for short messages and for long ones: the best of the first may be the worst of the second.

use crate::footprint::{Footprint, Learner, Policy};

/// A learner for messages of up to this many bytes, and one for longer ones.
#[derive(Debug)]
pub(crate) struct ByLength {
    limit: usize,
    pub(crate) short: Learner,
    pub(crate) long: Learner,
}

impl ByLength {
    /// They choose between a narrow footprint, one of this many bytes, for short messages and for long ones, and stores past the caches.
    pub(crate) fn new(limit: usize, [short, long]: [u64; 2], policy: Policy) -> ByLength {
        ByLength {
            limit,
            short: Learner::new(short, policy),
            long: Learner::new(long, policy),
        }
    }

    /// The one for messages of this many bytes.
    #[inline(always)]
    pub(crate) fn of(&mut self, bytes: usize) -> &mut Learner {
        match bytes <= self.limit {
            true => &mut self.short,
            false => &mut self.long,
        }
    }

    /// Is a message of this many bytes one of the longer ones?
    pub(crate) fn is_long(&self, bytes: usize) -> bool {
        bytes > self.limit
    }

    /// The footprint for a message of this many bytes.
    #[inline(always)]
    pub(crate) fn choice(&self, bytes: usize) -> Footprint {
        match bytes <= self.limit {
            true => self.short.choice(),
            false => self.long.choice(),
        }
    }

    /// See [`Learner::stay_narrow`].
    pub(crate) fn stay_narrow(&mut self) {
        self.short.stay_narrow();
        self.long.stay_narrow();
    }
}
