//! The two tasks at the ends of a piece of shared memory (a ring, a pipe), and when the piece can be reused.
//!
//! One word holds both ends of the current use, whether each has finished, and a count of the uses:
//!
//! ```text
//! source (20 bits) | destination (20) | source done | destination done | in use | count of uses (21)
//! ```
//!
//! An end is *over* when it has finished or its task is gone. A piece with both ends over is not touched by any task,
//! and a task that needs one claims it ([`Ends::claim`]): one compare-and-swap from the word that was read, so only one
//! claim succeeds. An end that finishes, or ends the whole use ([`Ends::end`]), names the use that it means. If that
//! use has ended meanwhile, the word has another count and is not changed.
//!
//! All pieces of a kind form a [`List`] ([`Made`]), newest first. A task that needs a piece searches a part of the
//! list. So memory is reused whichever of the two ends was over first, and no third party keeps records. One case is
//! left: if a task is killed after it has claimed a piece and before the task at the other end can know of it, the
//! piece is lost until the other task is gone as well.

use crate::list::{self, Link, List};
use crate::segment::Segment;
use crate::sync::{AtomicU64, Ordering};

const BITS: u32 = 20;
const NUMBER: u64 = (1 << BITS) - 1;
const SOURCE_DONE: u64 = 1 << (2 * BITS);
const DESTINATION_DONE: u64 = SOURCE_DONE << 1;
const BOTH_DONE: u64 = SOURCE_DONE | DESTINATION_DONE;
const IN_USE: u64 = SOURCE_DONE << 2;
const ONE_USE: u64 = SOURCE_DONE << 3;

/// The state of the two ends of one piece, as the module describes. Zeros are a valid initial state: not in use.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Ends {
    word: AtomicU64,
    /// Link to the piece that was made before this one.
    before: Link,
}

/// For the test that compares it with the version.
pub(crate) const LAYOUT: crate::layout::Layout =
    crate::layout!("ends", Ends { word, before } BITS SOURCE_DONE DESTINATION_DONE IN_USE ONE_USE);

/// One use of a piece, by a pair of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use(u64);

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end that writes.
    Source,
    /// The end that reads.
    Destination,
}

impl Use {
    /// Returns the task that writes.
    pub fn source(self) -> u32 {
        (self.0 & NUMBER) as u32
    }

    /// Returns the task that reads.
    pub fn destination(self) -> u32 {
        (self.0 >> BITS & NUMBER) as u32
    }
}

/// Returns the word of the use that follows the one in `word`.
fn next(word: u64, source: u32, destination: u32) -> u64 {
    let uses = (word & !(ONE_USE - 1)).wrapping_add(ONE_USE);
    let ends = (source as u64 & NUMBER) | (destination as u64 & NUMBER) << BITS;
    uses | IN_USE | ends
}

impl Ends {
    /// Begins a use by these two tasks; for a task that has a piece which is not in use.
    pub fn begin(&self, source: u32, destination: u32) -> Use {
        let word = next(self.word.load(Ordering::Relaxed), source, destination);
        self.word.store(word, Ordering::Release);
        Use(word)
    }

    /// Returns the current use, unless both ends have finished.
    pub fn present(&self) -> Option<Use> {
        let word = self.word.load(Ordering::Acquire);
        let present = word & IN_USE != 0 && word & BOTH_DONE != BOTH_DONE;
        present.then_some(Use(word & !BOTH_DONE))
    }

    /// Finishes this end's use of the piece. Does nothing if that use is over already.
    pub fn finish(&self, of: Use, end: End) {
        let done = match end {
            End::Source => SOURCE_DONE,
            End::Destination => DESTINATION_DONE,
        };
        let note = |word: u64| {
            let same = word & !BOTH_DONE == of.0;
            same.then_some(word | done)
        };
        // Fails if that use is over, which needs no action.
        let _ = self
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, note);
    }

    /// Ends the use for both ends, so that any task can claim the piece. Returns `false` if a task has claimed it
    /// already.
    pub fn end(&self, of: Use) -> bool {
        let ended = |word: u64| {
            let same = word & !BOTH_DONE == of.0;
            same.then_some(word | BOTH_DONE)
        };
        self.word
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, ended)
            .is_ok()
    }

    /// Claims a piece whose ends are both over, for these two tasks. `gone` returns whether a task no longer touches
    /// any memory. Returns `None` if the piece cannot be claimed.
    pub fn claim(&self, source: u32, destination: u32, gone: impl Fn(u32) -> bool) -> Option<Use> {
        let word = self.word.load(Ordering::Acquire);
        let present = Use(word);
        let over = word & IN_USE != 0
            && (word & SOURCE_DONE != 0 || gone(present.source()))
            && (word & DESTINATION_DONE != 0 || gone(present.destination()));
        let new = next(word, source, destination);
        let claimed = over
            && self
                .word
                .compare_exchange(word, new, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        claimed.then_some(Use(new))
    }
}

/// The list of all pieces of a kind.
#[derive(Debug)]
pub struct Made<'a> {
    /// The segment that contains the pieces.
    pub segment: &'a Segment,
    /// The list itself.
    pub list: &'a List,
    /// Offset of the `Ends` in a piece, in bytes.
    pub ends_at: u64,
}

impl<'a> Made<'a> {
    /// Maximum number of pieces that are searched for a free one before a new one is made.
    pub(crate) const MAX_PIECES_SEARCHED: u64 = 64;

    fn ends(&self, place: u64) -> Option<&'a Ends> {
        let at = place.checked_add(self.ends_at).filter(|_| place != 0)?;
        // SAFETY: the memory consists of atomics only.
        unsafe { self.segment.words(at) }.ok()
    }

    fn find(&self, place: u64) -> Option<(&'a Ends, &'a Link)> {
        let ends = self.ends(place)?;
        Some((ends, &ends.before))
    }

    /// Adds a new piece to the list.
    pub fn add(&self, place: u64) {
        if let Some(ends) = self.ends(place) {
            self.list.push(place, &ends.before);
        }
    }

    /// Adds a piece that a dead task had made and may not have listed. Both its ends become that task's, so that any
    /// task can claim it.
    pub fn add_for_dead(&self, place: u64, task: u32) {
        if let Some(ends) = self.ends(place)
            && self.all().all(|other| other != place)
        {
            ends.begin(task, task);
            self.add(place);
        }
    }

    /// Returns the offsets of all pieces.
    pub(crate) fn all(&self) -> impl Iterator<Item = u64> {
        let most = list::most_pieces(self.segment);
        let walk = self.list.walk(most, move |place| self.find(place));
        walk.map(|(place, _)| place)
    }

    /// Searches the next part of the list, from `cursor` on, for a piece that `take` accepts, and moves `cursor` on.
    pub fn search<R>(
        &self,
        cursor: &mut u64,
        mut take: impl FnMut(u64, &Ends) -> Option<R>,
    ) -> Option<R> {
        let mut walk = self
            .list
            .walk_on(*cursor, Self::MAX_PIECES_SEARCHED, |place| self.find(place));
        let taken = walk.find_map(|(place, ends)| take(place, ends));
        *cursor = walk.next_place();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_claimed_once_when_both_ends_are_over() {
        let ends = Ends::default();
        assert_eq!(ends.claim(7, 8, |_| true), None, "not in use");
        let one = ends.begin(1, 2);
        assert_eq!((one.source(), one.destination()), (1, 2));
        assert_eq!(ends.present(), Some(one));
        assert_eq!(ends.claim(7, 8, |task| task == 1), None);
        ends.finish(one, End::Destination);
        assert_eq!(ends.present(), Some(one));
        assert_eq!(ends.claim(7, 8, |_| false), None);
        let two = ends.claim(7, 8, |task| task == 1).expect("both are over");
        assert_eq!((two.source(), two.destination()), (7, 8));
        assert_eq!(ends.claim(3, 4, |task| task < 3), None);
    }

    #[test]
    fn an_end_that_comes_late_changes_nothing() {
        let ends = Ends::default();
        let one = ends.begin(1, 2);
        assert!(ends.end(one));
        assert_eq!(ends.present(), None);
        let two = ends.claim(1, 2, |_| false).expect("the use is over");
        ends.finish(one, End::Source);
        assert_eq!(
            ends.claim(7, 8, |task| task == 2),
            None,
            "the source is not done"
        );
        ends.finish(two, End::Source);
        assert!(ends.claim(7, 8, |task| task == 2).is_some());
        assert!(!ends.end(one) && !ends.end(two), "others use it");
    }

    #[test]
    fn a_list_with_nonsense_in_it_is_as_good_as_empty() {
        let segment = Segment::create("test", 1 << 16).unwrap();
        let list = List::default();
        let made = Made {
            segment: &segment,
            list: &list,
            ends_at: 8,
        };
        let place = segment.allocate(64, 64).unwrap();
        made.add(place);
        let mut cursor = 0;
        assert_eq!(
            made.search(&mut cursor, |place, _| Some(place)),
            Some(place)
        );
        for nonsense in [place, 1, u64::MAX, u64::MAX - 8, 1 << 40] {
            made.ends(place).unwrap().before.scribble(nonsense);
            for _ in 0..3 {
                assert_eq!(made.search(&mut cursor, |_, _| None::<()>), None);
            }
            list.scribble(nonsense);
            assert_eq!(made.search(&mut cursor, |_, _| None::<()>), None);
            list.scribble(place);
        }
    }
}
