//! The payload buffer: bytes beside a line ring, for payloads that do not fit into a line.
//!
//! Payloads lie in the order of their lines, each aligned to 64 bytes and in one piece; where a
//! payload would run over the end it starts at the front instead. Both sides compute positions
//! from the lengths alone, so no offset is ever read from shared memory, only the consumer's
//! published position. The order of visibility comes from the line: the payload is written
//! before the line is published and freed after it is read.
//!
//! *The front again.* A producer that hears from elsewhere how far the consumer is ([`Cursor::hear`]: from payloads that come the other way) starts at the
//! front whenever that part is free ([`Cursor::rewind`]), and says so with the payload. Two tasks that answer each other
//! then touch the memory of one payload each way, which stays in the caches next to the cores.
//!
//! *Rules of this path:* no lock, no allocation, no system call.

use crate::{Corrupt, LINE};

/// Positions of one side, in bytes since the beginning.
#[derive(Debug, Default)]
pub struct Cursor {
    at: u64,
    /// Producer: the consumer's position as last seen. Consumer: the position last published.
    other: u64,
    /// Producer: the consumer has got on since the last payload, and the producer has heard of it.
    heard: bool,
}

/// Bytes a payload occupies.
#[inline(always)]
fn room(len: usize) -> u64 {
    len.next_multiple_of(LINE) as u64
}

/// Where the buffer begins anew, at or after this position. `size` is a power of two.
#[inline(always)]
fn front_after(at: u64, size: u64) -> u64 {
    (at + (size - 1)) & !(size - 1)
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

    /// Producer: look where the consumer is. Its published position may be an older one than was heard.
    #[cold]
    pub fn look(&mut self, freed: u64) -> Result<(), Corrupt> {
        self.note(freed).map(|_| ())
    }

    /// Producer: the consumer has said how far it was.
    #[inline(always)]
    pub fn hear(&mut self, freed: u64) -> Result<(), Corrupt> {
        if self.note(freed)? {
            self.heard = true;
        }
        Ok(())
    }

    /// Is that news?
    #[inline(always)]
    fn note(&mut self, freed: u64) -> Result<bool, Corrupt> {
        if freed > self.at {
            return Err(Corrupt {
                what: "a payload buffer's read position lies behind all that was written",
            });
        }
        let news = freed > self.other;
        if news {
            self.other = freed;
        }
        Ok(news)
    }

    /// Producer: has the consumer said how far it is since the last payload?
    #[inline(always)]
    pub fn has_heard(&self) -> bool {
        self.heard
    }

    /// Producer: start at the front with the next payload, of `len` bytes, if that part has been read by news of the consumer that came since the last payload.
    /// Old news says less and less: a producer that gets none would pass over room for nothing.
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

    /// Consumer: the next payload starts at the front.
    #[inline(always)]
    pub fn follow(&mut self, size: u64) {
        self.at = front_after(self.at, size);
    }

    /// Consumer: how far it is, for the producer to hear.
    #[inline(always)]
    pub fn position(&self) -> u64 {
        self.at
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

    const SIZE: u64 = 1024;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Write(usize),
        Read,
        /// The producer hears how far the consumer is, or was at the step before.
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
            // Nothing in the way: an empty buffer always has room for a quarter of itself.
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
