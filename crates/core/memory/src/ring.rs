//! The line ring: single producer, single consumer, one 64-byte line per message.
//!
//! ```text
//! line:  word 0  header: lap (16 bits) | kind (8) | flags (8) | length (32)     stored last
//!        word 1  context (32) | tag (32)
//!        words 2..8  up to 48 bytes in line
//! ```
//!
//! *Protocol.* Line `i` of lap `n` is full when its header carries lap `n`, and empty while it
//! carries lap `n - 1` (memory starts as zero: lap 0). The producer writes words 1..8, then
//! releases the header; the consumer acquires the header, then reads the rest. So a message
//! needs one line transfer between the cores and nothing is ever cleared. The consumer publishes how far it has read in
//! `read`, a quarter of the ring at a time; the producer reads that only when the last value that it knows says that
//! the ring is full. A header with any other lap was not written by a correct peer: [`Corrupt`]. A producer that has
//! found damage and sends no more stores a header whose lap is half of all laps away ([`Producer::close`]).
//!
//! *Rules of this path:* no lock, no allocation, no system call, no shared counter. (docs/hot-paths.md names the test.)
//!
//! The algorithm is generic over [`Lines`], so that the model checker (loom) runs this very code
//! over its own memory; see `tests/models_loom.rs`.

use crate::Corrupt;

/// Bytes of a message that fit into the line itself.
pub const INLINE: usize = 48;
/// Number of words in a line.
pub const WORDS: usize = 8;

/// The memory of a ring. `line` is always less than [`Lines::count`].
pub trait Lines {
    /// Returns the number of lines: a power of two, at least 4.
    fn count(&self) -> u32;
    /// Loads the header of a line (acquire).
    fn header(&self, line: u32) -> u64;
    /// Stores the header of a line (release).
    fn publish(&self, line: u32, header: u64);
    /// Loads the consumer's published position (acquire).
    fn read(&self) -> u32;
    /// Stores the consumer's position (release).
    fn publish_read(&self, position: u32);
}

/// A line's header without its lap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of the frame; not interpreted here.
    pub kind: u8,
    /// Flags; not interpreted here.
    pub flags: u8,
    /// A length; not interpreted here.
    pub length: u32,
}

impl Header {
    #[inline(always)]
    fn pack(self, lap: u16) -> u64 {
        lap as u64
            | (self.kind as u64) << 16
            | (self.flags as u64) << 24
            | (self.length as u64) << 32
    }

    #[inline(always)]
    fn unpack(word: u64) -> Header {
        Header {
            kind: (word >> 16) as u8,
            flags: (word >> 24) as u8,
            length: (word >> 32) as u32,
        }
    }
}

/// The producer's end.
#[derive(Debug)]
pub struct Producer {
    /// Lines written since the beginning, modulo 2^32.
    written: u32,
    /// The consumer's position as last read.
    read: u32,
}

/// The consumer's end.
#[derive(Debug)]
pub struct Consumer {
    taken: u32,
    published: u32,
}

/// Added to the lap of the line that ends a ring.
const CLOSED: u16 = 1 << 15;

#[inline(always)]
fn lap(position: u32, shift: u32) -> u16 {
    ((position >> shift) as u16).wrapping_add(1)
}

impl Default for Producer {
    fn default() -> Self {
        Self::new()
    }
}

impl Producer {
    /// Returns the producer of a ring that has never been used.
    pub const fn new() -> Producer {
        Producer {
            written: 0,
            read: 0,
        }
    }

    /// Returns the line to write next, or `None` while the ring is full.
    #[inline(always)]
    pub fn claim(&mut self, lines: &impl Lines) -> Result<Option<u32>, Corrupt> {
        let count = lines.count();
        if self.written.wrapping_sub(self.read) == count && !self.look(lines)? {
            return Ok(None);
        }
        Ok(Some(self.written & (count - 1)))
    }

    /// Returns the line to write next without reading the consumer's position: `None` if the last known position says
    /// that the ring is full.
    #[inline(always)]
    pub fn claim_known(&self, lines: &impl Lines) -> Option<u32> {
        let count = lines.count();
        let known = self.written.wrapping_sub(self.read) != count;
        known.then_some(self.written & (count - 1))
    }

    #[cold]
    fn look(&mut self, lines: &impl Lines) -> Result<bool, Corrupt> {
        let read = lines.read();
        if self.written.wrapping_sub(read) > lines.count()
            || read.wrapping_sub(self.read) > lines.count()
        {
            return Err(Corrupt {
                what: "a ring's read position is outside the ring",
            });
        }
        self.read = read;
        Ok(self.written.wrapping_sub(read) < lines.count())
    }

    /// Makes the claimed line visible. Its words 1..8 must have been written.
    #[inline(always)]
    pub fn publish(&mut self, lines: &impl Lines, header: Header) {
        let count = lines.count();
        let line = self.written & (count - 1);
        lines.publish(line, header.pack(lap(self.written, count.trailing_zeros())));
        self.written = self.written.wrapping_add(1);
    }

    /// Tells the consumer that no more messages follow. This needs no free line: the unread messages of a full ring are
    /// lost.
    pub fn close(&mut self, lines: &impl Lines) {
        let count = lines.count();
        let last = lap(self.written, count.trailing_zeros()).wrapping_add(CLOSED);
        lines.publish(self.written & (count - 1), last as u64);
    }
}

impl Default for Consumer {
    fn default() -> Self {
        Self::new()
    }
}

impl Consumer {
    /// Returns the consumer of a ring that has never been used.
    pub const fn new() -> Consumer {
        Consumer {
            taken: 0,
            published: 0,
        }
    }

    /// Returns the next full line without taking it, or `None` while the ring is empty.
    #[inline(always)]
    pub fn peek(&self, lines: &impl Lines) -> Result<Option<(u32, Header)>, Corrupt> {
        let count = lines.count();
        let line = self.taken & (count - 1);
        let word = lines.header(line);
        let expected = lap(self.taken, count.trailing_zeros());
        if word as u16 == expected {
            return Ok(Some((line, Header::unpack(word))));
        }
        if word as u16 == expected.wrapping_sub(1) {
            return Ok(None);
        }
        Err(impossible(word as u16, expected))
    }

    /// Takes the line that `peek` returned; its words must not be read afterwards. Returns whether it has published its
    /// position, so that a producer that sleeps because the ring was full should be woken.
    #[inline(always)]
    pub fn take(&mut self, lines: &impl Lines) -> bool {
        self.taken = self.taken.wrapping_add(1);
        if self.taken.wrapping_sub(self.published) >= lines.count() / 4 {
            self.published = self.taken;
            lines.publish_read(self.taken);
            return true;
        }
        false
    }
}

/// Returns the error for a lap that is neither this one nor the previous one.
#[cold]
fn impossible(lap: u16, expected: u16) -> Corrupt {
    // In a full ring the closing line has the position of the next line to be read.
    let closed = lap.wrapping_sub(CLOSED).wrapping_sub(expected) < 2;
    Corrupt {
        what: if closed {
            "that task found damage in it and closed it"
        } else {
            "a ring line carries an impossible lap number"
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;

    /// Plain memory, to compare the algorithm with a queue.
    struct Plain {
        headers: RefCell<Vec<u64>>,
        read: Cell<u32>,
    }

    impl Plain {
        fn new(count: usize) -> Plain {
            Plain {
                headers: RefCell::new(vec![0; count]),
                read: Cell::new(0),
            }
        }
    }

    impl Lines for Plain {
        fn count(&self) -> u32 {
            self.headers.borrow().len() as u32
        }
        fn header(&self, line: u32) -> u64 {
            self.headers.borrow()[line as usize]
        }
        fn publish(&self, line: u32, header: u64) {
            self.headers.borrow_mut()[line as usize] = header;
        }
        fn read(&self) -> u32 {
            self.read.get()
        }
        fn publish_read(&self, position: u32) {
            self.read.set(position);
        }
    }

    fn header(n: u32) -> Header {
        Header {
            kind: n as u8,
            flags: (n >> 8) as u8,
            length: n.wrapping_mul(2654435761),
        }
    }

    proptest! {
        #[test]
        fn behaves_like_a_bounded_queue(
            count in prop::sample::select(vec![4usize, 8, 16]),
            start in any::<u32>(),
            steps in prop::collection::vec(any::<bool>(), 0..300),
        ) {
            // Start anywhere, so that positions and laps often wrap around.
            let start = start & !(count as u32 - 1);
            let lines = Plain::new(count);
            let before = lap(start, count.trailing_zeros()).wrapping_sub(1);
            lines.headers.borrow_mut().fill(before as u64);
            lines.read.set(start);
            let mut producer = Producer { written: start, read: start };
            let mut consumer = Consumer { taken: start, published: start };
            let (mut queue, mut sent) = (VecDeque::new(), 0);
            for write in steps {
                if write {
                    match producer.claim(&lines).unwrap() {
                        Some(_) => {
                            producer.publish(&lines, header(sent));
                            queue.push_back(header(sent));
                            sent += 1;
                            prop_assert!(queue.len() <= count);
                        }
                        // The ring may report full up to a quarter early, but never late.
                        None => prop_assert!(queue.len() > count - count / 4),
                    }
                } else {
                    let got = consumer.peek(&lines).unwrap().map(|(_, header)| header);
                    prop_assert_eq!(got, queue.pop_front());
                    if got.is_some() {
                        consumer.take(&lines);
                    }
                }
            }
        }

        #[test]
        fn a_closed_ring_says_so_after_what_came_before(sent in 0u32..9) {
            let lines = Plain::new(8);
            let (mut producer, mut consumer) = (Producer::new(), Consumer::new());
            for n in 0..sent {
                producer.claim(&lines).unwrap();
                producer.publish(&lines, header(n));
            }
            producer.close(&lines);
            let mut came = 0;
            while let Ok(Some(_)) = consumer.peek(&lines) {
                consumer.take(&lines);
                came += 1;
            }
            prop_assert_eq!(came, sent % 8);
            prop_assert!(consumer.peek(&lines).unwrap_err().what.contains("closed"));
        }

        #[test]
        fn scribbles_are_noticed_or_harmless(line in 0u32..8, word in any::<u64>(), read in any::<u32>()) {
            let lines = Plain::new(8);
            let (mut producer, mut consumer) = (Producer::new(), Consumer::new());
            lines.publish(line, word);
            lines.publish_read(read);
            for n in 0..32 {
                match producer.claim(&lines) {
                    Ok(Some(line)) => {
                        prop_assert!(line < 8);
                        producer.publish(&lines, header(n));
                    }
                    Ok(None) => {}
                    Err(_) => break,
                }
                match consumer.peek(&lines) {
                    Ok(Some((line, _))) => {
                        prop_assert!(line < 8);
                        consumer.take(&lines);
                    }
                    Ok(None) => {}
                    Err(_) => break,
                }
            }
        }
    }
}
