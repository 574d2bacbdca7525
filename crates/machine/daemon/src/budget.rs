//! A limit on the memory in which all channels together keep the unread bytes of connections that have ended.
//!
//! While a connection exists, unread bytes stay in the kernels' buffers on the way. When it has ended, everything that
//! was received is read at once. If many channels end together, as when a host is lost, this could be more than there
//! is memory.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of bytes that all channels of a daemon may keep: what the kernel's buffers hold for a few channels.
pub(crate) static OVER: Budget = Budget::new(64 << 20);

/// A number of bytes that shares are taken from.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicUsize,
}

impl Budget {
    pub(crate) const fn new(bytes: usize) -> Budget {
        Budget {
            left: AtomicUsize::new(bytes),
        }
    }

    /// Returns how many bytes are not taken.
    #[cfg(test)]
    pub(crate) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }
}

/// A part of a budget, which is returned when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    of: &'static Budget,
    bytes: usize,
}

impl Share {
    pub(crate) const fn none(of: &'static Budget) -> Share {
        Share { of, bytes: 0 }
    }

    /// Takes `bytes` more. Returns `false`, and takes none, if there are not that many left.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        let order = Ordering::Relaxed;
        let taken = self.of.left.fetch_update(order, order, less).is_ok();
        if taken {
            self.bytes += bytes;
        }
        taken
    }

    /// Returns up to `bytes` to the budget.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.of.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_one_budget_and_given_back() {
        static SMALL: Budget = Budget::new(10);
        let (mut one, mut other) = (Share::none(&SMALL), Share::none(&SMALL));
        assert!(one.grow(6) && !other.grow(5) && other.grow(4));
        one.shrink(2);
        assert!(other.grow(2) && !other.grow(1));
        // No more than was taken is returned.
        one.shrink(9);
        assert_eq!(SMALL.left(), 4);
        drop((one, other));
        assert_eq!(SMALL.left(), 10);
    }
}
