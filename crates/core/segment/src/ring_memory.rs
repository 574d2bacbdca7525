//! Memory of rings: where it lies, how it is had, and how the receiver hears of it.
//!
//! A ring is opened by the sender the first time it talks to a peer: it allocates the ring in the
//! segment and pushes it onto the receiver's list of opened rings, which the receiver looks at
//! when it looks for messages. Layout of a ring's memory:
//!
//! ```text
//! 0    ends (16) | next opened ring (8) | class (4) | pad | wide payload buffer (8)
//! 64   lines read (4) | pad | bytes freed (8) | of the wide buffer (8) | cost of copies (8)         written by the receiver
//! 128  lines, 64 bytes each (see regatta_memory::ring)
//! ...  payload buffer (see regatta_memory::payload_buffer)
//! ```
//!
//! *Two payload buffers.* Each ring has a narrow one from the start. A ring that carries much may get a wide one, larger than a core's
//! cache. A bit in the header of each line says in which of the two its payload lies, so the sender chooses for each
//! message anew, and the receiver needs no word about it. The line of a payload that lies in either says in its third word how far the writer has read the
//! narrow buffer of the ring that leads the other way, if it has not said so before. A wide buffer stays with its ring for good. (If its maker dies before it
//! has named it, it is nobody's until the job ends: so much memory, at an instant.)

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

/// Bytes of segment between the start of a ring and its lines.
pub const RING_CONTROL: usize = 2 * LINE;

/// First line of a ring's memory.
#[repr(C, align(64))]
struct Names {
    /// The tasks that use it. A ring is used again when both are done with it or gone.
    ends: Ends,
    next_opened: Link,
    /// Which of the geometries it has, for good.
    class: AtomicU32,
    /// Where its wide payload buffer is; 0: it has none. Set once, by the sender, before a line says that its payload lies there.
    wide: AtomicU64,
}

/// For the test that holds it to the version.
#[cfg(test)]
pub(crate) const NAMES_LAYOUT: regatta_memory::layout::Layout = regatta_memory::layout!("ring", Names { ends, next_opened, class, wide } RING_CONTROL ALIGN WIDE WIDE_EAGER IN_WIDE AT_FRONT WITH_POSITION TIMED);

/// Second line, written by the receiver.
#[repr(C, align(64))]
struct Positions {
    read: AtomicU32,
    /// Bytes of the two payload buffers that have been freed.
    freed: AtomicU64,
    freed_wide: AtomicU64,
    /// The low half: ticks that the receiver took to copy a KiB out, of the last payload whose line asked for it. The high half: how often that was.
    cost: AtomicU64,
}

/// Bytes of a wide payload buffer: twice the second-level cache of today's processors.
pub const WIDE: u64 = 2 << 20;
/// The longest payload that goes into one.
pub const WIDE_EAGER: usize = 32 << 10;
/// A line's flag: its payload lies in the wide buffer.
pub const IN_WIDE: u8 = 1;
/// A line's flag: its payload lies at the front of the narrow buffer, however far the one before it was.
pub const AT_FRONT: u8 = 2;
/// A line's flag: its third word is a position.
pub const WITH_POSITION: u8 = 4;

/// A line's flag: the sender wants to know how long it takes to copy the payload out.
pub const TIMED: u8 = 8;

/// A payload buffer of a ring, mapped.
#[derive(Clone, Copy, Debug)]
pub struct PayloadBuffer {
    /// Its first byte.
    pub start: NonNull<u8>,
    /// Its bytes, a power of two.
    pub size: u64,
}

// SAFETY: memory of a segment that outlives the channel; the ring protocol orders all access.
unsafe impl Send for PayloadBuffer {}

/// For the test that holds it to the version.
#[cfg(test)]
pub(crate) const POSITIONS_LAYOUT: regatta_memory::layout::Layout = regatta_memory::layout!("ring's positions", Positions { read, freed, freed_wide, cost } INLINE WORDS);

/// A ring's memory, mapped, as one of the two tasks at its ends uses it.
#[derive(Debug)]
pub struct RingMemory {
    positions: NonNull<Positions>,
    lines: NonNull<u64>,
    count: u32,
    narrow: PayloadBuffer,
    class: u32,
    names: NonNull<Names>,
    segment: NonNull<Segment>,
    /// The use for which this end was made.
    of: Use,
}

/// Rings begin on pages.
pub(crate) const ALIGN: usize = 4096;

// SAFETY: pointers into a segment that outlives the channel; the ring protocol orders all access.
unsafe impl Send for RingMemory {}

const UNUSED: Corrupt = Corrupt {
    what: "a ring has no ends",
};

impl RingMemory {
    /// Bytes of segment that a ring needs.
    pub fn footprint(geometry: Geometry) -> usize {
        RING_CONTROL + geometry.lines as usize * LINE + geometry.payload_buffer as usize
    }

    /// The ring at `offset`. The segment must outlive it, where it is.
    fn at(segment: &Segment, offset: u64, class: u32) -> Result<RingMemory, Corrupt> {
        let Some(&geometry) = CLASSES.get(class as usize) else {
            return Err(Corrupt {
                what: "a ring is of no known size",
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
        // SAFETY: all inside the footprint checked above; the names are atomics.
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

    /// Memory for a ring from `me` to `to`, which finds it on its list from now on. `cursor` is where the next search for one that can
    /// be used again goes on.
    pub fn open(job: &Job, me: u32, to: u32, cursor: &mut u64) -> io::Result<RingMemory> {
        let segment = job.segment();
        let class = class_of(job, me, to);
        let offset = memory_for(job, class, me, to, cursor)?;
        let memory = RingMemory::at(segment, offset, class).map_err(damaged)?;
        segment.map_at_once(offset, RingMemory::footprint(CLASSES[class as usize]));
        // SAFETY: atomics only.
        let names: &Names = unsafe { segment.words(offset) }.map_err(damaged)?;
        job.opened_rings(to).push(offset, &names.next_opened);
        Ok(memory)
    }

    /// The rings others have opened towards `me` since the last look. Memory
    /// that makes no sense is passed over: such a ring would have been nobody's.
    pub fn opened(job: &Job, me: u32) -> Vec<RingMemory> {
        let ring_at = |place| {
            // SAFETY: atomics only.
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

    /// The task that sends through it.
    pub fn source(&self) -> u32 {
        self.of.source()
    }

    /// Does its sender mark what it has written to?
    pub fn is_marked(&self) -> bool {
        ring_marks::is_marked(self.class)
    }

    /// This end does not touch the ring any more. The other one may.
    pub fn let_go(&self, end: End) {
        self.names().ends.finish(self.of, end);
    }

    fn names(&self) -> &Names {
        // SAFETY: atomics inside the segment.
        unsafe { self.names.as_ref() }
    }

    /// May it get a wide payload buffer?
    pub fn may_be_wide(&self) -> bool {
        CLASSES[self.class as usize].wide != 0
    }

    /// The payload buffer that it has from the start.
    pub fn narrow(&self) -> PayloadBuffer {
        self.narrow
    }

    /// The wide payload buffer, if it has one.
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
        // SAFETY: the segment outlives the ring's memory, where it is.
        let segment = unsafe { self.segment.as_ref() };
        Ok(Some(PayloadBuffer {
            start: segment.at(offset, WIDE as usize)?,
            size: WIDE,
        }))
    }

    /// Sender: gives it a wide payload buffer, if it has none; `None`: there is no memory.
    #[cold]
    pub fn widen(&self) -> Option<PayloadBuffer> {
        if let Ok(Some(wide)) = self.wide() {
            return Some(wide);
        }
        // SAFETY: the segment outlives the ring's memory, where it is.
        let segment = unsafe { self.segment.as_ref() };
        let offset = segment.allocate(WIDE as usize, ALIGN).ok()?;
        self.names().wide.store(offset, Ordering::Relaxed);
        self.wide().ok().flatten()
    }

    fn positions(&self) -> &Positions {
        // SAFETY: atomics inside the segment.
        unsafe { self.positions.as_ref() }
    }

    /// How long copies out have taken. Written by the receiver.
    pub fn cost(&self) -> &AtomicU64 {
        &self.positions().cost
    }

    /// Bytes of a payload buffer, the wide one or the narrow one, that its receiver has freed. Written by the receiver.
    #[inline(always)]
    pub fn freed(&self, wide: bool) -> &AtomicU64 {
        match wide {
            true => &self.positions().freed_wide,
            false => &self.positions().freed,
        }
    }

    /// Word `word` of a line; both are in range by the ring's contract.
    #[inline(always)]
    pub fn word(&self, line: u32, word: usize) -> *mut u64 {
        debug_assert!(line < self.count && word < WORDS);
        self.lines
            .as_ptr()
            .wrapping_add(line as usize * WORDS + word)
    }

    /// The bytes of a line behind its first two words.
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
        // SAFETY: an aligned word inside the segment that is only accessed atomically.
        unsafe { AtomicU64::from_ptr(self.word(line, 0)).load(Ordering::Acquire) }
    }
    #[inline(always)]
    fn publish(&self, line: u32, header: u64) {
        // SAFETY: as above.
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

/// The class of a ring between two tasks. The first tasks know from the start how many they are; a task that came later
/// goes by how many there are now.
fn class_of(job: &Job, me: u32, to: u32) -> u32 {
    match me.max(to) < job.first() {
        true => class_for(job.first()),
        false => class_for(job.first().max(job.living())),
    }
}

/// Memory for a ring of this class between these two: one that nobody uses any more, or new. It is clear, and begun.
fn memory_for(job: &Job, class: u32, me: u32, to: u32, cursor: &mut u64) -> io::Result<u64> {
    let segment = job.segment();
    let geometry = CLASSES[class as usize];
    let of_gone = |place, ends: &Ends| {
        // SAFETY: atomics only.
        let names: &Names = unsafe { segment.words(place) }.ok()?;
        // Its memory is looked at first: nothing that it says of itself is trusted.
        let start = segment.at(place, RingMemory::footprint(geometry)).ok()?;
        if names.class.load(Ordering::Relaxed) != class {
            return None;
        }
        ends.claim(me, to, |peer| job.is_gone(peer))?;
        let lines = RING_CONTROL - LINE + geometry.lines as usize * LINE;
        // SAFETY: inside the footprint, behind the names; just claimed, so nobody else touches it.
        unsafe { start.add(LINE).write_bytes(0, lines) };
        Some(place)
    };
    // As long as nobody is gone there is no such ring.
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
    // SAFETY: atomics only.
    let names: &Names = unsafe { segment.words(place) }.map_err(damaged)?;
    names.class.store(class, Ordering::Relaxed);
    names.ends.begin(me, to);
    job.rings().add(place);
    segment.listed(me);
    Ok(place)
}

/// A dead task had been handed out this memory for a ring.
pub(crate) fn list_for_dead(job: &Job, left: Left, task: u32) {
    let bytes = left.end.saturating_sub(left.start);
    let class = CLASSES
        .iter()
        .position(|one| RingMemory::footprint(*one) as u64 == bytes);
    // SAFETY: atomics only.
    let names: Result<&Names, Corrupt> = unsafe { job.segment().words(left.start) };
    if let (Some(class), Ok(names)) = (class, names) {
        names.class.store(class as u32, Ordering::Relaxed);
        job.rings().add_for_dead(left.start, task);
    }
}

fn damaged(corrupt: Corrupt) -> io::Error {
    io::Error::other(corrupt.what)
}
