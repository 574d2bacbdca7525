//! The memory of rings: its layout, its allocation, and how the receiver finds a new ring.
//!
//! The sender opens a ring when it first sends to a peer. It allocates the ring in the segment and pushes it onto the
//! receiver's list of opened rings, which the receiver reads whenever it polls for messages. Layout of a ring's
//! memory:
//!
//! ```text
//! 0    ends (16) | next opened ring (8) | class (4) | pad | wide payload buffer (8)
//! 64   lines read (4) | pad | bytes freed (8) | of the wide buffer (8) | cost of copies (8)         written by the receiver
//! 128  lines, 64 bytes each (see regatta_memory::ring)
//! ...  payload buffer (see regatta_memory::payload_buffer)
//! ```
//!
//! *Two payload buffers.* Each ring has a narrow one from the start. A ring that carries many bytes may get a wide
//! one, larger than a core's cache. A flag in the header of each line says in which of the two its payload lies, so
//! the sender can choose for each message without further agreement. If a line has its payload in one of these
//! buffers, its third word may be a position: how far the writer has read the narrow buffer of the ring in the
//! opposite direction, unless it has reported that position before. A wide buffer stays with its ring for good. (If
//! its maker dies between allocating it and naming it, the memory is unused until the job ends.)

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use regatta_memory::ends::{End, Ends, Use};
use regatta_memory::list::Link;
use regatta_memory::making::{Left, Maker};
#[cfg(test)]
use regatta_memory::ring::INLINE;
use regatta_memory::ring::{Lines, WORDS};
use regatta_memory::segment::Segment;
use regatta_memory::{Corrupt, LINE};

use crate::geometry::{CLASSES, Geometry, class_for};
use crate::job::Job;
use crate::left;
use crate::ring_marks;

/// Distance in bytes from the start of a ring to its lines.
pub const RING_CONTROL: usize = 2 * LINE;

/// First line of a ring's memory.
#[repr(C, align(64))]
struct Names {
    /// The tasks that use the ring. A ring is reused when both are done with it or gone.
    ends: Ends,
    next_opened: Link,
    /// Index in `CLASSES` of the ring's geometry. It does not change.
    class: AtomicU32,
    /// Offset of the wide payload buffer, or 0 if the ring has none. The sender sets it once, before a line says that
    /// its payload lies there.
    wide: AtomicU64,
}

/// Layout, compared with `layout.txt` by a test.
#[cfg(test)]
pub(crate) const NAMES_LAYOUT: regatta_memory::layout::Layout = regatta_memory::layout!("ring", Names { ends, next_opened, class, wide } RING_CONTROL ALIGN WIDE WIDE_EAGER IN_WIDE AT_FRONT WITH_POSITION TIMED);

/// Second line, written by the receiver.
#[repr(C, align(64))]
struct Positions {
    read: AtomicU32,
    /// Number of bytes freed in the narrow payload buffer, and below in the wide one.
    freed: AtomicU64,
    freed_wide: AtomicU64,
    /// Low half: ticks per KiB that the receiver took to copy out the last payload whose line requested a
    /// measurement. High half: the count of measurements.
    cost: AtomicU64,
}

/// Size of a wide payload buffer in bytes: twice the second-level cache of today's processors.
pub const WIDE: u64 = 2 << 20;
/// Maximum length in bytes of a payload in a wide buffer.
pub const WIDE_EAGER: usize = 32 << 10;
/// Flag of a line: its payload lies in the wide buffer.
pub const IN_WIDE: u8 = 1;
/// Flag of a line: its payload lies at the front of the narrow buffer, wherever the payload before it ended.
pub const AT_FRONT: u8 = 2;
/// Flag of a line: its third word is a position.
pub const WITH_POSITION: u8 = 4;

/// Flag of a line: the sender requests a measurement of the time to copy the payload out.
pub const TIMED: u8 = 8;

/// A payload buffer of a ring, mapped.
#[derive(Clone, Copy, Debug)]
pub struct PayloadBuffer {
    /// Pointer to the first byte.
    pub start: NonNull<u8>,
    /// Size in bytes, a power of two.
    pub size: u64,
}

// SAFETY: the memory is in a segment that outlives the channel; the ring protocol orders all accesses.
unsafe impl Send for PayloadBuffer {}

/// Layout, compared with `layout.txt` by a test.
#[cfg(test)]
pub(crate) const POSITIONS_LAYOUT: regatta_memory::layout::Layout = regatta_memory::layout!("ring's positions", Positions { read, freed, freed_wide, cost } INLINE WORDS);

/// The mapped memory of a ring, as used by one of the two tasks at its ends.
#[derive(Debug)]
pub struct RingMemory {
    positions: NonNull<Positions>,
    lines: NonNull<u64>,
    count: u32,
    narrow: PayloadBuffer,
    class: u32,
    names: NonNull<Names>,
    segment: NonNull<Segment>,
    /// The use of the ring that was current when this end was made.
    of: Use,
}

/// Alignment of rings in bytes: a page.
pub(crate) const ALIGN: usize = 4096;

// SAFETY: the pointers lead into a segment that outlives the channel; the ring protocol orders all accesses.
unsafe impl Send for RingMemory {}

const UNUSED: Corrupt = Corrupt {
    what: "a ring has no ends",
};

impl RingMemory {
    /// Returns the size in bytes of a ring in the segment.
    pub fn footprint(geometry: Geometry) -> usize {
        RING_CONTROL + geometry.lines as usize * LINE + geometry.payload_buffer as usize
    }

    /// Returns the ring at `offset`. The segment must outlive the ring and must not be moved.
    fn at(segment: &Segment, offset: u64, class: u32) -> Result<RingMemory, Corrupt> {
        let Some(&geometry) = CLASSES.get(class as usize) else {
            return Err(Corrupt {
                what: "a ring has an unknown size",
            });
        };
        if !offset.is_multiple_of(LINE as u64) {
            return Err(Corrupt {
                what: "a ring's offset is misaligned",
            });
        }
        let start = segment.at(offset, RingMemory::footprint(geometry))?;
        let lines = geometry.lines as usize * LINE;
        let names: NonNull<Names> = start.cast();
        // SAFETY: all pointers are inside the footprint, which was checked above; `Names` consists of atomics.
        unsafe {
            Ok(RingMemory {
                positions: start.add(LINE).cast(),
                lines: start.add(RING_CONTROL).cast(),
                count: geometry.lines,
                narrow: PayloadBuffer {
                    start: start.add(RING_CONTROL + lines),
                    size: geometry.payload_buffer as u64,
                },
                class,
                names,
                segment: NonNull::from(segment),
                of: names.as_ref().ends.present().ok_or(UNUSED)?,
            })
        }
    }

    /// Opens a ring from `me` to `to`, and puts it on the list of `to`. `cursor` is the position at which the search
    /// for a reusable ring resumes.
    pub fn open(job: &Job, me: u32, to: u32, cursor: &mut u64) -> io::Result<RingMemory> {
        let segment = job.segment();
        let class = class_of(job, me, to);
        let offset = memory_for(job, class, me, to, cursor)?;
        let memory = RingMemory::at(segment, offset, class).map_err(damaged)?;
        segment.map_at_once(offset, RingMemory::footprint(CLASSES[class as usize]));
        // SAFETY: `Names` consists of atomics only.
        let names: &Names = unsafe { segment.words(offset) }.map_err(damaged)?;
        job.opened_rings(to).push(offset, &names.next_opened);
        Ok(memory)
    }

    /// Returns the rings that other tasks have opened towards `me` since the last call. Skips invalid entries.
    pub fn opened(job: &Job, me: u32) -> Vec<RingMemory> {
        let ring_at = |place| {
            // SAFETY: `Names` consists of atomics only.
            let names: &Names = unsafe { job.segment().words(place) }.ok()?;
            let class = names.class.load(Ordering::Relaxed);
            let memory = RingMemory::at(job.segment(), place, class).ok()?;
            let footprint = RingMemory::footprint(CLASSES[class as usize]);
            job.segment().map_at_once(place, footprint);
            Some((memory, &names.next_opened))
        };
        let rings = job.opened_rings(me).take_all(job.tasks().into(), ring_at);
        let to_me = |ring: &RingMemory| ring.source() < job.tasks() && ring.of.destination() == me;
        rings.map(|(_, ring)| ring).filter(to_me).collect()
    }

    /// Returns the task that sends through the ring.
    pub fn source(&self) -> u32 {
        self.of.source()
    }

    /// Returns whether the sender sets a mark when it writes to the ring.
    pub fn is_marked(&self) -> bool {
        ring_marks::is_marked(self.class)
    }

    /// Ends the use of the ring by this end. The other end may still use it.
    pub fn let_go(&self, end: End) {
        self.names().ends.finish(self.of, end);
    }

    fn names(&self) -> &Names {
        // SAFETY: `names` is inside the segment and consists of atomics.
        unsafe { self.names.as_ref() }
    }

    /// Returns whether the ring may get a wide payload buffer.
    pub fn may_be_wide(&self) -> bool {
        CLASSES[self.class as usize].wide != 0
    }

    /// Returns the payload buffer that the ring has from the start.
    pub fn narrow(&self) -> PayloadBuffer {
        self.narrow
    }

    /// Returns the wide payload buffer, if the ring has one.
    #[cold]
    pub fn wide(&self) -> Result<Option<PayloadBuffer>, Corrupt> {
        let offset = self.names().wide.load(Ordering::Relaxed);
        if offset == 0 {
            return Ok(None);
        }
        if !offset.is_multiple_of(LINE as u64) {
            return Err(Corrupt {
                what: "a ring's wide payload buffer is misaligned",
            });
        }
        // SAFETY: the segment outlives the ring's memory and is not moved.
        let segment = unsafe { self.segment.as_ref() };
        Ok(Some(PayloadBuffer {
            start: segment.at(offset, WIDE as usize)?,
            size: WIDE,
        }))
    }

    /// Gives the ring a wide payload buffer if it has none, and returns the buffer. Returns `None` if there is no
    /// memory. Only the sender calls it.
    #[cold]
    pub fn widen(&self) -> Option<PayloadBuffer> {
        if let Ok(Some(wide)) = self.wide() {
            return Some(wide);
        }
        // SAFETY: the segment outlives the ring's memory and is not moved.
        let segment = unsafe { self.segment.as_ref() };
        let offset = segment.allocate(WIDE as usize, ALIGN).ok()?;
        self.names().wide.store(offset, Ordering::Relaxed);
        self.wide().ok().flatten()
    }

    fn positions(&self) -> &Positions {
        // SAFETY: `positions` is inside the segment and consists of atomics.
        unsafe { self.positions.as_ref() }
    }

    /// Returns the measured cost of copying out (see `Positions`). The receiver writes it.
    pub fn cost(&self) -> &AtomicU64 {
        &self.positions().cost
    }

    /// Returns the number of bytes that have been freed in the wide or the narrow payload buffer. The receiver writes
    /// it.
    #[inline(always)]
    pub fn freed(&self, wide: bool) -> &AtomicU64 {
        match wide {
            true => &self.positions().freed_wide,
            false => &self.positions().freed,
        }
    }

    /// Returns word `word` of a line. By the ring's contract both are in range.
    #[inline(always)]
    pub fn word(&self, line: u32, word: usize) -> *mut u64 {
        debug_assert!(line < self.count && word < WORDS);
        self.lines
            .as_ptr()
            .wrapping_add(line as usize * WORDS + word)
    }

    /// Returns the bytes of a line behind its first two words.
    #[inline(always)]
    pub fn inline_bytes(&self, line: u32) -> *mut u8 {
        self.word(line, 2).cast()
    }
}

impl Lines for RingMemory {
    #[inline(always)]
    fn count(&self) -> u32 {
        self.count
    }
    #[inline(always)]
    fn header(&self, line: u32) -> u64 {
        // SAFETY: the word is inside the segment, aligned, and only accessed atomically.
        unsafe { AtomicU64::from_ptr(self.word(line, 0)).load(Ordering::Acquire) }
    }
    #[inline(always)]
    fn publish(&self, line: u32, header: u64) {
        // SAFETY: the word is inside the segment, aligned, and only accessed atomically.
        unsafe { AtomicU64::from_ptr(self.word(line, 0)).store(header, Ordering::Release) }
    }
    fn read(&self) -> u32 {
        self.positions().read.load(Ordering::Acquire)
    }
    #[inline(always)]
    fn publish_read(&self, position: u32) {
        self.positions().read.store(position, Ordering::Release);
    }
}

/// Returns the class of a ring between two tasks. Between two of the first tasks it depends on the number of first
/// tasks. If one of the two was added later, it depends on how many tasks run on this host now.
fn class_of(job: &Job, me: u32, to: u32) -> u32 {
    match me.max(to) < job.first() {
        true => class_for(job.first()),
        false => class_for(job.first().max(job.living())),
    }
}

/// Returns memory for a ring of this class between these two tasks: a ring that is no longer used, or new memory. Its
/// lines are cleared, and its use has begun.
fn memory_for(job: &Job, class: u32, me: u32, to: u32, cursor: &mut u64) -> io::Result<u64> {
    let segment = job.segment();
    let geometry = CLASSES[class as usize];
    let of_gone = |place, ends: &Ends| {
        // SAFETY: `Names` consists of atomics only.
        let names: &Names = unsafe { segment.words(place) }.ok()?;
        // The bounds are checked first: the ring's own words are not trusted.
        let start = segment.at(place, RingMemory::footprint(geometry)).ok()?;
        if names.class.load(Ordering::Relaxed) != class {
            return None;
        }
        ends.claim(me, to, |peer| job.is_gone(peer))?;
        let lines = RING_CONTROL - LINE + geometry.lines as usize * LINE;
        // SAFETY: the range is inside the footprint, behind the names; the ring was just claimed, so no other task
        // accesses it.
        unsafe { start.add(LINE).write_bytes(0, lines) };
        Some(place)
    };
    // While no task is gone there is no such ring.
    if job.losses() > 0
        && let Some(place) = job.rings().search(cursor, of_gone)
    {
        return Ok(place);
    }
    let maker = Maker {
        task: me,
        kind: left::RING,
    };
    let place = segment.allocate_for(maker, RingMemory::footprint(geometry), ALIGN)?;
    // SAFETY: `Names` consists of atomics only.
    let names: &Names = unsafe { segment.words(place) }.map_err(damaged)?;
    names.class.store(class, Ordering::Relaxed);
    names.ends.begin(me, to);
    job.rings().add(place);
    segment.listed(me);
    Ok(place)
}

/// Makes a ring of memory that a task had allocated for one when it died, and lists it.
pub(crate) fn list_for_dead(job: &Job, left: Left, task: u32) {
    let bytes = left.end.saturating_sub(left.start);
    let class = CLASSES
        .iter()
        .position(|one| RingMemory::footprint(*one) as u64 == bytes);
    // SAFETY: `Names` consists of atomics only.
    let names: Result<&Names, Corrupt> = unsafe { job.segment().words(left.start) };
    if let (Some(class), Ok(names)) = (class, names) {
        names.class.store(class as u32, Ordering::Relaxed);
        job.rings().add_for_dead(left.start, task);
    }
}

fn damaged(corrupt: Corrupt) -> io::Error {
    io::Error::other(corrupt.what)
}
