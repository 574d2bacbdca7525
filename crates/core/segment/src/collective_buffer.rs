//! Collective buffers: the memory of small collectives (see the engine's `round`).
//!
//! ```text
//! for each member   contributions[8]   a line each: round (4 bytes) | 4 unused | up to 56 bytes of the contribution, or where it lies (8 bytes; 0: in `data`)
//!                   awaits             a line: 1 + rank of the member whose contribution it sleeps for, or 0
//! then for each     data[8]            the contributions that do not fit into a line
//! of a pair's each  wide               a line: where the member's wide area is, or 0
//! ```
//!
//! *Wide areas.* A pair's contributions lie in its eight places of data, or in an area larger than a core's cache that each of the two may ask for: which of the two is faster depends on
//! how far apart the cores are, and the member chooses each time anew. The line of a contribution says where it lies. An area stays with its buffer for good.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use regatta_memory::segment::Segment;
use regatta_memory::views::Views;
use regatta_memory::wake_request::WakeRequest;
use regatta_memory::{Corrupt, LINE};

/// Rounds whose contributions are kept.
pub const DEPTH: usize = 8;
/// Bytes of a wide area: so much that no contribution is written over before as many rounds have passed as a buffer keeps.
pub const WIDE: u64 = 2 << 20;
/// Maximum number of members of a buffer whose members may have a wide area.
const MAX_WIDE_MEMBERS: u32 = 2;
/// Bytes of a contribution that travel in its line.
const INLINE: usize = 56;
/// Wide areas begin on pages.
const PAGE: usize = 4096;
/// Bytes per member besides data.
const PLACE: usize = (DEPTH + 1) * 64;

/// Bytes of data a member may contribute in a buffer of `members`; not less in one of fewer.
pub fn capacity(members: u32) -> usize {
    match members {
        // A pair's is as quick as a message each way up to this, and takes one wait less.
        0..=2 => 16 << 10,
        3..=64 => 4096,
        65..=1024 => 1024,
        _ => 64,
    }
}

/// Bytes of segment a buffer needs.
pub(crate) fn footprint(members: u32) -> usize {
    let wide = if members <= MAX_WIDE_MEMBERS { LINE } else { 0 };
    members as usize * (PLACE + DEPTH * capacity(members) + wide)
}

const _: () = assert!(WIDE as usize > 2 * (DEPTH + 1) * (16 << 10));

/// Bytes at the start of a buffer that say what has been contributed.
pub(crate) fn rounds(members: u32) -> usize {
    members as usize * PLACE
}

#[repr(C, align(64))]
struct Contribution {
    round: AtomicU32,
    _pad: u32,
    /// If the contribution does not fit: where in the segment it lies (8 bytes), or 0: in its place.
    bytes: [u8; INLINE],
}

/// For the test that holds it to the version.
#[cfg(test)]
pub(crate) const CONTRIBUTION_LAYOUT: regatta_memory::layout::Layout =
    regatta_memory::layout!("contribution", Contribution { round, _pad, bytes });

#[repr(C)]
struct Place {
    contributions: [Contribution; DEPTH],
    awaits: WakeRequest,
}

/// For the test that holds it to the version.
#[cfg(test)]
pub(crate) const LAYOUT: regatta_memory::layout::Layout =
    regatta_memory::layout!("member's place", Place { contributions, awaits } DEPTH INLINE PLACE);

const _: () = assert!(size_of::<Place>() == PLACE);

/// A collective buffer mapped in this process.
#[derive(Debug)]
pub struct CollectiveBuffer {
    places: NonNull<Place>,
    data: NonNull<u8>,
    members: u32,
    capacity: usize,
    segment: NonNull<Segment>,
}

// SAFETY: pointers into a segment that outlives it; the protocol of rounds orders all access.
unsafe impl Send for CollectiveBuffer {}

impl CollectiveBuffer {
    /// The buffer of `members` tasks at `offset`. The segment must outlive it, where it is.
    pub fn at(segment: &Segment, offset: u64, members: u32) -> Result<CollectiveBuffer, Corrupt> {
        if !offset.is_multiple_of(64) {
            return Err(Corrupt {
                what: "a collective buffer's offset is misaligned",
            });
        }
        let start = segment.at(offset, footprint(members))?;
        Ok(CollectiveBuffer {
            places: start.cast(),
            // SAFETY: inside the footprint checked above.
            data: unsafe { start.add(members as usize * PLACE) },
            members,
            capacity: capacity(members),
            segment: NonNull::from(segment),
        })
    }

    /// Most bytes of a contribution.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline(always)]
    fn place(&self, index: u32) -> NonNull<Place> {
        assert!(index < self.members);
        // SAFETY: inside the footprint.
        unsafe { self.places.add(index as usize) }
    }

    #[inline(always)]
    fn contribution_at(&self, index: u32, round: u32) -> *mut Contribution {
        let place = self.place(index).as_ptr();
        // SAFETY: a field of a place inside the footprint; no reference to the bytes is made.
        unsafe {
            (&raw mut (*place).contributions)
                .cast::<Contribution>()
                .add(round as usize % DEPTH)
        }
    }

    fn data_of(&self, index: u32, round: u32) -> *mut u8 {
        let at = (DEPTH * index as usize + round as usize % DEPTH) * self.capacity;
        // SAFETY: inside the footprint, as `index < members` was checked by `contribution_at`.
        unsafe { self.data.as_ptr().add(at) }
    }

    /// How many tasks share it.
    pub fn members(&self) -> u32 {
        self.members
    }

    fn segment(&self) -> &Segment {
        // SAFETY: it outlives the buffer, where it is.
        unsafe { self.segment.as_ref() }
    }

    /// The wide area of member `index`, this task, and whether it has just been made, which it is if need be and `may_make`; `None`: there is none and no memory for one, or the buffer is
    /// no pair's.
    #[cold]
    pub fn wide_area(&self, index: u32, may_make: bool) -> Option<(u64, bool)> {
        if index >= self.members || self.members > MAX_WIDE_MEMBERS {
            return None;
        }
        let behind = self.members as usize * DEPTH * self.capacity + index as usize * LINE;
        // SAFETY: a line inside the footprint, only ever used as this atomic.
        let word = unsafe { &*self.data.as_ptr().add(behind).cast::<AtomicU64>() };
        let known = word.load(Ordering::Relaxed);
        if known != 0 {
            let is_sound = known.is_multiple_of(PAGE as u64);
            let lies_inside = self.segment().at(known, WIDE as usize).is_ok();
            return (is_sound && lies_inside).then_some((known, false));
        }
        if !may_make {
            return None;
        }
        let made = self.segment().allocate(WIDE as usize, PAGE).ok()?;
        word.store(made, Ordering::Relaxed);
        Some((made, true))
    }

    /// Writes the contribution of member `index`, this task, to a round: into its place, or to where it says in its wide area; past the caches, if so wanted.
    #[inline(always)]
    pub fn contribute(
        &self,
        index: u32,
        round: u32,
        from: &Views,
        wide: Option<u64>,
        non_temporal: bool,
    ) {
        let contribution = self.contribution_at(index, round);
        let len = from.len().min(self.capacity);
        // SAFETY: the member's own place or area; nobody reads it before `round` is stored
        // (the protocol of rounds) and `len` fits.
        unsafe {
            let bytes: *mut u8 = (&raw mut (*contribution).bytes).cast();
            let to = if len <= INLINE {
                bytes
            } else {
                let place = wide.and_then(|at| Some((at, self.segment().at(at, len).ok()?)));
                bytes.cast::<u64>().write(place.map_or(0, |(at, _)| at));
                match place {
                    Some((_, area)) => area.as_ptr(),
                    None => self.data_of(index, round),
                }
            };
            match non_temporal {
                true => from.gather_non_temporal(0, to, len),
                false => from.gather(0, to, len),
            }
            (*contribution).round.store(round, Ordering::Release);
        }
    }

    /// The place of the `total` bytes that member `index` has contributed to a round, if they do not fit into a line. It is inside the segment, whatever the line says.
    #[inline(always)]
    fn lies_at(&self, index: u32, round: u32, total: usize) -> *mut u8 {
        let contribution = self.contribution_at(index, round);
        // SAFETY: inside the footprint.
        let at = unsafe { (&raw const (*contribution).bytes).cast::<u64>().read() };
        let aligned = at & !(LINE as u64 - 1);
        match self.segment().at(aligned, total) {
            Ok(area) if aligned != 0 => area.as_ptr(),
            _ => self.data_of(index, round),
        }
    }

    /// Has member `index` contributed to a round?
    #[inline(always)]
    pub fn contributed(&self, index: u32, round: u32) -> bool {
        let contribution = self.contribution_at(index, round);
        // SAFETY: an atomic inside the footprint.
        unsafe { (*contribution).round.load(Ordering::Acquire) == round }
    }

    /// The round word in the place of `round`.
    pub fn contributed_round(&self, index: u32, round: u32) -> u32 {
        let contribution = self.contribution_at(index, round);
        // SAFETY: an atomic inside the footprint.
        unsafe { (*contribution).round.load(Ordering::Acquire) }
    }

    /// `total` is the length of the contribution, which all members know.
    #[inline(always)]
    pub fn collect(&self, index: u32, round: u32, offset: usize, total: usize, into: &Views) {
        let contribution = self.contribution_at(index, round);
        let len = into.len().min(self.capacity.saturating_sub(offset));
        // SAFETY: `offset + len` fits the place; a contribution that changes meanwhile yields arbitrary
        // bytes and nothing worse.
        unsafe {
            let from: *const u8 = if total <= INLINE && offset + len <= INLINE {
                (&raw const (*contribution).bytes).cast()
            } else {
                self.lies_at(index, round, offset + len)
            };
            into.scatter(0, from.add(offset), len);
        }
    }

    /// The memory of what member `index` contributed to a round, `total` bytes, to be read where it lies; `None`: they are in a line, where they are not
    /// aligned for every type, or cannot be so many. It is read while they are collected: until this member contributes to a later round.
    #[inline(always)]
    pub fn contribution(&self, index: u32, round: u32, total: usize) -> Option<Views> {
        assert!(index < self.members);
        let lies_apart = total > INLINE && total <= self.capacity;
        // SAFETY: inside the footprint, which outlives the buffer's users; bytes that change meanwhile are arbitrary, and nothing worse.
        lies_apart.then(|| unsafe { Views::block(self.lies_at(index, round, total), total) })
    }

    /// The member that member `index` sleeps for.
    #[inline(always)]
    pub fn awaits(&self, index: u32) -> &WakeRequest {
        // SAFETY: an atomic inside the footprint, which outlives the buffer's users.
        unsafe { &(*self.place(index).as_ptr()).awaits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: &mut [u8]) -> Views {
        // SAFETY: the tests keep `bytes` alive and untouched while they copy.
        unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) }
    }

    fn of_two() -> (Segment, u64) {
        let segment = Segment::create("pair", 1 << 20).unwrap();
        let at = segment.allocate(footprint(2), LINE).unwrap();
        (segment, at)
    }

    #[test]
    fn contributions_in_wide_areas_are_read_and_areas_are_found_again() {
        let (segment, at) = of_two();
        let buffer = CollectiveBuffer::at(&segment, at, 2).unwrap();
        assert_eq!(buffer.wide_area(1, false), None);
        let (area, _) = buffer.wide_area(1, true).unwrap();
        let mut bytes = vec![7; 16 << 10];
        for (round, place) in [(1, area), (2, area + WIDE - (16 << 10))] {
            buffer.contribute(1, round, &block(&mut bytes), Some(place), round == 2);
            let mut read = vec![0; bytes.len()];
            buffer.collect(1, round, 0, bytes.len(), &block(&mut read));
            assert_eq!(read, bytes);
            let there = buffer.contribution(1, round, bytes.len()).unwrap();
            let expected = segment.at(place, bytes.len()).unwrap().as_ptr();
            assert_eq!(
                there.contiguous().map(|start| start.addr()),
                Some(expected.addr())
            );
        }
        let other = CollectiveBuffer::at(&segment, at, 2).unwrap();
        assert_eq!(
            other.wide_area(1, false),
            Some((area, false)),
            "it stays with the buffer"
        );
        assert_ne!(other.wide_area(0, true), Some((area, true)));
        assert_eq!(other.wide_area(2, true), None);
    }

    #[test]
    fn a_line_that_points_anywhere_is_read_inside_the_segment() {
        let (segment, at) = of_two();
        let buffer = CollectiveBuffer::at(&segment, at, 2).unwrap();
        let mut bytes = vec![7; 1000];
        for place in [
            1,
            63,
            64,
            1 << 20,
            segment.used(),
            segment.used() - 64,
            u64::MAX,
            u64::MAX - 2000,
        ] {
            buffer.contribute(0, 1, &block(&mut bytes), None, false);
            // SAFETY: the line of the contribution; nobody else uses it.
            unsafe {
                buffer
                    .contribution_at(0, 1)
                    .cast::<u64>()
                    .add(1)
                    .write(place)
            };
            let mut read = vec![0; bytes.len()];
            buffer.collect(0, 1, 0, bytes.len(), &block(&mut read));
            assert!(buffer.contribution(0, 1, bytes.len()).is_some());
        }
    }
}
