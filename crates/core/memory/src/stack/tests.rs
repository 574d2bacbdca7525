//! Tests of stacks: compared with a vector, with invalid words, and between processes that are killed.

use proptest::prelude::*;

use super::*;
use crate::segment::Segment;

const PIECES: usize = 6;

/// A stack whose pieces have the offsets 1, 2, ... units.
#[derive(Default)]
struct Pieces {
    stack: Stack,
    links: [Link; PIECES],
}

impl Pieces {
    fn link(&self, place: u64) -> Result<&Link, Corrupt> {
        let at = usize::try_from(place / UNIT)
            .ok()
            .and_then(|at| at.checked_sub(1));
        let link = at.and_then(|at| self.links.get(at));
        link.ok_or(Corrupt { what: "no piece" })
    }

    fn push(&self, place: u64) {
        assert!(self.stack.push(place, self.link(place).unwrap()));
    }

    fn pop(&self) -> Result<Option<u64>, Corrupt> {
        self.stack.pop(|place| self.link(place))
    }
}

proptest! {
    #[test]
    fn the_last_to_come_is_the_first_to_go(start in any::<u32>(), steps in prop::collection::vec(any::<bool>(), 0..80)) {
        let pieces = Pieces::default();
        // Start with any count of changes, so that it sometimes overflows.
        pieces.stack.scribble((start as u64) << COUNT);
        let mut model: Vec<u64> = Vec::new();
        let mut free: Vec<u64> = (1..=PIECES as u64).map(|at| at * UNIT).collect();
        for push in steps {
            let word = pieces.stack.0.load(Ordering::Relaxed);
            match push.then(|| free.pop()).flatten() {
                Some(place) => {
                    pieces.push(place);
                    model.push(place);
                }
                None => {
                    let popped = pieces.pop().unwrap();
                    prop_assert_eq!(popped, model.pop());
                    free.extend(popped);
                    if popped.is_none() {
                        continue;
                    }
                }
            }
            let now = pieces.stack.0.load(Ordering::Relaxed);
            prop_assert_eq!((now >> COUNT) as u32, ((word >> COUNT) as u32).wrapping_add(1));
        }
    }

    /// A pop returns a piece or an error, whatever the words contain.
    #[test]
    fn nonsense_is_an_error_or_a_piece(word: u64, links in prop::collection::vec(prop_oneof![0..=PIECES as u32 + 1, any::<u32>()], PIECES)) {
        for top in [word, (word >> COUNT << COUNT) | (1 + word % PIECES as u64)] {
            let pieces = Pieces::default();
            pieces.stack.scribble(top);
            for (link, word) in pieces.links.iter().zip(&links) {
                link.0.store(*word, Ordering::Relaxed);
            }
            for _ in 0..3 * PIECES {
                match pieces.pop() {
                    Ok(Some(place)) => prop_assert!(pieces.link(place).is_ok()),
                    Ok(None) | Err(_) => break,
                }
            }
            pieces.push(UNIT);
            prop_assert_eq!(pieces.pop(), Ok(Some(UNIT)));
        }
    }
}

#[test]
fn places_that_the_word_cannot_hold_are_refused() {
    let pieces = Pieces::default();
    for place in [0, 1, UNIT - 1, UNIT + 64, UNIT << COUNT, u64::MAX] {
        assert!(!pieces.stack.push(place, &pieces.links[0]));
    }
    assert_eq!(pieces.pop(), Ok(None));
    let last = (UNIT << COUNT) - UNIT;
    assert!(pieces.stack.push(last, &pieces.links[0]));
    let found = pieces.stack.pop(|_| Ok(&pieces.links[0]));
    assert_eq!(found, Ok(Some(last)));
}

#[test]
fn a_piece_that_is_its_own_next_holds_up_nobody() {
    let pieces = Pieces::default();
    pieces.push(UNIT);
    pieces.links[0].0.store(1, Ordering::Relaxed);
    for _ in 0..10 {
        assert_eq!(pieces.pop(), Ok(Some(UNIT)));
    }
}

/// A piece in shared memory: its link, and the process that has popped it.
#[repr(C, align(128))]
struct Piece {
    link: Link,
    owner: AtomicU32,
}

/// The words that the processes share.
#[repr(C, align(128))]
struct Shared {
    stack: Stack,
    /// How often two processes had the same piece.
    twice: AtomicU32,
    /// Rounds of each process.
    rounds: [AtomicU32; 2],
}

/// Pops two pieces and pushes them back in the order in which they were popped, so that the other process sees the old
/// piece on top again, over another one. Each piece records its owner meanwhile. Each pop pauses between its load and
/// its swap.
fn exchange(segment: &Segment, shared: &Shared, me: u32, random: &mut u32) {
    let piece = |place| -> Result<&Piece, Corrupt> {
        // SAFETY: `Piece` consists of atomics.
        unsafe { segment.words(place) }
    };
    let mut pop = || {
        *random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let pause = *random >> 24;
        let dawdle = |place| {
            (0..pause).for_each(|_| std::hint::black_box(()));
            Ok(&piece(place)?.link)
        };
        let place = shared.stack.pop(dawdle).ok()??;
        let owner = &piece(place).ok()?.owner;
        if owner.swap(me + 1, Ordering::Relaxed) != 0 {
            shared.twice.fetch_add(1, Ordering::Relaxed);
        }
        Some(place)
    };
    let held = [pop(), pop()];
    for place in held.into_iter().flatten() {
        let Ok(piece) = piece(place) else {
            continue;
        };
        if piece.owner.swap(0, Ordering::Relaxed) != me + 1 {
            shared.twice.fetch_add(1, Ordering::Relaxed);
        }
        shared.stack.push(place, &piece.link);
    }
    shared.rounds[me as usize].fetch_add(1, Ordering::Relaxed);
}

#[test]
fn two_processes_never_have_one_piece_and_lose_none() {
    const ROUNDS: u32 = 100_000;
    const HELD: usize = 4;
    let segment = Segment::create("test", 1 << 16).unwrap();
    let place = segment.allocate(size_of::<Shared>(), 128).unwrap();
    // SAFETY: `Shared` consists of atomics.
    let shared: &Shared = unsafe { segment.words(place) }.unwrap();
    let piece = |place| -> &Piece {
        // SAFETY: `Piece` consists of atomics.
        unsafe { segment.words(place) }.unwrap()
    };
    let mut places: Vec<u64> = (0..HELD)
        .map(|_| segment.allocate(size_of::<Piece>(), 128).unwrap())
        .collect();
    for &place in &places {
        assert!(shared.stack.push(place, &piece(place).link));
    }
    // SAFETY: the child uses only the segment, and exits without returning to the parent's code.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut random = 1;
        for _ in 0..ROUNDS {
            exchange(&segment, shared, 1, &mut random);
        }
        // SAFETY: `_exit` only ends this process.
        unsafe { libc::_exit(0) };
    }
    assert!(child > 0);
    let mut random = 0;
    for _ in 0..ROUNDS {
        exchange(&segment, shared, 0, &mut random);
    }
    let mut status = 0;
    // SAFETY: the child belongs to this process, and `status` is local.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(shared.twice.load(Ordering::Relaxed), 0);
    let rounds = [0, 1].map(|at: usize| shared.rounds[at].load(Ordering::Relaxed));
    assert_eq!(rounds, [ROUNDS; 2]);
    let pop = || shared.stack.pop(|place| Ok(&piece(place).link)).unwrap();
    let mut found: Vec<u64> = std::iter::from_fn(pop).collect();
    found.sort_unstable();
    places.sort_unstable();
    assert_eq!(found, places);
}
