//! Whether a link takes part in frames for several tasks (see [`crate::tcp::together`]), by the fate of the earlier
//! ones.

use std::time::{Duration, Instant};

/// Maximum number of losses in a row; after it a link takes no part for a while.
const MAX_LOSSES: u32 = 3;
/// Time for which the link then takes no part.
const FIRST_REST: Duration = Duration::from_secs(1);
/// Maximum number of times that this time doubles.
const MAX_DOUBLINGS: u32 = 10;

/// The fate of the frames for several tasks in which a link had a part.
#[derive(Debug, Default)]
pub(in crate::tcp) struct GroupUse {
    /// Number of the first byte of the last parcel that was sent in such a frame, if it is not known to have arrived.
    last: Option<u64>,
    /// Number of losses in a row.
    losses: u32,
    rests_until: Option<Instant>,
}

impl GroupUse {
    /// Returns whether the link may take part.
    pub(in crate::tcp) fn is_free(&mut self) -> bool {
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        self.rests_until = None;
        true
    }

    /// Records that the parcel that begins with this byte is sent in such a frame.
    pub(in crate::tcp) fn went(&mut self, position: u64) {
        self.last = Some(position);
    }

    /// Records that the peer has received all bytes before `position`.
    #[inline]
    pub(in crate::tcp) fn reached(&mut self, position: u64) {
        if self.last.is_some_and(|last| last < position) {
            (self.last, self.losses) = (None, 0);
        }
    }

    /// Forgets the last parcel. The connection is used, and what it repeats says nothing about the frame.
    pub(in crate::tcp) fn forget(&mut self) {
        self.last = None;
    }

    /// Records that what was sent by the bypass from byte `position` on has not arrived in time.
    #[cold]
    pub(in crate::tcp) fn lost(&mut self, position: u64) {
        if self.last.take().is_none_or(|last| last < position) {
            return;
        }
        self.losses = self.losses.saturating_add(1);
        if let Some(more) = self.losses.checked_sub(MAX_LOSSES) {
            let rest = FIRST_REST * (1 << more.min(MAX_DOUBLINGS));
            self.rests_until = Some(Instant::now() + rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_rests_after_losses_in_a_row_alone() {
        let mut group = GroupUse::default();
        for _ in 0..2 * MAX_LOSSES {
            group.last = Some(10);
            group.lost(10);
            group.last = Some(20);
            group.reached(21);
        }
        assert!(group.is_free());
        for _ in 0..MAX_LOSSES {
            assert!(group.is_free());
            group.last = Some(30);
            group.lost(31);
            assert!(
                group.last.is_none(),
                "the frame is not the one that was lost"
            );
            group.last = Some(30);
            group.lost(30);
        }
        assert!(!group.is_free());
        let rest = group.rests_until.map(|until| until - Instant::now());
        assert!(rest.is_some_and(|rest| rest <= FIRST_REST));
        for _ in 0..100 {
            group.last = Some(40);
            group.lost(40);
        }
        let rest = group.rests_until.map(|until| until - Instant::now());
        assert!(rest.is_some_and(|rest| rest <= FIRST_REST * (1 << MAX_DOUBLINGS)));
        group.last = Some(50);
        group.reached(50);
        assert_eq!(group.last, Some(50), "it has not come");
    }
}
