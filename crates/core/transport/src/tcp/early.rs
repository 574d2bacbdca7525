//! Frames that arrived by a bypass before the bytes of the connection that precede them (see [`super::bypass`]).
//!
//! They wait in the order of arrival, which is that of their positions, and are copied once more when their turn
//! comes. There is room for all that an honest peer sends ahead of its connection. A frame for which there is no room
//! counts as lost: the connection delivers it.

use regatta_wire::bypass::{WORD_BYTES, Word};
use regatta_wire::link::{HEAD, Head};

/// Maximum number of bytes of parcels that a sender may have ahead of its connection.
pub(super) const MAX_AHEAD_BYTES: usize = 4 << 10;
/// Size of the buffer in bytes: room for that many bytes with a word for each parcel, since no parcel is shorter than
/// its header.
const BUFFER_BYTES: usize = MAX_AHEAD_BYTES + MAX_AHEAD_BYTES.div_ceil(HEAD) * WORD_BYTES;

/// Frames that arrived too early.
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

    /// Keeps a frame, which is a word with a valid parcel behind it. Drops the frame if there is no room.
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

    /// Returns the first frame: its word, its header, and the parcel with the header. Returns `None` if there is no
    /// frame.
    pub(super) fn front(&self) -> Option<(Word, Head, &[u8])> {
        let (word, parcels) = Word::decode(&self.bytes[self.start..self.end]).ok()?;
        let head = Head::decode(parcels.first_chunk()?).ok()?;
        Some((word, head, parcels.get(..head.size())?))
    }

    /// Removes the first frame, whose parcel has `size` bytes.
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
        /// Behaves as a queue with room for this many bytes.
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
