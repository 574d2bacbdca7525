//! A shared-memory channel: a ring and its payload buffers, as its sender ([`Out`]) and as its receiver ([`In`]).
//!
//! *Two payload buffers.* Each ring has a narrow one from the start. A ring that carries much may get a wide one, larger than a core's
//! cache (see `footprint`). A bit in the header of each line says in which of the two its payload lies, so the sender chooses for each
//! message anew, and the receiver needs no word about it. A wide buffer stays with its ring for good.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use regatta_engine::{Arrival, Peer};
use regatta_memory::bell::Bell;
use regatta_memory::ends::{End, Ends, Use};
use regatta_memory::list::Link;
use regatta_memory::making::{Left, Maker};
use regatta_memory::payload_buffer::Cursor;
use regatta_memory::ring::{Consumer, Header, INLINE, Lines, Producer, WORDS};
use regatta_memory::segment::Segment;
use regatta_memory::ticks::ticks;
use regatta_memory::views::Views;
use regatta_memory::{Corrupt, LINE};
use regatta_wire::{Frame, Kind};

use crate::footprint::{self, Footprint, Learner, Policy};
use crate::job::{CLASSES, Geometry, Job, class_for};
use crate::left;
use crate::ring_marks::{self, Marks};
use crate::shm::{RING_CONTROL, header};

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
pub(crate) const NAMES_LAYOUT: regatta_memory::layout::Layout = regatta_memory::layout!("ring", Names { ends, next_opened, class, wide } RING_CONTROL ALIGN WIDE WIDE_EAGER IN_WIDE);

/// Bytes of a wide payload buffer: twice the second-level cache of today's processors.
const WIDE: u64 = 2 << 20;
/// The longest payload that goes into one.
const WIDE_EAGER: usize = 32 << 10;
/// A line's flag: its payload lies in the wide buffer.
const IN_WIDE: u8 = 1;

/// Second line, written by the receiver.
#[repr(C, align(64))]
struct Positions {
    read: AtomicU32,
    /// Bytes of the two payload buffers that have been freed.
    freed: AtomicU64,
    freed_wide: AtomicU64,
}

/// For the test that holds it to the version.
#[cfg(test)]
pub(crate) const POSITIONS_LAYOUT: regatta_memory::layout::Layout =
    regatta_memory::layout!("ring's positions", Positions { read, freed, freed_wide } INLINE WORDS);

/// A ring's memory, mapped.
#[derive(Debug)]
struct Memory {
    positions: NonNull<Positions>,
    lines: NonNull<u64>,
    count: u32,
    class: u32,
    names: NonNull<Names>,
    segment: NonNull<Segment>,
    /// The use for which this end was made.
    of: Use,
}

/// A payload buffer, and how far this end is in it.
#[derive(Debug)]
struct Buffer {
    start: NonNull<u8>,
    /// A power of two.
    size: u64,
    cursor: Cursor,
}

/// Rings begin on pages.
const ALIGN: usize = 4096;

// SAFETY: pointers into a segment that outlives the channel; the ring protocol orders all access.
unsafe impl Send for Memory {}

fn ring_bytes(geometry: Geometry) -> usize {
    RING_CONTROL + geometry.lines as usize * LINE + geometry.payload_buffer as usize
}

impl Memory {
    /// The ring at `offset`, and its narrow payload buffer. The segment must outlive both, where it is.
    fn at(segment: &Segment, offset: u64, class: u32) -> Result<(Memory, Buffer), Corrupt> {
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
        let start = segment.at(offset, ring_bytes(geometry))?;
        let lines = geometry.lines as usize * LINE;
        let names: NonNull<Names> = start.cast();
        // SAFETY: all inside the footprint checked above; the names are atomics.
        unsafe {
            let memory = Memory {
                positions: start.add(LINE).cast(),
                lines: start.add(RING_CONTROL).cast(),
                count: geometry.lines,
                class,
                names,
                segment: NonNull::from(segment),
                of: names.as_ref().ends.present().ok_or(UNUSED)?,
            };
            let narrow = Buffer {
                start: start.add(RING_CONTROL + lines),
                size: geometry.payload_buffer as u64,
                cursor: Cursor::default(),
            };
            Ok((memory, narrow))
        }
    }

    /// This end does not touch the ring any more. The other one may.
    fn let_go(&self, end: End) {
        self.names().ends.finish(self.of, end);
    }

    fn names(&self) -> &Names {
        // SAFETY: atomics inside the segment.
        unsafe { self.names.as_ref() }
    }

    /// The wide payload buffer, if the ring has one.
    #[cold]
    fn wide(&self) -> Result<Option<Buffer>, Corrupt> {
        // SAFETY: the segment outlives the ring's memory, where it is.
        let segment = unsafe { self.segment.as_ref() };
        let offset = self.names().wide.load(Ordering::Relaxed);
        if offset == 0 {
            return Ok(None);
        }
        if !offset.is_multiple_of(LINE as u64) {
            return Err(Corrupt {
                what: "a ring's wide payload buffer is misaligned",
            });
        }
        Ok(Some(Buffer {
            start: segment.at(offset, WIDE as usize)?,
            size: WIDE,
            cursor: Cursor::default(),
        }))
    }

    fn positions(&self) -> &Positions {
        // SAFETY: atomics inside the segment.
        unsafe { self.positions.as_ref() }
    }

    /// Word `word` of a line; both are in range by construction.
    #[inline(always)]
    fn word(&self, line: u32, word: usize) -> *mut u64 {
        // SAFETY: `line < count` by the ring's contract.
        unsafe { self.lines.as_ptr().add(line as usize * WORDS + word) }
    }

    #[inline(always)]
    fn inline_bytes(&self, line: u32) -> *mut u8 {
        self.word(line, 2).cast()
    }
}

impl Lines for Memory {
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

/// The sender's end.
#[derive(Debug)]
pub(crate) struct Out {
    memory: Memory,
    producer: Producer,
    narrow: Buffer,
    wide: Option<Buffer>,
    /// Which of the two suits payloads that fit into both.
    learner: Learner,
    bell: NonNull<Bell>,
    /// Where the receiver is told that this ring has been written to, if it is marked; and as whose.
    marks: Option<NonNull<Marks>>,
    me: Peer,
}

/// The receiver's end.
#[derive(Debug)]
pub(crate) struct In {
    memory: Memory,
    consumer: Consumer,
    narrow: Buffer,
    /// Known since the first payload that lay there.
    wide: Option<Buffer>,
    /// The sender's bell, for when it sleeps for want of room.
    bell: NonNull<Bell>,
}

// SAFETY: as for `Memory`; bells are atomics in the same segment.
unsafe impl Send for Out {}
// SAFETY: as above.
unsafe impl Send for In {}

/// The class of a ring between two tasks. The first tasks know from the start how many they are; a task that came later
/// goes by how many there are now.
fn class_of(job: &Job, me: Peer, to: Peer) -> u32 {
    match me.max(to) < job.first() {
        true => class_for(job.first()),
        false => class_for(job.first().max(job.living())),
    }
}

const UNUSED: Corrupt = Corrupt {
    what: "a ring has no ends",
};

/// Memory for a ring of this class between these two: one that nobody uses any more, or new. It is clear, and begun.
fn memory_for(job: &Job, class: u32, me: Peer, to: Peer, cursor: &mut u64) -> io::Result<u64> {
    let segment = job.segment();
    let geometry = CLASSES[class as usize];
    let of_gone = |place, ends: &Ends| {
        // SAFETY: atomics only.
        let names: &Names = unsafe { segment.words(place) }.ok()?;
        // Its memory is looked at first: nothing that it says of itself is trusted.
        let start = segment.at(place, ring_bytes(geometry)).ok()?;
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
    let place = segment.allocate_for(maker, ring_bytes(geometry), ALIGN)?;
    // SAFETY: atomics only.
    let names: &Names = unsafe { segment.words(place) }.map_err(damaged)?;
    names.class.store(class, Ordering::Relaxed);
    names.ends.begin(me, to);
    job.rings().add(place);
    segment.listed(me);
    Ok(place)
}

/// A dead task had been handed out this memory for a ring.
pub(crate) fn list_for_dead(job: &Job, left: Left, task: Peer) {
    let bytes = left.end.saturating_sub(left.start);
    let class = CLASSES
        .iter()
        .position(|one| ring_bytes(*one) as u64 == bytes);
    // SAFETY: atomics only.
    let names: Result<&Names, Corrupt> = unsafe { job.segment().words(left.start) };
    if let (Some(class), Ok(names)) = (class, names) {
        names.class.store(class as u32, Ordering::Relaxed);
        job.rings().add_for_dead(left.start, task);
    }
}

#[cfg(test)]
pub(crate) fn bytes_for_tests(class: usize) -> usize {
    ring_bytes(CLASSES[class])
}

fn damaged(corrupt: Corrupt) -> io::Error {
    io::Error::other(corrupt.what)
}

impl Out {
    /// Longest payload of a frame in this ring. It does not become less.
    pub(crate) fn longest(&self) -> usize {
        match self.wide.is_some() && self.learner.kept() == Footprint::Wide {
            true => WIDE_EAGER,
            false => self.narrow.size as usize / 8,
        }
    }

    /// Has its wide payload buffer been chosen?
    pub(crate) fn is_wide(&self) -> bool {
        self.learner.kept() == Footprint::Wide
    }

    /// Gives the ring a wide payload buffer, unless it has one. It is to be used as its payloads show, or at once.
    #[cold]
    pub(crate) fn widen(&mut self, at_once: bool) {
        if self.wide.is_none() {
            // SAFETY: the segment outlives the ring's memory, where it is.
            let segment = unsafe { self.memory.segment.as_ref() };
            if let Ok(offset) = segment.allocate(WIDE as usize, ALIGN) {
                self.memory.names().wide.store(offset, Ordering::Relaxed);
                self.wide = self.memory.wide().ok().flatten();
            }
        }
        match self.wide.is_some() {
            true if at_once => self.learner.keep_wide(),
            true => {}
            false => self.learner.stay_narrow(),
        }
    }

    /// A job has more tasks than cores: who copies next to whom is anybody's guess.
    pub(crate) fn stay_narrow(&mut self) {
        self.learner.stay_narrow();
    }

    /// The receiver is gone: this task does not write into the ring any more.
    pub(crate) fn let_go(&self) {
        self.memory.let_go(End::Source);
    }

    /// Open a ring from `me` to `to`. `cursor` is where the next search for one that can be used again goes on.
    pub(crate) fn open(
        job: &Job,
        me: Peer,
        to: Peer,
        policy: Policy,
        cursor: &mut u64,
    ) -> io::Result<Out> {
        let segment = job.segment();
        let class = class_of(job, me, to);
        let offset = memory_for(job, class, me, to, cursor)?;
        let (memory, narrow) = Memory::at(segment, offset, class).map_err(damaged)?;
        // SAFETY: atomics only.
        let names: &Names = unsafe { segment.words(offset) }.map_err(damaged)?;
        let slot = job.slot(to);
        slot.inlet.0.opened.push(offset, &names.next_opened);
        let mut learner = Learner::new(WIDE, policy);
        if CLASSES[class as usize].wide == 0 || job.is_crowded() {
            learner.stay_narrow();
        }
        Ok(Out {
            // One that was left with the ring is used again.
            wide: memory.wide().ok().flatten(),
            memory,
            producer: Producer::new(),
            narrow,
            learner,
            bell: NonNull::from(&slot.bell),
            marks: ring_marks::is_marked(class).then(|| NonNull::from(&slot.inlet.0.marks)),
            me,
        })
    }

    /// Tells the receiver that there is something in this ring.
    #[inline(always)]
    fn mark(&self) {
        if let Some(marks) = self.marks {
            // SAFETY: in the segment, which outlives the channel.
            unsafe { marks.as_ref() }.set(self.me);
        }
    }

    /// The receiver's bell.
    #[inline(always)]
    pub(crate) fn bell(&self) -> &Bell {
        // SAFETY: in the segment, which outlives the channel.
        unsafe { self.bell.as_ref() }
    }

    /// Send a frame, or say that there is no room. The payload is at most as long as `longest` has said.
    #[inline(always)]
    pub(crate) fn send(&mut self, frame: Frame, payload: &Views) -> Result<bool, Corrupt> {
        let Some(line) = self.producer.claim(&self.memory)? else {
            return Ok(false);
        };
        let len = payload.len();
        let head = frame.context as u64 | (frame.tag as u32 as u64) << 32;
        let mut header = header(frame.kind, len);
        if len <= INLINE {
            // SAFETY: the line has been claimed: nobody else touches it before it is published.
            unsafe { payload.gather(0, self.memory.inline_bytes(line), len) };
        } else if let Some(flags) = self.put_in_buffer(payload)? {
            header.flags = flags;
        } else {
            return Ok(false);
        }
        // SAFETY: as above; nobody reads word 1 before that.
        unsafe { self.memory.word(line, 1).write(head) };
        self.producer.publish(&self.memory, header);
        self.mark();
        Ok(true)
    }

    /// Copies a payload into the buffer that suits it; the flags of its line, or `None`: there is no room.
    #[inline(always)]
    fn put_in_buffer(&mut self, payload: &Views) -> Result<Option<u8>, Corrupt> {
        let len = payload.len();
        let positions = self.memory.positions();
        let fits = len as u64 <= self.narrow.size / 8;
        let wide = match &mut self.wide {
            Some(wide) if !fits || self.learner.choice() == Footprint::Wide => Some(wide),
            _ => None,
        };
        let (buffer, freed, flags) = match wide {
            Some(wide) => (wide, &positions.freed_wide, IN_WIDE),
            None => (&mut self.narrow, &positions.freed, 0),
        };
        let Some(place) = buffer.claim(len, freed)? else {
            return Ok(None);
        };
        // SAFETY: `place + len` lies in the buffer, and these bytes have been claimed: nobody else touches them before the line is
        // published.
        let to = unsafe { buffer.start.as_ptr().add(place as usize) };
        if len < footprint::SHORTEST {
            // SAFETY: as above.
            unsafe { payload.gather(0, to, len) };
            return Ok(Some(flags));
        }
        let start = if self.learner.is_timing() { ticks() } else { 0 };
        // SAFETY: as above.
        unsafe { payload.gather(0, to, len) };
        if start != 0 && fits {
            self.learner.timed(len, ticks().wrapping_sub(start));
        }
        self.learner.copied(len);
        if self.learner.choice() == Footprint::Wide && self.wide.is_none() {
            self.widen(false);
        }
        Ok(Some(flags))
    }

    /// Tell the receiver that it is spoken to no more, and wake it.
    pub(crate) fn close(&mut self) {
        self.producer.close(&self.memory);
        self.mark();
        self.bell().wake();
    }
}

impl Buffer {
    /// Sender: where the next payload goes, or `None`: there is no room.
    #[inline(always)]
    fn claim(&mut self, len: usize, freed: &AtomicU64) -> Result<Option<u64>, Corrupt> {
        let size = self.size;
        if len as u64 > size / 4 {
            return Ok(None);
        }
        let mut place = self.cursor.claim(len, size);
        if place.is_none() {
            self.cursor.look(freed.load(Ordering::Acquire), size)?;
            place = self.cursor.claim(len, size);
        }
        if place.is_some() {
            self.cursor.advance(len, size);
        }
        Ok(place)
    }

    /// Receiver: copies `keep` of the next payload's `length` bytes out. True: room was made known.
    #[inline(always)]
    fn copy_out(&mut self, length: usize, keep: usize, into: &Views, freed: &AtomicU64) -> bool {
        let place = self.cursor.next(length, self.size) as usize;
        // SAFETY: `place + length` lies in the buffer.
        unsafe { into.scatter(0, self.start.as_ptr().add(place), keep) };
        self.cursor.advance(length, self.size);
        let Some(position) = self.cursor.due(self.size) else {
            return false;
        };
        freed.store(position, Ordering::Release);
        true
    }
}

impl In {
    /// The sender is gone, and all that it sent has been read.
    pub(crate) fn let_go(&self) {
        self.memory.let_go(End::Destination);
    }

    /// The rings others have opened towards `me` since the last look, with their sources. Memory
    /// that makes no sense is passed over: such a ring would have been nobody's.
    pub(crate) fn opened(job: &Job, me: Peer) -> Vec<(Peer, In)> {
        let ring_at = |place| {
            // SAFETY: atomics only.
            let names: &Names = unsafe { job.segment().words(place) }.ok()?;
            let class = names.class.load(Ordering::Relaxed);
            let (memory, narrow) = Memory::at(job.segment(), place, class).ok()?;
            Some(((memory, narrow), &names.next_opened))
        };
        let opened = &job.slot(me).inlet.0.opened;
        let rings = opened.take_all(job.tasks().into(), ring_at);
        let to_me = rings.filter_map(|(_, (memory, narrow))| {
            let source = memory.of.source();
            if source >= job.tasks() || memory.of.destination() != me {
                return None;
            }
            let channel = In {
                memory,
                consumer: Consumer::new(),
                narrow,
                wide: None,
                bell: NonNull::from(&job.slot(source).bell),
            };
            Some((source, channel))
        });
        to_me.collect()
    }

    /// The sender's bell.
    #[inline(always)]
    pub(crate) fn bell(&self) -> &Bell {
        // SAFETY: in the segment, which outlives the channel.
        unsafe { self.bell.as_ref() }
    }

    /// Does its sender mark what it has written to?
    pub(crate) fn is_marked(&self) -> bool {
        ring_marks::is_marked(self.memory.class)
    }

    /// Is there a frame (or damage, which `front` will name)?
    #[inline(always)]
    pub(crate) fn has_line(&self) -> bool {
        !matches!(self.consumer.peek(&self.memory), Ok(None))
    }

    /// The oldest frame.
    #[inline(always)]
    pub(crate) fn front(&mut self) -> Result<Option<Arrival>, Corrupt> {
        let Some((line, header)) = self.consumer.peek(&self.memory)? else {
            return Ok(None);
        };
        let Some(kind) = Kind::from_byte(header.kind) else {
            return Err(Corrupt {
                what: "a ring line holds a frame of unknown kind",
            });
        };
        if header.flags & IN_WIDE != 0 && self.wide.is_none() {
            self.wide = self.memory.wide()?;
        }
        if header.length as usize > self.most(header) {
            return Err(Corrupt {
                what: "a ring line claims a payload longer than a ring may carry",
            });
        }
        // SAFETY: word 1 of a line inside the segment; written before the header was published.
        let head = unsafe { self.memory.word(line, 1).read() };
        Ok(Some(Arrival {
            frame: Frame {
                kind,
                context: head as u32,
                tag: (head >> 32) as i32,
            },
            length: header.length as usize,
        }))
    }

    /// Longest payload that a line with this header may have. None but one of its own, while a wide buffer is not known.
    #[inline(always)]
    fn most(&self, header: Header) -> usize {
        match header.flags & IN_WIDE != 0 {
            false => self.narrow.size as usize / 4,
            true if self.wide.is_some() => WIDE_EAGER,
            true => INLINE,
        }
    }

    /// If the front frame is an eager message with this context and tag and at most `into.len()`
    /// bytes: copy it out and be done with it. Its length, and whether room was made known.
    #[inline(always)]
    pub(crate) fn accept_matching(
        &mut self,
        context: u32,
        tag: i32,
        into: &Views,
    ) -> Option<(usize, bool)> {
        let (line, header) = self.consumer.peek(&self.memory).ok()??;
        let length = header.length as usize;
        let wanted = context as u64 | (tag as u32 as u64) << 32;
        // SAFETY: word 1 of a line inside the segment; written before the header was published.
        let head = unsafe { self.memory.word(line, 1).read() };
        if header.kind != Kind::Eager as u8
            || head != wanted
            || length > into.len()
            || length > self.most(header)
        {
            return None;
        }
        let room = self.copy_out(line, header, length, length, into);
        Some((length, self.consumer.take(&self.memory) | room))
    }

    /// Copy `keep` of a payload's `length` bytes, at most [`In::most`]; true: room in a buffer was made known.
    #[inline(always)]
    fn copy_out(
        &mut self,
        line: u32,
        header: Header,
        length: usize,
        keep: usize,
        into: &Views,
    ) -> bool {
        if length <= INLINE {
            // SAFETY: at most `INLINE` bytes of a line inside the segment.
            unsafe { into.scatter(0, self.memory.inline_bytes(line), keep) };
            return false;
        }
        let positions = self.memory.positions();
        match &mut self.wide {
            Some(wide) if header.flags & IN_WIDE != 0 => {
                wide.copy_out(length, keep, into, &positions.freed_wide)
            }
            _ => self.narrow.copy_out(length, keep, into, &positions.freed),
        }
    }

    /// Copy the front frame's payload out and be done with it. True: room was made known.
    #[inline(always)]
    pub(crate) fn accept(&mut self, into: &Views) -> bool {
        let Ok(Some((line, header))) = self.consumer.peek(&self.memory) else {
            return false;
        };
        // The header is read again, and may have been changed meanwhile: bounded again.
        let length = (header.length as usize).min(self.most(header));
        let keep = length.min(into.len());
        let room = self.copy_out(line, header, length, keep, into);
        self.consumer.take(&self.memory) | room
    }
}

#[cfg(test)]
mod tests;
