//! The payload buffer: memory beside a line ring, for payloads that do not fit into a line.
//!
//! Payloads are stored in the order of their lines, each aligned to 64 bytes and contiguous; if a payload does not fit
//! before the end, it starts at the front instead. Both sides compute positions from the lengths alone, so no offset is
//! ever read from shared memory, only the consumer's published position. Visibility is ordered by the line: the payload
//! is written before the line is published, and freed after it is read.
//!
//! *Rewinding.* If a producer learns the consumer's position in another way ([`Cursor::hear`]: from payloads in the
//! other direction), it starts at the front whenever that part is free ([`Cursor::rewind`]), and says so with the
//! payload. Two tasks that answer each other then touch the memory of one payload in each direction, which stays in the
//! caches closest to the cores.
//!
//! *Rules of this path:* no lock, no allocation, no system call.

use crate::{Corrupt, LINE};

/// The positions of one side, in bytes since the beginning.
#[derive(Debug, Default)]
pub struct Cursor {
    at: u64,
    /// Producer: the consumer's position as last read. Consumer: the position last published.
    other: u64,
    /// Producer: whether it has learned since the last payload that the consumer has advanced.
    heard: bool,
}

/// Returns the space that a payload occupies, in bytes.
#[inline(always)]
fn room(len: usize) -> u64 {
    len.next_multiple_of(LINE) as u64
}

/// Returns the first position at or after `at` that is the front of the buffer. `size` is a power of two.
#[inline(always)]
fn front_after(at: u64, size: u64) -> u64 {
    (at + (size - 1)) & !(size - 1)
}

impl Cursor {
    /// Returns the position of the next payload of `len` bytes in a buffer of `size` bytes (a power of two).
    #[inline(always)]
    fn place(&self, len: usize, size: u64) -> u64 {
        let inside = self.at & (size - 1);
        if inside + room(len) > size {
            self.at + (size - inside)
        } else {
            self.at
        }
    }

    /// Producer: returns the offset at which to write `len` bytes, or `None` if there is no room. `len` must be at most
    /// a quarter of `size`.
    #[inline(always)]
    pub fn claim(&self, len: usize, size: u64) -> Option<u64> {
        let place = self.place(len, size);
        (place + room(len) - self.other <= size).then_some(place & (size - 1))
    }

    /// Producer: records the consumer's published position, which may be older than one recorded before.
    #[cold]
    pub fn look(&mut self, freed: u64) -> Result<(), Corrupt> {
        self.note(freed).map(|_| ())
    }

    /// Producer: records a position that the consumer has sent.
    #[inline(always)]
    pub fn hear(&mut self, freed: u64) -> Result<(), Corrupt> {
        if self.note(freed)? {
            self.heard = true;
        }
        Ok(())
    }

    /// Records the consumer's position. Returns whether it is newer than the recorded one.
    #[inline(always)]
    fn note(&mut self, freed: u64) -> Result<bool, Corrupt> {
        if freed > self.at {
            return Err(Corrupt {
                what: "a payload buffer's read position is past the last byte written",
            });
        }
        let news = freed > self.other;
        if news {
            self.other = freed;
        }
        Ok(news)
    }

    /// Producer: returns whether it has received a newer position since the last payload.
    #[inline(always)]
    pub fn has_heard(&self) -> bool {
        self.heard
    }

    /// Producer: moves to the front for the next payload, of `len` bytes, if that part is known to be free from a
    /// position received since the last payload. Returns whether it moved. Older positions are not used: a producer
    /// that receives none would skip space for nothing.
    #[inline(always)]
    pub fn rewind(&mut self, len: usize, size: u64) -> bool {
        if !self.heard {
            return false;
        }
        self.heard = false;
        let front = front_after(self.at, size);
        let free = front + room(len) - self.other <= size;
        let rewind = free && front != self.at;
        if rewind {
            self.at = front;
        }
        rewind
    }

    /// Consumer: moves to the front, where the next payload starts.
    #[inline(always)]
    pub fn follow(&mut self, size: u64) {
        self.at = front_after(self.at, size);
    }

    /// Consumer: returns its position, to be sent to the producer.
    #[inline(always)]
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Both sides: moves past the next payload.
    #[inline(always)]
    pub fn advance(&mut self, len: usize, size: u64) {
        self.at = self.place(len, size) + room(len);
    }

    /// Consumer: returns the offset of the next payload.
    #[inline(always)]
    pub fn next(&self, len: usize, size: u64) -> u64 {
        self.place(len, size) & (size - 1)
    }

    /// Consumer: returns the position to publish now, if at least a quarter of the buffer has been freed since the last
    /// time.
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

    const SIZE: u64 = 1024;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Write(usize),
        Read,
        /// The producer receives the consumer's current position, or the one of the step before.
        Hear(bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (1usize..=256).prop_map(Step::Write),
            3 => Just(Step::Read),
            1 => any::<bool>().prop_map(Step::Hear),
        ]
    }

    proptest! {
        #[test]
        fn payloads_never_overlap_and_both_sides_agree(
            steps in prop::collection::vec(step(), 0..400),
        ) {
            let (mut producer, mut consumer) = (Cursor::default(), Cursor::default());
            let (mut live, mut published, mut said) = (VecDeque::new(), 0, 0);
            for step in steps {
                match step {
                    Step::Write(len) => {
                        let rewound = producer.rewind(len, SIZE);
                        if producer.claim(len, SIZE).is_none() {
                            prop_assert!(!rewound, "the front is free");
                            producer.look(published).unwrap();
                        }
                        if let Some(at) = producer.claim(len, SIZE) {
                            prop_assert!(at + len as u64 <= SIZE);
                            prop_assert!(!rewound || at == 0);
                            for &(start, n, _) in &live {
                                let (start, n): (u64, usize) = (start, n);
                                prop_assert!(at + len as u64 <= start || start + n as u64 <= at);
                            }
                            producer.advance(len, SIZE);
                            live.push_back((at, len, rewound));
                        }
                    }
                    Step::Read => {
                        let Some((at, len, rewound)) = live.pop_front() else {
                            continue;
                        };
                        said = consumer.position();
                        if rewound {
                            consumer.follow(SIZE);
                        }
                        prop_assert_eq!(consumer.next(len, SIZE), at);
                        consumer.advance(len, SIZE);
                        if let Some(freed) = consumer.due(SIZE) {
                            published = freed;
                        }
                    }
                    Step::Hear(now) => {
                        let position = if now { consumer.position() } else { said };
                        producer.hear(position).unwrap();
                    }
                }
            }
            // An empty buffer always has room for a quarter of itself.
            while let Some((_, len, rewound)) = live.pop_front() {
                if rewound {
                    consumer.follow(SIZE);
                }
                consumer.advance(len, SIZE);
                if let Some(freed) = consumer.due(SIZE) {
                    published = freed;
                }
            }
            producer.look(published).unwrap();
            prop_assert!(producer.claim(256, SIZE).is_some());
        }

        #[test]
        fn impossible_positions_are_refused(freed in any::<u64>(), heard in any::<bool>()) {
            let mut producer = Cursor::default();
            producer.advance(100, SIZE);
            let said = match heard {
                true => producer.hear(freed),
                false => producer.look(freed),
            };
            prop_assert_eq!(said.is_ok(), freed <= 128);
        }
    }

    #[test]
    fn two_that_answer_each_other_stay_at_the_front() {
        let (mut producer, mut consumer) = (Cursor::default(), Cursor::default());
        for turn in 0..100 {
            let rewound = producer.rewind(200, SIZE);
            assert_eq!(rewound, turn > 0);
            assert_eq!(producer.claim(200, SIZE), Some(0));
            producer.advance(200, SIZE);
            if rewound {
                consumer.follow(SIZE);
            }
            assert_eq!(consumer.next(200, SIZE), 0);
            consumer.advance(200, SIZE);
            producer.hear(consumer.position()).unwrap();
        }
    }

    #[test]
    fn without_news_a_producer_goes_round() {
        let mut producer = Cursor::default();
        for turn in 0..16 {
            assert!(!producer.rewind(64, SIZE));
            assert_eq!(producer.claim(64, SIZE), Some(turn * 64));
            producer.advance(64, SIZE);
        }
        assert_eq!(producer.claim(64, SIZE), None);
    }
}
