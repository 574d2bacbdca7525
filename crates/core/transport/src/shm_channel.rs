//! A shared-memory channel: a ring and its payload buffer, as its sender ([`Out`]) and as its receiver ([`In`]).
//!
//! A ring is opened by the sender the first time it talks to a peer: it allocates the ring in the
//! segment and pushes it onto the receiver's list of opened rings, which the receiver looks at
//! when it looks for messages. Layout of a ring's memory:
//!
//! ```text
//! 0    ends (16) | next opened ring (8) | class (4)
//! 64   lines read (4) | pad | buffer bytes freed (8)         written by the receiver
//! 128  lines, 64 bytes each (see regatta_memory::ring)
//! ...  payload buffer (see regatta_memory::payload_buffer)
//! ```

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
use regatta_memory::views::Views;
use regatta_memory::{Corrupt, LINE};
use regatta_wire::{Frame, Kind};

use crate::job::{CLASSES, Geometry, Job, class_for};
use crate::left;
use crate::ring_marks::{self, Marks};

/// Bytes of segment between the start of a ring and its lines.
const RING_CONTROL: usize = 2 * LINE;

/// First line of a ring's memory.
#[repr(C, align(64))]
struct Names {
    /// The tasks that use it. A ring is used again when both are done with it or gone.
    ends: Ends,
    next_opened: Link,
    /// Which of the geometries it has, for good.
    class: AtomicU32,
}

/// For the test that holds it to the version.
#[cfg(test)]
pub(crate) const NAMES_LAYOUT: regatta_memory::layout::Layout =
    regatta_memory::layout!("ring", Names { ends, next_opened, class } RING_CONTROL ALIGN);

/// Second line, written by the receiver.
#[repr(C, align(64))]
struct Positions {
    read: AtomicU32,
    freed: AtomicU64,
}

/// For the test that holds it to the version.
#[cfg(test)]
pub(crate) const POSITIONS_LAYOUT: regatta_memory::layout::Layout =
    regatta_memory::layout!("ring's positions", Positions { read, freed } INLINE WORDS);

/// A ring's memory, mapped.
#[derive(Debug)]
struct Memory {
    positions: NonNull<Positions>,
    lines: NonNull<u64>,
    count: u32,
    buffer: NonNull<u8>,
    buffer_size: u64,
    class: u32,
    names: NonNull<Names>,
    /// The use for which this end was made.
    of: Use,
}

/// Rings begin on pages.
const ALIGN: usize = 4096;

// SAFETY: pointers into a segment that outlives the channel; the ring protocol orders all access.
unsafe impl Send for Memory {}

fn footprint(geometry: Geometry) -> usize {
    RING_CONTROL + geometry.lines as usize * LINE + geometry.payload_buffer as usize
}

impl Memory {
    fn at(segment: &Segment, offset: u64, class: u32) -> Result<Memory, Corrupt> {
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
        let start = segment.at(offset, footprint(geometry))?;
        let lines = geometry.lines as usize * LINE;
        let names: NonNull<Names> = start.cast();
        // SAFETY: all inside the footprint checked above; the names are atomics.
        unsafe {
            Ok(Memory {
                positions: start.add(LINE).cast(),
                lines: start.add(RING_CONTROL).cast(),
                count: geometry.lines,
                buffer: start.add(RING_CONTROL + lines),
                buffer_size: geometry.payload_buffer as u64,
                class,
                names,
                of: names.as_ref().ends.present().ok_or(UNUSED)?,
            })
        }
    }

    /// This end does not touch the ring any more. The other one may.
    fn let_go(&self, end: End) {
        // SAFETY: atomics inside the segment.
        unsafe { self.names.as_ref() }.ends.finish(self.of, end);
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

/// Reads a line's header.
#[inline(always)]
fn header(kind: Kind, length: usize) -> Header {
    Header {
        kind: kind as u8,
        flags: 0,
        length: length as u32,
    }
}

/// The sender's end.
#[derive(Debug)]
pub(crate) struct Out {
    memory: Memory,
    producer: Producer,
    buffer: Cursor,
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
    buffer: Cursor,
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
        let start = segment.at(place, footprint(geometry)).ok()?;
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
    let place = segment.allocate_for(maker, footprint(geometry), ALIGN)?;
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
        .position(|one| footprint(*one) as u64 == bytes);
    // SAFETY: atomics only.
    let names: Result<&Names, Corrupt> = unsafe { job.segment().words(left.start) };
    if let (Some(class), Ok(names)) = (class, names) {
        names.class.store(class as u32, Ordering::Relaxed);
        job.rings().add_for_dead(left.start, task);
    }
}

#[cfg(test)]
pub(crate) fn bytes_for_tests(class: usize) -> usize {
    footprint(CLASSES[class])
}

fn damaged(corrupt: Corrupt) -> io::Error {
    io::Error::other(corrupt.what)
}

impl Out {
    /// Longest payload of a frame in this ring.
    pub(crate) fn longest(&self) -> usize {
        self.memory.buffer_size as usize / 8
    }

    /// The receiver is gone: this task does not write into the ring any more.
    pub(crate) fn let_go(&self) {
        self.memory.let_go(End::Source);
    }

    /// Open a ring from `me` to `to`. `cursor` is where the next search for one that can be used again goes on.
    pub(crate) fn open(job: &Job, me: Peer, to: Peer, cursor: &mut u64) -> io::Result<Out> {
        let segment = job.segment();
        let class = class_of(job, me, to);
        let offset = memory_for(job, class, me, to, cursor)?;
        let memory = Memory::at(segment, offset, class).map_err(damaged)?;
        // SAFETY: atomics only.
        let names: &Names = unsafe { segment.words(offset) }.map_err(damaged)?;
        let slot = job.slot(to);
        slot.inlet.0.opened.push(offset, &names.next_opened);
        Ok(Out {
            memory,
            producer: Producer::new(),
            buffer: Cursor::default(),
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

    /// Send a frame, or say that there is no room. The payload is at most an eighth of the buffer.
    #[inline(always)]
    pub(crate) fn send(&mut self, frame: Frame, payload: &Views) -> Result<bool, Corrupt> {
        let memory = &self.memory;
        let Some(line) = self.producer.claim(memory)? else {
            return Ok(false);
        };
        let len = payload.len();
        let to = if len <= INLINE {
            memory.inline_bytes(line)
        } else {
            let Some(place) = self.place_in_buffer(len)? else {
                return Ok(false);
            };
            // SAFETY: `place + len` lies in the buffer.
            unsafe { self.memory.buffer.as_ptr().add(place as usize) }
        };
        let memory = &self.memory;
        let head = frame.context as u64 | (frame.tag as u32 as u64) << 32;
        // SAFETY: the line has been claimed (and the bytes in the buffer with it): nobody else touches
        // either before it is published, and nobody else reads word 1 non-atomically.
        unsafe {
            payload.gather(0, to, len);
            memory.word(line, 1).write(head);
        }
        self.producer.publish(memory, header(frame.kind, len));
        self.mark();
        Ok(true)
    }

    /// Tell the receiver that it is spoken to no more, and wake it.
    pub(crate) fn close(&mut self) {
        self.producer.close(&self.memory);
        self.mark();
        self.bell().wake();
    }

    #[inline(always)]
    fn place_in_buffer(&mut self, len: usize) -> Result<Option<u64>, Corrupt> {
        let size = self.memory.buffer_size;
        if len as u64 > size / 4 {
            return Ok(None);
        }
        let mut place = self.buffer.claim(len, size);
        if place.is_none() {
            let freed = self.memory.positions().freed.load(Ordering::Acquire);
            self.buffer.look(freed, size)?;
            place = self.buffer.claim(len, size);
        }
        if place.is_some() {
            self.buffer.advance(len, size);
        }
        Ok(place)
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
            let memory = Memory::at(job.segment(), place, class).ok()?;
            Some((memory, &names.next_opened))
        };
        let opened = &job.slot(me).inlet.0.opened;
        let rings = opened.take_all(job.tasks().into(), ring_at);
        let to_me = rings.filter_map(|(_, memory)| {
            let source = memory.of.source();
            if source >= job.tasks() || memory.of.destination() != me {
                return None;
            }
            let channel = In {
                memory,
                consumer: Consumer::new(),
                buffer: Cursor::default(),
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
    pub(crate) fn front(&self) -> Result<Option<Arrival>, Corrupt> {
        let Some((line, header)) = self.consumer.peek(&self.memory)? else {
            return Ok(None);
        };
        let Some(kind) = Kind::from_byte(header.kind) else {
            return Err(Corrupt {
                what: "a ring line holds a frame of unknown kind",
            });
        };
        if header.length as u64 > self.memory.buffer_size / 4 {
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
            || length as u64 > self.memory.buffer_size / 4
        {
            return None;
        }
        let room = self.copy_out(line, length, length, into);
        Some((length, self.consumer.take(&self.memory) | room))
    }

    /// Copy `keep` of a payload's `length` bytes; true: room in the buffer was made known.
    #[inline(always)]
    fn copy_out(&mut self, line: u32, length: usize, keep: usize, into: &Views) -> bool {
        if length <= INLINE {
            // SAFETY: at most `INLINE` bytes of a line inside the segment.
            unsafe { into.scatter(0, self.memory.inline_bytes(line), keep) };
            return false;
        }
        let size = self.memory.buffer_size;
        let place = self.buffer.next(length, size) as usize;
        // SAFETY: `place + length` lies in the buffer.
        unsafe { into.scatter(0, self.memory.buffer.as_ptr().add(place), keep) };
        self.buffer.advance(length, size);
        let Some(freed) = self.buffer.due(size) else {
            return false;
        };
        self.memory
            .positions()
            .freed
            .store(freed, Ordering::Release);
        true
    }

    /// Copy the front frame's payload out and be done with it. True: room was made known.
    #[inline(always)]
    pub(crate) fn accept(&mut self, into: &Views) -> bool {
        let Ok(Some((line, header))) = self.consumer.peek(&self.memory) else {
            return false;
        };
        // The length is read again, and may have been changed meanwhile: bounded again.
        let size = self.memory.buffer_size;
        let length = (header.length as usize).min(size as usize / 4);
        let keep = length.min(into.len());
        let room = self.copy_out(line, length, keep, into);
        self.consumer.take(&self.memory) | room
    }
}

#[cfg(test)]
mod tests;
