//! Collective buffers: the memory of small collectives (see the engine's `round`).
//!
//! ```text
//! for each member   contributions[8]   a line each: round (4 bytes) | 8 bytes of the contribution | ...
//!                   awaits             a line: 1 + rank of the member whose contribution it sleeps for, or 0
//! then for each     data[8]            the contributions that do not fit into a line
//! ```

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use regatta_memory::Corrupt;
use regatta_memory::segment::Segment;
use regatta_memory::views::Views;
use regatta_memory::wake_request::WakeRequest;

/// Rounds whose contributions are kept.
pub const DEPTH: usize = 8;
/// Bytes of a contribution that travel in its line.
const INLINE: usize = 56;
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
    members as usize * (PLACE + DEPTH * capacity(members))
}

/// Bytes at the start of a buffer that say what has been contributed.
pub(crate) fn rounds(members: u32) -> usize {
    members as usize * PLACE
}

#[repr(C, align(64))]
struct Contribution {
    round: AtomicU32,
    _pad: u32,
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
}

// SAFETY: pointers into a segment that outlives it; the protocol of rounds orders all access.
unsafe impl Send for CollectiveBuffer {}

impl CollectiveBuffer {
    /// The buffer of `members` tasks at `offset`.
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

    /// Writes the contribution of member `index` to a round; past the caches, if so wanted.
    #[inline(always)]
    pub fn contribute(&self, index: u32, round: u32, from: &Views, past_caches: bool) {
        let contribution = self.contribution_at(index, round);
        let len = from.len().min(self.capacity);
        // SAFETY: the member's own place; nobody reads it before `round` is stored
        // (the protocol of rounds) and `len` fits.
        unsafe {
            let to = if len <= INLINE {
                (&raw mut (*contribution).bytes).cast()
            } else {
                self.data_of(index, round)
            };
            match past_caches {
                true => from.gather_past_caches(0, to, len),
                false => from.gather(0, to, len),
            }
            (*contribution).round.store(round, Ordering::Release);
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
                self.data_of(index, round)
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
        lies_apart.then(|| unsafe { Views::block(self.data_of(index, round), total) })
    }

    /// The member that member `index` sleeps for.
    #[inline(always)]
    pub fn awaits(&self, index: u32) -> &WakeRequest {
        // SAFETY: an atomic inside the footprint, which outlives the buffer's users.
        unsafe { &(*self.place(index).as_ptr()).awaits }
    }
}
