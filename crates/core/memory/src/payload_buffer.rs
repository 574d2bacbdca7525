//! The payload buffer: bytes beside a line ring, for payloads that do not fit into a line.
//!
//! Payloads lie in the order of their lines, each aligned to 64 bytes and in one piece; where a
//! payload would run over the end it starts at the front instead. Both sides compute positions
//! from the lengths alone, so no offset is ever read from shared memory, only the consumer's
//! published position. The order of visibility comes from the line: the payload is written
//! before the line is published and freed after it is read.
//!
//! *Rules of this path:* no lock, no allocation, no system call.

use crate::{Corrupt, LINE};

/// Positions of one side, in bytes since the beginning.
#[derive(Debug, Default)]
pub struct Cursor {
    at: u64,
    /// Producer: the consumer's position as last seen. Consumer: the position last published.
    other: u64,
}

/// Bytes a payload occupies.
#[inline(always)]
fn room(len: usize) -> u64 {
    len.next_multiple_of(LINE) as u64
}

impl Cursor {
    /// Where the next payload of `len` bytes lies in a buffer of `size` bytes (a power of two).
    #[inline(always)]
    fn place(&self, len: usize, size: u64) -> u64 {
        let inside = self.at & (size - 1);
        if inside + room(len) > size {
            self.at + (size - inside)
        } else {
            self.at
        }
    }

    /// Producer: the offset to write `len` bytes at, or `None` while there is no room.
    /// `freed` loads the consumer's position. `len` is at most a quarter of `size`.
    #[inline(always)]
    pub fn claim(&self, len: usize, size: u64) -> Option<u64> {
        let place = self.place(len, size);
        (place + room(len) - self.other <= size).then_some(place & (size - 1))
    }

    /// Producer: look where the consumer is.
    #[cold]
    pub fn look(&mut self, freed: u64, size: u64) -> Result<(), Corrupt> {
        if freed > self.at || self.at - freed > size || freed < self.other {
            return Err(Corrupt {
                what: "a payload buffer's read position lies outside it",
            });
        }
        self.other = freed;
        Ok(())
    }

    /// Both: pass over the payload that lies next.
    #[inline(always)]
    pub fn advance(&mut self, len: usize, size: u64) {
        self.at = self.place(len, size) + room(len);
    }

    /// Consumer: the offset of the next payload.
    #[inline(always)]
    pub fn next(&self, len: usize, size: u64) -> u64 {
        self.place(len, size) & (size - 1)
    }

    /// Consumer: the position to publish now, if enough has been freed since the last time.
    #[inline(always)]
    pub fn due(&mut self, size: u64) -> Option<u64> {
        if self.at - self.other >= size / 4 {
            self.other = self.at;
            return Some(self.at);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn payloads_never_overlap_and_both_sides_agree(
            steps in prop::collection::vec((any::<bool>(), 1usize..256), 0..400),
        ) {
            const SIZE: u64 = 1024;
            let (mut producer, mut consumer) = (Cursor::default(), Cursor::default());
            let (mut live, mut published) = (VecDeque::new(), 0);
            for (write, len) in steps {
                if write {
                    if producer.claim(len, SIZE).is_none() {
                        producer.look(published, SIZE).unwrap();
                    }
                    if let Some(at) = producer.claim(len, SIZE) {
                        prop_assert!(at + len as u64 <= SIZE);
                        for &(start, n) in &live {
                            let (start, n): (u64, usize) = (start, n);
                            prop_assert!(at + len as u64 <= start || start + n as u64 <= at);
                        }
                        producer.advance(len, SIZE);
                        live.push_back((at, len));
                    }
                } else if let Some((at, len)) = live.pop_front() {
                    prop_assert_eq!(consumer.next(len, SIZE), at);
                    consumer.advance(len, SIZE);
                    if let Some(freed) = consumer.due(SIZE) {
                        published = freed;
                    }
                }
            }
            // Nothing in the way: an empty buffer always has room for a quarter of itself.
            while let Some((_, len)) = live.pop_front() {
                consumer.advance(len, SIZE);
                if let Some(freed) = consumer.due(SIZE) {
                    published = freed;
                }
            }
            producer.look(published, SIZE).unwrap();
            prop_assert!(producer.claim(256, SIZE).is_some());
        }

        #[test]
        fn impossible_positions_are_refused(freed in any::<u64>()) {
            let mut producer = Cursor::default();
            producer.advance(100, 1024);
            prop_assert_eq!(producer.look(freed, 1024).is_ok(), freed <= 128);
        }
    }
}
