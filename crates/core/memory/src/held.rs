//! Bytes of a message that this task holds until they are wanted. Short ones are stored inline, so that holding a small
//! message allocates nothing.

use std::ops::{Deref, DerefMut};

/// Maximum number of bytes that are stored inline: as many as fit into a line of a ring.
pub const INLINE_BYTES: usize = crate::ring::INLINE;

/// Owned bytes.
#[derive(Clone)]
pub struct Held(Storage);

#[derive(Clone)]
enum Storage {
    Inline(u8, [u8; INLINE_BYTES]),
    Heap(Vec<u8>),
}

impl Held {
    /// Returns `length` zeros, to be overwritten.
    #[inline(always)]
    pub fn zeros(length: usize) -> Held {
        Held(if length <= INLINE_BYTES {
            Storage::Inline(length as u8, [0; INLINE_BYTES])
        } else {
            Storage::Heap(vec![0; length])
        })
    }
}

impl Deref for Held {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Storage::Inline(length, bytes) => &bytes[..*length as usize],
            Storage::Heap(bytes) => bytes,
        }
    }
}

impl DerefMut for Held {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Storage::Inline(length, bytes) => &mut bytes[..*length as usize],
            Storage::Heap(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Held {
    fn from(bytes: Vec<u8>) -> Held {
        Held(Storage::Heap(bytes))
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Held {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_the_same_to_read_and_write() {
        for length in [
            0,
            1,
            INLINE_BYTES - 1,
            INLINE_BYTES,
            INLINE_BYTES + 1,
            10_000,
        ] {
            let mut held = Held::zeros(length);
            assert_eq!(held, vec![0; length]);
            held.fill(7);
            assert_eq!(held.clone(), vec![7; length]);
            assert_eq!(
                matches!(held.0, Storage::Inline(..)),
                length <= INLINE_BYTES
            );
        }
        assert_eq!(Held::from(vec![1, 2]), [1, 2]);
    }
}
