//! Models of the two structures that hold pieces of shared memory, as in `models_loom.rs`.
//!
//! | structure | what runs | what does not |
//! |---|---|---|
//! | stack | `Stack` as shipped: pops and pushes of the same pieces by several tasks | a count of changes that overflows |
//! | list | `List` as shipped: pushing, walking, taking all | pieces that are pushed again after all were taken |
#![cfg(loom)]

mod orders;

use std::sync::atomic::{AtomicU32, Ordering};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use orders::every_order;
use regatta_memory::Corrupt;
use regatta_memory::list::{self, List};
use regatta_memory::stack::{self, Stack, UNIT};

/// A stack of three pieces, each with a cell that only its owner may touch.
struct Stacked {
    stack: Stack,
    links: [stack::Link; 3],
    cells: [UnsafeCell<u32>; 3],
}

impl Stacked {
    fn new() -> Stacked {
        let stacked = Stacked {
            stack: Stack::default(),
            links: Default::default(),
            cells: std::array::from_fn(|_| UnsafeCell::new(0)),
        };
        (0..3).rev().for_each(|piece| stacked.push(piece));
        stacked
    }

    /// Takes the piece on top, and uses it.
    fn pop(&self) -> Option<usize> {
        let at = |place: u64| (place / UNIT) as usize - 1;
        let link = |place| -> Result<&stack::Link, Corrupt> { Ok(&self.links[at(place)]) };
        let piece = at(self.stack.pop(link).unwrap()?);
        // SAFETY: the piece was popped, so no other thread touches it; loom checks that.
        self.cells[piece].with_mut(|cell| unsafe { *cell += 1 });
        Some(piece)
    }

    fn push(&self, piece: usize) {
        let place = (piece as u64 + 1) * UNIT;
        assert!(self.stack.push(place, &self.links[piece]));
    }

    /// Returns the pieces that are left, in order of their numbers.
    fn rest(&self) -> Vec<usize> {
        let mut rest: Vec<usize> = std::iter::from_fn(|| self.pop()).collect();
        rest.sort_unstable();
        rest
    }
}

/// One thread takes a piece. The other takes two and puts the first one back, so that it is on top again with another
/// piece under it.
#[test]
fn a_piece_that_came_back_between_look_and_swap_is_popped_with_what_is_under_it_now() {
    every_order(3, 15, || {
        let stacked = Arc::new(Stacked::new());
        let there = stacked.clone();
        let other = thread::spawn(move || {
            let (first, second) = (there.pop(), there.pop());
            first.into_iter().for_each(|piece| there.push(piece));
            second
        });
        let mine = stacked.pop();
        let theirs = other.join().unwrap();
        let mut all = stacked.rest();
        all.extend(mine.into_iter().chain(theirs));
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
    });
}

#[test]
fn pieces_that_two_pop_and_push_are_never_lost_or_shared() {
    every_order(3, 100, || {
        let stacked = Arc::new(Stacked::new());
        let exchange = |stacked: &Stacked| {
            for _ in 0..2 {
                stacked
                    .pop()
                    .into_iter()
                    .for_each(|piece| stacked.push(piece));
            }
        };
        let there = stacked.clone();
        let other = thread::spawn(move || exchange(&there));
        exchange(&stacked);
        other.join().unwrap();
        assert_eq!(stacked.rest(), [0, 1, 2]);
    });
}

/// A list of at most three pieces, each with a cell that its maker writes before it is pushed.
#[derive(Default)]
struct Made {
    list: List,
    links: [list::Link; 3],
    cells: [UnsafeCell<u64>; 3],
}

impl Made {
    fn push(&self, place: u64) {
        let at = place as usize - 1;
        // SAFETY: the piece has not been pushed yet, so no other thread touches it; loom checks that.
        self.cells[at].with_mut(|cell| unsafe { *cell = place });
        self.list.push(place, &self.links[at]);
    }

    fn find<'a>(&'a self) -> impl Fn(u64) -> Option<((), &'a list::Link)> {
        |place| Some(((), &self.links[place as usize - 1]))
    }

    /// Returns the offsets of these pieces, after checking that each was written completely.
    fn read(&self, walk: impl Iterator<Item = (u64, ())>) -> Vec<u64> {
        walk.inspect(|&(place, ())| {
            // SAFETY: the piece was pushed, so no thread writes it any more; loom checks that.
            let written = self.cells[place as usize - 1].with(|cell| unsafe { *cell });
            assert_eq!(written, place);
        })
        .map(|(place, ())| place)
        .collect()
    }
}

#[test]
fn a_walk_finds_whole_pieces_and_all_that_were_pushed_before_them() {
    let found = std::sync::Arc::new(AtomicU32::new(0));
    let most = found.clone();
    every_order(3, 50, move || {
        let made = Arc::new(Made::default());
        let there = made.clone();
        let walker = thread::spawn(move || there.read(there.list.walk(3, there.find())));
        let there = made.clone();
        let other = thread::spawn(move || there.push(3));
        made.push(1);
        made.push(2);
        let seen = walker.join().unwrap();
        other.join().unwrap();
        most.fetch_max(seen.len() as u32, Ordering::Relaxed);
        // The second piece of a task precedes its first.
        let places = [1, 2].map(|place| seen.iter().position(|&other| other == place));
        assert!(places[1].is_none_or(|second| places[0].is_some_and(|first| second < first)));
        let mut all = made.read(made.list.walk(3, made.find()));
        assert!(all.ends_with(&seen), "{all:?} after {seen:?}");
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
    let found = found.load(Ordering::Relaxed);
    assert_eq!(
        found, 3,
        "a walk that finds all of them is among the orders"
    );
}

#[test]
fn a_list_that_is_taken_while_others_push_is_taken_once() {
    every_order(3, 100, || {
        let made = Arc::new(Made::default());
        let pushers: Vec<_> = [1, 2]
            .into_iter()
            .map(|place| {
                let there = made.clone();
                thread::spawn(move || there.push(place))
            })
            .collect();
        let mut taken = made.read(made.list.take_all(3, made.find()));
        pushers.into_iter().for_each(|one| one.join().unwrap());
        taken.extend(made.read(made.list.take_all(3, made.find())));
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
        assert!(made.list.is_empty());
    });
}
