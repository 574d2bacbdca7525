//! Shared barriers: barriers of named groups, lent by the launcher to the members, and withdrawn again.
//!
//! ```text
//! word      a line: round (32 bits) | shut (1 bit) | number of members that have arrived (31 bits)
//! then for each member a line: round (32 bits) | the number of a request (32 bits)
//! ```
//!
//! The launcher knows the members of a named group, and which of them wait for others. When all members have met
//! through the launcher, it lends them a shared barrier: from then on they meet in it, without the launcher. In round
//! `r` a member announces itself in its line and then counts itself in the word; the member that completes the count
//! writes the next round into the word, and all may go on. When something happens to the group (a member joins, leaves,
//! ends, or asks the launcher to meet in another way) the launcher *shuts* the barrier first. A word that is shut does
//! not change any more.
//!
//! *Why two members never disagree.* Round `r` was met if and only if the word ever had a later round. A change of the
//! word is one compare-and-exchange from the value that was read, so no member is counted, and no round is met, once it
//! is shut; and its round then stays readable. A member that waits in round `r` and reads a later one has met, even if
//! the barrier is shut by then. A member that finds the barrier shut in round `r` has not met, and all other members of
//! that round find the same.
//!
//! *Why no member is forgotten or counted twice.* Members that were counted in the round in which the barrier was shut
//! have announced themselves before. So the launcher reads in their lines the number of the request that each of them
//! would send, and treats these requests as received before the event that made it shut the barrier, as if there had
//! never been a barrier. Each of these members, when it finds the barrier shut, sends the request with that number
//! nevertheless; the launcher recognizes the number and ignores it. A member that has announced itself and found the
//! barrier shut before it was counted sends its request, too, so it does not matter whether the launcher has seen its
//! line.
//!
//! *When its memory is reused.* After a shared barrier was shut, a member sends the launcher a message about the group
//! before it uses another barrier, and does not read this one again. When all members have done so, or ended, the
//! launcher may reuse the memory.
//!
//! An invalid shared barrier is treated like one that is shut.

use crate::segment::Segment;
use crate::sync::{AtomicU64, Ordering};
use crate::{Corrupt, LINE};

const SHUT: u64 = 1 << 31;
const COUNT: u64 = SHUT - 1;
const ROUND: u32 = 32;

/// The barrier's word, or a member's line.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Word(AtomicU64);

/// For the test that compares it with the version.
pub(crate) const LAYOUT: crate::layout::Layout =
    crate::layout!("shared barrier", Word { 0 } SHUT COUNT ROUND);

#[cfg(not(loom))]
const _: () = assert!(size_of::<Word>() == LINE);

/// The state of a member's round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// All members have arrived.
    Met,
    /// Some members have not arrived.
    Waiting,
    /// The barrier is shut, and not all members had arrived.
    Shut,
}

/// A shared barrier of a group.
#[derive(Clone, Copy)]
pub struct SharedBarrier<'a> {
    word: &'a AtomicU64,
    lines: &'a [Word],
}

impl<'a> SharedBarrier<'a> {
    /// Returns the barrier with this word, and a line for each member.
    pub fn of(word: &'a Word, lines: &'a [Word]) -> Self {
        let word = &word.0;
        SharedBarrier { word, lines }
    }

    /// Returns how many bytes of a segment it needs.
    pub fn footprint(members: u32) -> usize {
        (members as usize + 1) * LINE
    }

    /// Returns the barrier at `offset`, for this many members.
    pub fn at(segment: &'a Segment, offset: u64, members: u32) -> Result<Self, Corrupt> {
        if !offset.is_multiple_of(LINE as u64) {
            return Err(Corrupt {
                what: "a shared barrier's offset is misaligned",
            });
        }
        let start = segment.at(offset, Self::footprint(members))?;
        // SAFETY: the words are inside the segment, which outlives the reference, aligned, and atomics.
        let words = unsafe {
            std::slice::from_raw_parts(start.cast::<Word>().as_ptr(), members as usize + 1)
        };
        Ok(SharedBarrier::of(&words[0], &words[1..]))
    }

    fn members(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Launcher: resets the barrier for members to which it has not been lent yet.
    pub fn open(&self) {
        for line in self.lines {
            line.0.store(0, Ordering::Relaxed);
        }
        self.word.store(0, Ordering::Release);
    }

    /// Launcher: shuts the barrier. Returns the members that had arrived in the last round: their member numbers, and
    /// the numbers of their requests.
    pub fn shut(&self) -> Vec<(u32, u32)> {
        let word = self.word.fetch_or(SHUT, Ordering::AcqRel);
        if word & COUNT >= self.members() {
            return Vec::new();
        }
        let announced = |(place, line): (u32, &Word)| {
            let line = line.0.load(Ordering::Acquire);
            let (round, question) = (line >> ROUND, line as u32);
            (round == word >> ROUND && question != 0).then_some((place, question))
        };
        (0..).zip(self.lines).filter_map(announced).collect()
    }

    /// Lets member `place` arrive in a round. If the barrier is shut, the member will send a request with number
    /// `question`.
    #[inline(always)]
    pub fn come(&self, place: u32, round: u32, question: u32) -> Crossing {
        let Some(line) = self.lines.get(place as usize) else {
            return Crossing::Shut;
        };
        let announced = u64::from(round) << ROUND | u64::from(question);
        line.0.store(announced, Ordering::Release);
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let come = (word & COUNT) + 1;
            if word & SHUT != 0 || word >> ROUND != u64::from(round) || come > self.members() {
                return Crossing::Shut;
            }
            let whole = come == self.members();
            let next = match whole {
                true => u64::from(round.wrapping_add(1)) << ROUND,
                false => word + 1,
            };
            match self
                .word
                .compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) if whole => return Crossing::Met,
                Ok(_) => return Crossing::Waiting,
                Err(now) => word = now,
            }
        }
    }

    /// Returns the state of a round in which this member was counted.
    #[inline(always)]
    pub fn look(&self, round: u32) -> Crossing {
        let word = self.word.load(Ordering::Acquire);
        match (word >> ROUND == u64::from(round), word & SHUT != 0) {
            (false, _) => Crossing::Met,
            (true, true) => Crossing::Shut,
            (true, false) => Crossing::Waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU32;

    fn segment(members: u32) -> (Segment, u64) {
        let segment = Segment::create("shared-barrier", 1 << 20).expect("a segment");
        let at = segment.allocate(SharedBarrier::footprint(members), LINE);
        (segment, at.expect("room"))
    }

    #[test]
    fn a_round_is_met_when_all_have_come() {
        let (segment, at) = segment(3);
        let barrier = SharedBarrier::at(&segment, at, 3).unwrap();
        for round in 0..5 {
            assert_eq!(barrier.come(2, round, 7), Crossing::Waiting);
            assert_eq!(barrier.come(0, round, 7), Crossing::Waiting);
            assert_eq!(barrier.look(round), Crossing::Waiting);
            assert_eq!(barrier.come(1, round, 7), Crossing::Met);
            assert_eq!(barrier.look(round), Crossing::Met);
        }
    }

    #[test]
    fn whoever_shuts_it_learns_who_had_come() {
        let (segment, at) = segment(3);
        let barrier = SharedBarrier::at(&segment, at, 3).unwrap();
        for place in 0..3 {
            barrier.come(place, 0, 9);
        }
        barrier.come(0, 1, 4);
        barrier.come(2, 1, 5);
        assert_eq!(barrier.shut(), [(0, 4), (2, 5)]);
        assert_eq!(barrier.come(1, 1, 6), Crossing::Shut);
        assert_eq!(
            (barrier.look(0), barrier.look(1)),
            (Crossing::Met, Crossing::Shut)
        );
        barrier.open();
        assert_eq!(barrier.come(1, 0, 6), Crossing::Waiting);
    }

    #[test]
    fn nonsense_is_a_shared_barrier_that_is_shut() {
        let (segment, at) = segment(2);
        assert!(SharedBarrier::at(&segment, at + 8, 2).is_err());
        assert!(SharedBarrier::at(&segment, 1 << 40, 2).is_err());
        let barrier = SharedBarrier::at(&segment, at, 2).unwrap();
        assert_eq!(barrier.come(2, 0, 1), Crossing::Shut);
        barrier.word.store(COUNT, Ordering::Relaxed);
        assert_eq!(barrier.come(0, 0, 1), Crossing::Shut);
        assert_eq!(barrier.shut(), []);
        barrier.word.store(9 << ROUND, Ordering::Relaxed);
        assert_eq!(barrier.come(0, 0, 1), Crossing::Shut);
    }

    /// Members meet as fast as they can while another thread shuts the barrier: all agree on the last round that was
    /// met, and those that wait are those that `shut` returned.
    #[test]
    fn all_agree_on_the_last_round() {
        const MEMBERS: u32 = 4;
        const MAX_ROUNDS: u32 = 40;
        for turn in 0..400 {
            let (segment, at) = segment(MEMBERS);
            let barrier = SharedBarrier::at(&segment, at, MEMBERS).unwrap();
            let (ends, highest) = (Mutex::new(Vec::new()), AtomicU32::new(0));
            let found = std::thread::scope(|scope| {
                for place in 0..MEMBERS {
                    let (ends, highest) = (&ends, &highest);
                    scope.spawn(move || {
                        let mut round = 0;
                        loop {
                            let mut counted = true;
                            let mut passage = barrier.come(place, round, place + 1);
                            if passage == Crossing::Shut {
                                counted = false;
                            }
                            while passage == Crossing::Waiting {
                                std::thread::yield_now();
                                passage = barrier.look(round);
                            }
                            if passage == Crossing::Shut {
                                ends.lock().unwrap().push((place, round, counted));
                                // not a skip: the thread's rounds are over.
                                return;
                            }
                            round += 1;
                            highest.fetch_max(round, Ordering::Relaxed);
                        }
                    });
                }
                // On a busy machine a round takes several scheduler ticks.
                while highest.load(Ordering::Relaxed) < turn % MAX_ROUNDS {
                    std::thread::yield_now();
                }
                barrier.shut()
            });
            let ends = ends.into_inner().unwrap();
            assert!(ends.iter().all(|end| end.1 == ends[0].1), "{ends:?}");
            for &(place, _, _) in ends.iter().filter(|end| end.2) {
                assert!(found.contains(&(place, place + 1)), "{ends:?} {found:?}");
            }
        }
    }
}
