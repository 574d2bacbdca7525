//! Collective buffers: the memory of small collectives (see the engine's `round`).
//!
//! ```text
//! for each member   contributions[8]   a line each: round (4 bytes) | 4 unused | up to 56 bytes of the contribution, or its offset (8 bytes; 0: in `data`)
//!                   awaits             a line: 1 + rank of the member whose contribution it sleeps for, or 0
//! then for each     data[8]            the contributions that do not fit into a line
//! of a pair's each  wide               a line: offset of the member's wide area, or 0
//! ```
//!
//! *Wide areas.* A contribution of a pair lies in one of the member's eight data slots, or in an area larger than a
//! core's cache that each of the two members may allocate. Which of them is faster depends on the distance between
//! the cores; the member chooses anew for each contribution. The line of the contribution holds the location. A wide
//! area stays with its buffer for good.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use regatta_memory::segment::Segment;
use regatta_memory::views::Views;
use regatta_memory::wake_request::WakeRequest;
use regatta_memory::{Corrupt, LINE};

/// Number of rounds whose contributions are kept.
pub const DEPTH: usize = 8;
/// Size of a wide area in bytes: large enough that no contribution is overwritten within `DEPTH` rounds.
pub const WIDE: u64 = 2 << 20;
/// Maximum number of members of a buffer whose members may have a wide area.
const MAX_WIDE_MEMBERS: u32 = 2;
/// Maximum length in bytes of a contribution that is stored in its line.
const INLINE: usize = 56;
/// Alignment of wide areas in bytes: a page.
const PAGE: usize = 4096;
/// Size of a member's lines in bytes, without its data.
const PLACE: usize = (DEPTH + 1) * 64;

/// Returns the maximum length in bytes of a contribution in a buffer of `members`. It does not grow with `members`.
pub fn capacity(members: u32) -> usize {
    match members {
        // Up to this length a pair's exchange is as fast as one message in each direction, and needs one wait less.
        0..=2 => 16 << 10,
        3..=64 => 4096,
        65..=1024 => 1024,
        _ => 64,
    }
}

/// Returns the size in bytes of a buffer in the segment.
pub(crate) fn footprint(members: u32) -> usize {
    let wide = if members <= MAX_WIDE_MEMBERS { LINE } else { 0 };
    members as usize * (PLACE + DEPTH * capacity(members) + wide)
}

const _: () = assert!(WIDE as usize > 2 * (DEPTH + 1) * (16 << 10));

/// Returns the number of bytes at the start of a buffer that hold the members' lines.
pub(crate) fn rounds(members: u32) -> usize {
    members as usize * PLACE
}

#[repr(C, align(64))]
struct Contribution {
    round: AtomicU32,
    _pad: u32,
    /// The contribution; or, if it does not fit, its offset in the segment (8 bytes), or 0 if it lies in the member's
    /// data slot.
    bytes: [u8; INLINE],
}

/// Layout, compared with `layout.txt` by a test.
#[cfg(test)]
pub(crate) const CONTRIBUTION_LAYOUT: regatta_memory::layout::Layout =
    regatta_memory::layout!("contribution", Contribution { round, _pad, bytes });

#[repr(C)]
struct Place {
    contributions: [Contribution; DEPTH],
    awaits: WakeRequest,
}

/// Layout, compared with `layout.txt` by a test.
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

// SAFETY: the pointers lead into a segment that outlives the buffer; the protocol of rounds orders all accesses.
unsafe impl Send for CollectiveBuffer {}

impl CollectiveBuffer {
    /// Returns the buffer of `members` tasks at `offset`. The segment must outlive the buffer and must not be moved.
    pub fn at(segment: &Segment, offset: u64, members: u32) -> Result<CollectiveBuffer, Corrupt> {
        if !offset.is_multiple_of(64) {
            return Err(Corrupt {
                what: "a collective buffer's offset is misaligned",
            });
        }
        let start = segment.at(offset, footprint(members))?;
        Ok(CollectiveBuffer {
            places: start.cast(),
            // SAFETY: the offset is inside the footprint, which was checked above.
            data: unsafe { start.add(members as usize * PLACE) },
            members,
            capacity: capacity(members),
            segment: NonNull::from(segment),
        })
    }

    /// Returns the maximum length of a contribution in bytes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline(always)]
    fn place(&self, index: u32) -> NonNull<Place> {
        assert!(index < self.members);
        // SAFETY: `index` is below `members`, so the pointer is inside the footprint.
        unsafe { self.places.add(index as usize) }
    }

    #[inline(always)]
    fn contribution_at(&self, index: u32, round: u32) -> *mut Contribution {
        let place = self.place(index).as_ptr();
        // SAFETY: the pointer is to a field inside the footprint; no reference to its bytes is created.
        unsafe {
            (&raw mut (*place).contributions)
                .cast::<Contribution>()
                .add(round as usize % DEPTH)
        }
    }

    fn data_of(&self, index: u32, round: u32) -> *mut u8 {
        let at = (DEPTH * index as usize + round as usize % DEPTH) * self.capacity;
        // SAFETY: `index < members` was checked by `contribution_at`, so the pointer is inside the footprint.
        unsafe { self.data.as_ptr().add(at) }
    }

    /// Returns the number of tasks that share the buffer.
    pub fn members(&self) -> u32 {
        self.members
    }

    fn segment(&self) -> &Segment {
        // SAFETY: the segment outlives the buffer and is not moved (see `at`).
        unsafe { self.segment.as_ref() }
    }

    /// Returns the offset of the wide area of member `index`, which must be this task, and whether this call
    /// allocated it. Allocates it if it does not exist and `may_make` is set. Returns `None` if the buffer is not a
    /// pair's, or if there is no area and none may or can be allocated.
    #[cold]
    pub fn wide_area(&self, index: u32, may_make: bool) -> Option<(u64, bool)> {
        if index >= self.members || self.members > MAX_WIDE_MEMBERS {
            return None;
        }
        let behind = self.members as usize * DEPTH * self.capacity + index as usize * LINE;
        // SAFETY: the word is inside the footprint and is only ever accessed as this atomic.
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

    /// Writes the contribution of member `index`, which must be this task, to a round: into its slot, or at offset
    /// `wide` of the segment. Uses non-temporal stores if `non_temporal` is set.
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
        // SAFETY: the destination is the member's own slot or area and has room for `len` bytes. By the protocol of
        // rounds no task reads it before `round` is stored.
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

    /// Returns the address of the `total` bytes that member `index` contributed to a round, if they do not fit into a
    /// line. The address is inside the segment even if the line holds an invalid offset.
    #[inline(always)]
    fn lies_at(&self, index: u32, round: u32, total: usize) -> *mut u8 {
        let contribution = self.contribution_at(index, round);
        // SAFETY: the pointer is inside the footprint.
        let at = unsafe { (&raw const (*contribution).bytes).cast::<u64>().read() };
        let aligned = at & !(LINE as u64 - 1);
        match self.segment().at(aligned, total) {
            Ok(area) if aligned != 0 => area.as_ptr(),
            _ => self.data_of(index, round),
        }
    }

    /// Returns whether member `index` has contributed to a round.
    #[inline(always)]
    pub fn contributed(&self, index: u32, round: u32) -> bool {
        let contribution = self.contribution_at(index, round);
        // SAFETY: the atomic is inside the footprint.
        unsafe { (*contribution).round.load(Ordering::Acquire) == round }
    }

    /// Returns the round number that is stored in the slot of `round`.
    pub fn contributed_round(&self, index: u32, round: u32) -> u32 {
        let contribution = self.contribution_at(index, round);
        // SAFETY: the atomic is inside the footprint.
        unsafe { (*contribution).round.load(Ordering::Acquire) }
    }

    /// Copies a part of a contribution, from byte `offset`, to `into`. `total` is the length of the whole
    /// contribution, which all members know.
    #[inline(always)]
    pub fn collect(&self, index: u32, round: u32, offset: usize, total: usize, into: &Views) {
        let contribution = self.contribution_at(index, round);
        let len = into.len().min(self.capacity.saturating_sub(offset));
        // SAFETY: `offset + len` is within the slot. If another task writes the contribution meanwhile, the bytes
        // copied are arbitrary, and nothing else is affected.
        unsafe {
            let from: *const u8 = if total <= INLINE && offset + len <= INLINE {
                (&raw const (*contribution).bytes).cast()
            } else {
                self.lies_at(index, round, offset + len)
            };
            into.scatter(0, from.add(offset), len);
        }
    }

    /// Returns the memory of the `total` bytes that member `index` contributed to a round, so that they can be read
    /// in place. Returns `None` if they lie in a line, where they are not aligned for every type, or if `total`
    /// exceeds the capacity. The memory is valid until this member contributes to a later round.
    #[inline(always)]
    pub fn contribution(&self, index: u32, round: u32, total: usize) -> Option<Views> {
        assert!(index < self.members);
        let lies_apart = total > INLINE && total <= self.capacity;
        // SAFETY: the memory is inside the footprint, which outlives the buffer's users. If another task writes it
        // meanwhile, the bytes read are arbitrary, and nothing else is affected.
        lies_apart.then(|| unsafe { Views::block(self.lies_at(index, round, total), total) })
    }

    /// Returns the wake request of member `index`: the member whose contribution it sleeps for.
    #[inline(always)]
    pub fn awaits(&self, index: u32) -> &WakeRequest {
        // SAFETY: the atomic is inside the footprint, which outlives the buffer's users.
        unsafe { &(*self.place(index).as_ptr()).awaits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: &mut [u8]) -> Views {
        // SAFETY: the tests keep `bytes` alive and do not access it during the copy.
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
            // SAFETY: the pointer is to the contribution's line, which nothing else uses.
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
