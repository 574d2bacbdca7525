//! A list of pieces of shared memory: any task pushes pieces to the front, and single pieces are never removed.
//!
//! The list is one word, the offset of the newest piece; each piece has a [`Link`], the offset of the piece before it.
//! A piece is pushed by one compare-and-swap, after its link has been written. As long as it is on a list its link does
//! not change, so a list can be walked while others push. A list can also be taken as a whole ([`List::take_all`]);
//! then its pieces belong to the taker.
//!
//! *What a walk finds.* A walk that begins at the newest piece visits the pieces that had been pushed when it read the
//! word, each as its pusher left it: all changes of the word are read-modify-writes, so acquiring its value
//! synchronizes with every push before that. *No ABA problem.* A push that has read the word and is delayed fails if
//! the word has changed by then. If it has the same value again, because the list was taken as a whole and the same
//! piece was pushed again, the link is correct nevertheless: it is the current front.
//!
//! *Others can write invalid values.* An offset is passed to the walker's `find`, which checks it and ends the walk by
//! returning `None`. A walk visits at most the number of pieces that its caller sets, so links that form a circle cost
//! time and nothing else.

use crate::segment::Segment;
use crate::sync::{AtomicU64, Ordering};

/// Minimum size of a piece on a list of a segment, in bytes.
const PIECE: u64 = 4096;

/// A list: the offset of its newest piece, or 0 when it is empty. Zeros are a valid initial state.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct List(AtomicU64);

/// The link of a piece: the offset of the piece pushed before it, or 0 if there is none.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct Link(AtomicU64);

/// For the test that compares it with the version.
pub(crate) const LAYOUT: crate::layout::Layout = crate::layout!("list", List { 0 });

/// A walk through a list, newest piece first, with a maximum number of pieces. `find` returns the piece at an offset,
/// and its link.
#[derive(Debug)]
pub struct Walk<F> {
    at: u64,
    left: u64,
    find: F,
}

impl List {
    /// Pushes a piece to the front. The piece must be on no list; `link` is its own.
    pub fn push(&self, place: u64, link: &Link) {
        let mut newest = self.0.load(Ordering::Relaxed);
        loop {
            link.0.store(newest, Ordering::Relaxed);
            // Releases the piece and its link. Partners: `newest` and `take_all`.
            let pushed =
                self.0
                    .compare_exchange_weak(newest, place, Ordering::Release, Ordering::Relaxed);
            match pushed {
                Ok(_) => return,
                Err(now) => newest = now,
            }
        }
    }

    /// Returns the offset of the newest piece, or 0 if the list is empty.
    fn newest(&self) -> u64 {
        // Partner: `push`.
        self.0.load(Ordering::Acquire)
    }

    /// Returns whether the list was empty at this moment. Orders nothing: a caller that continues must read again.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Walks through at most `most` pieces, from the newest on.
    pub fn walk<F>(&self, most: u64, find: F) -> Walk<F> {
        self.walk_on(0, most, find)
    }

    /// Continues a walk from where it ended ([`Walk::next_place`]), or from the newest piece if `at` is 0.
    pub fn walk_on<F>(&self, at: u64, most: u64, find: F) -> Walk<F> {
        let at = match at {
            0 => self.newest(),
            at => at,
        };
        Walk {
            at,
            left: most,
            find,
        }
    }

    /// Empties the list. Its pieces, of which the walk visits at most `most`, belong to the caller.
    pub fn take_all<F>(&self, most: u64, find: F) -> Walk<F> {
        Walk {
            // Partner: `push`.
            at: self.0.swap(0, Ordering::Acquire),
            left: most,
            find,
        }
    }

    /// Writes an arbitrary word, as another process might, for tests.
    #[doc(hidden)]
    pub fn scribble(&self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }
}

impl Link {
    /// Writes an arbitrary word, as another process might, for tests.
    #[doc(hidden)]
    pub fn scribble(&self, word: u64) {
        self.0.store(word, Ordering::Relaxed);
    }
}

/// Returns the maximum number of pieces that a list in this segment can have.
pub fn most_pieces(segment: &Segment) -> u64 {
    segment.used() / PIECE
}

impl<F> Walk<F> {
    /// Returns the offset at which the walk would continue, or 0 if it has reached the end or an invalid link.
    pub fn next_place(&self) -> u64 {
        self.at
    }
}

impl<'a, P, F: Fn(u64) -> Option<(P, &'a Link)>> Iterator for Walk<F> {
    type Item = (u64, P);

    fn next(&mut self) -> Option<(u64, P)> {
        if self.at == 0 || self.left == 0 {
            return None;
        }
        let place = self.at;
        let Some((piece, link)) = (self.find)(place) else {
            // Another process has written an invalid offset.
            self.at = 0;
            return None;
        };
        self.left -= 1;
        // Ordered by `newest` or `take_all`, since links do not change.
        self.at = link.0.load(Ordering::Relaxed);
        Some((place, piece))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PIECES: u64 = 8;

    /// A list whose pieces have the offsets 1, 2, ...
    #[derive(Default)]
    struct Pieces {
        list: List,
        links: [Link; PIECES as usize],
    }

    impl Pieces {
        fn find<'a>(&'a self) -> impl Fn(u64) -> Option<(u64, &'a Link)> {
            |place| {
                let at = usize::try_from(place).ok()?.checked_sub(1)?;
                Some((place, self.links.get(at)?))
            }
        }

        fn push(&self, place: u64) {
            self.list.push(place, &self.links[place as usize - 1]);
        }

        fn all(&self) -> Vec<u64> {
            self.list
                .walk(PIECES, self.find())
                .map(|(place, _)| place)
                .collect()
        }
    }

    proptest! {
        /// Compares with a vector: pushes, walks in parts, and taking the whole list.
        #[test]
        fn it_holds_what_was_pushed_newest_first(steps in prop::collection::vec(0_u8..10, 0..60), part in 1_u64..4) {
            let (pieces, mut model) = (Pieces::default(), Vec::new());
            for step in steps {
                let free = (1..=PIECES).find(|place| !model.contains(place));
                match (step, free) {
                    (0, _) => {
                        let taken: Vec<u64> = pieces.list.take_all(PIECES, pieces.find()).map(|(place, _)| place).collect();
                        model.reverse();
                        prop_assert_eq!(taken, std::mem::take(&mut model));
                    }
                    (_, Some(place)) => {
                        pieces.push(place);
                        model.push(place);
                    }
                    (_, None) => {}
                }
                let expected: Vec<u64> = model.iter().rev().copied().collect();
                prop_assert_eq!(pieces.all(), expected.clone());
                prop_assert_eq!(pieces.list.is_empty(), expected.is_empty());
                let (mut at, mut in_parts) = (0, Vec::new());
                while in_parts.is_empty() || at != 0 {
                    let mut walk = pieces.list.walk_on(at, part, pieces.find());
                    let before = in_parts.len();
                    in_parts.extend(walk.by_ref().map(|(place, _)| place));
                    at = walk.next_place();
                    if in_parts.len() == before {
                        break;
                    }
                }
                prop_assert_eq!(in_parts, expected);
            }
        }

        /// A walk visits only pieces and ends, whatever the words contain.
        #[test]
        fn nonsense_ends_a_walk(words in prop::collection::vec(prop_oneof![0..=PIECES + 1, any::<u64>()], PIECES as usize + 1), most in 0_u64..40) {
            let pieces = Pieces::default();
            pieces.list.scribble(words[0]);
            for (link, word) in pieces.links.iter().zip(&words[1..]) {
                link.scribble(*word);
            }
            let found: Vec<(u64, u64)> = pieces.list.walk(most, pieces.find()).collect();
            prop_assert!(found.len() as u64 <= most);
            for (place, piece) in found {
                prop_assert!(place == piece && (1..=PIECES).contains(&place));
            }
            pieces.push(1);
            prop_assert_eq!(pieces.list.walk(1, pieces.find()).next(), Some((1, 1)));
        }
    }
}
