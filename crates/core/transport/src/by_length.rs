//! The choice of footprint, separately for short and long messages: what is best for short ones may be worst for long
//! ones.

use crate::footprint::{Footprint, Learner, Policy};

/// A learner for messages up to `limit` bytes, and one for longer messages.
#[derive(Debug)]
pub(crate) struct ByLength {
    limit: usize,
    pub(crate) short: Learner,
    pub(crate) long: Learner,
}

impl ByLength {
    /// Returns learners that choose between a narrow footprint, a wide one of this many bytes (one number for short
    /// and one for long messages), and non-temporal stores.
    pub(crate) fn new(limit: usize, [short, long]: [u64; 2], policy: Policy) -> ByLength {
        ByLength {
            limit,
            short: Learner::new(short, policy),
            long: Learner::new(long, policy),
        }
    }

    /// Returns the learner for messages of this many bytes.
    #[inline(always)]
    pub(crate) fn of(&mut self, bytes: usize) -> &mut Learner {
        match bytes <= self.limit {
            true => &mut self.short,
            false => &mut self.long,
        }
    }

    /// Returns whether a message of this many bytes is above the limit.
    pub(crate) fn is_long(&self, bytes: usize) -> bool {
        bytes > self.limit
    }

    /// Returns the footprint for a message of this many bytes.
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
