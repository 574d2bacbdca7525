//! Frames that have come by a bypass before the bytes of the connection that they come after (see [`super::bypass`]).
//!
//! They wait in the order in which they came, which is that of their places, and are copied once more when their time has come. There is
//! room for all that an honest peer sends ahead of its connection. A frame that finds none counts as lost: the connection brings it.

use regatta_wire::bypass::{WORD_BYTES, Word};
use regatta_wire::link::{HEAD, Head};

/// Maximum number of bytes of parcels that a sender has ahead of its connection.
pub(super) const MAX_AHEAD_BYTES: usize = 4 << 10;
/// Size of the buffer, in bytes, for that many with a word each: no parcel is shorter than its head.
const BUFFER_BYTES: usize = MAX_AHEAD_BYTES + MAX_AHEAD_BYTES.div_ceil(HEAD) * WORD_BYTES;

/// Frames that have come too early.
pub(super) struct Early {
    bytes: Box<[u8; BUFFER_BYTES]>,
    start: usize,
    end: usize,
}

impl Early {
    pub(super) fn new() -> Early {
        Early {
            bytes: Box::new([0; BUFFER_BYTES]),
            start: 0,
            end: 0,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Keeps a frame, a word and a sound parcel behind it, if there is room.
    pub(super) fn keep(&mut self, content: &[u8]) {
        if self.end + content.len() > BUFFER_BYTES {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if let Some(place) = self.bytes.get_mut(self.end..self.end + content.len()) {
            place.copy_from_slice(content);
            self.end += content.len();
        }
    }

    /// The first one: its word, and the parcel with its head.
    pub(super) fn front(&self) -> Option<(Word, Head, &[u8])> {
        let (word, parcels) = Word::decode(&self.bytes[self.start..self.end]).ok()?;
        let head = Head::decode(parcels.first_chunk()?).ok()?;
        Some((word, head, parcels.get(..head.size())?))
    }

    /// Be done with the first one, whose parcel has this many bytes.
    pub(super) fn pass(&mut self, size: usize) {
        self.start += WORD_BYTES + size;
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regatta_wire::{Frame, Kind};
    use std::collections::VecDeque;

    fn content(number: u64, length: usize) -> Vec<u8> {
        let frame = Frame {
            kind: Kind::Eager,
            context: 0,
            tag: 0,
        };
        let word = Word {
            position: number,
            ..Word::default()
        };
        let head = Head::frame(frame, length as u32, number);
        [
            &word.encode()[..],
            &head.encode(),
            &vec![number as u8; length],
        ]
        .concat()
    }

    proptest! {
        /// As a queue does that has room for this many bytes.
        #[test]
        fn frames_come_out_as_they_went_in(steps in prop::collection::vec((0usize..1400, 0usize..3), 0..200)) {
            let (mut early, mut model) = (Early::new(), VecDeque::new());
            for (number, (length, passes)) in steps.into_iter().enumerate() {
                let content = content(number as u64, length);
                early.keep(&content);
                let kept: usize = model.iter().map(Vec::len).sum();
                if kept + content.len() <= BUFFER_BYTES {
                    model.push_back(content);
                }
                for _ in 0..passes {
                    let front = early.front().map(|(word, head, parcel)| ([&word.encode()[..], parcel].concat(), head.size()));
                    let size = front.as_ref().map(|front| front.1);
                    prop_assert_eq!(front.map(|front| front.0), model.pop_front());
                    size.inspect(|size| early.pass(*size));
                }
                prop_assert_eq!(early.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    fn all_that_a_sender_may_have_ahead_finds_room() {
        let mut early = Early::new();
        (0..MAX_AHEAD_BYTES / HEAD).for_each(|number| early.keep(&content(number as u64, 0)));
        for number in 0..MAX_AHEAD_BYTES / HEAD {
            let (word, head, _) = early.front().unwrap();
            assert_eq!(word.position, number as u64);
            early.pass(head.size());
        }
        assert!(early.is_empty());
    }
}
