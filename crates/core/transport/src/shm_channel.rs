//! A shared-memory channel: a ring and its payload buffers, seen by its sender ([`Out`]) and by its receiver
//! ([`In`]).

use std::io;
use std::ops::RangeInclusive;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use regatta_engine::{Arrival, Peer, Polled};
use regatta_memory::Corrupt;
use regatta_memory::bell::Bell;
use regatta_memory::copy::copy_line;
use regatta_memory::ends::End;
use regatta_memory::payload_buffer::Cursor;
use regatta_memory::prefetch::prefetch_to_write;
use regatta_memory::ring::{Consumer, Header, INLINE, Producer};
use regatta_memory::ticks::{cost_of_kib, ticks};
use regatta_memory::views::Views;
use regatta_wire::{Frame, Kind};

use crate::by_length::ByLength;
use crate::footprint::{self, Footprint, Policy};
use regatta_segment::job::Job;
use regatta_segment::ring_marks::Marks;
use regatta_segment::ring_memory::{
    AT_FRONT, IN_WIDE, PayloadBuffer, RingMemory, TIMED, WIDE, WIDE_EAGER, WITH_POSITION,
};

/// Sizes in bytes of payloads for which a waiting task prefetches the memory of the next one. For shorter ones a
/// prefetch does not pay. Longer ones are copied by the string instruction, which takes 1.3 times as long if the
/// lines are already in the cache.
const ASKED_FOR: RangeInclusive<usize> = 512..=2048;

/// Returns a line's header, without flags.
#[inline(always)]
fn header(kind: Kind, length: usize) -> Header {
    Header {
        kind: kind as u8,
        flags: 0,
        length: length as u32,
    }
}

/// A payload buffer, and the position of this end in it.
#[derive(Debug)]
struct Buffer {
    memory: PayloadBuffer,
    cursor: Cursor,
}

/// The sender's end.
#[derive(Debug)]
pub(crate) struct Out {
    memory: RingMemory,
    producer: Producer,
    narrow: Buffer,
    wide: Option<Buffer>,
    /// The choice of the footprint, for payloads that fit into both buffers.
    learners: ByLength,
    bell: NonNull<Bell>,
    /// Size in bytes of the last payload put into a buffer, if prefetching the next one pays ([`Out::prepare`]);
    /// otherwise 0.
    last: usize,
    /// Read position in the narrow buffer of the opposite ring that this task last reported to the receiver.
    said: u64,
    /// Count of copies that the receiver had timed when this task last read the cost.
    costs: u32,
    /// The receiver's marks, if this ring is marked. `me` is the sender whose bit this task sets.
    marks: Option<NonNull<Marks>>,
    me: Peer,
}

/// The receiver's end.
#[derive(Debug)]
pub(crate) struct In {
    memory: RingMemory,
    consumer: Consumer,
    narrow: Buffer,
    /// The wide buffer. It is unknown until the first payload in it arrives.
    wide: Option<Buffer>,
    /// The sender's bell. The sender sleeps on it when there is no room.
    bell: NonNull<Bell>,
    /// The sender's read position in the narrow buffer of the opposite ring, from its last line with a position.
    heard: u64,
    /// Count of copies that this task has timed.
    costs: u32,
}

/// Read positions in the narrow buffers of a pair's two rings: `mine` of this task, and `heard` of the other task as
/// it last reported it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Positions {
    mine: u64,
    heard: u64,
}

// SAFETY: the pointers lead into a segment that outlives the channel; the ring protocol orders all accesses, and
// bells are atomics.
unsafe impl Send for Out {}
// SAFETY: the pointers lead into a segment that outlives the channel; the ring protocol orders all accesses, and
// bells are atomics.
unsafe impl Send for In {}

impl Out {
    /// Returns the maximum size in bytes of a payload in this ring.
    pub(crate) fn longest(&self) -> usize {
        match self.wide.is_some() && self.is_wide() {
            true => WIDE_EAGER,
            false => self.narrow.longest(),
        }
    }

    /// Returns whether the wide payload buffer is in use.
    pub(crate) fn is_wide(&self) -> bool {
        self.learners.long.kept() == Footprint::Wide
    }

    /// Gives the ring a wide payload buffer, unless it has one. If `at_once`, the buffer is used from now on;
    /// otherwise its use depends on the measured costs.
    #[cold]
    pub(crate) fn widen(&mut self, at_once: bool) {
        if self.wide.is_none() {
            self.wide = self.memory.widen().map(Buffer::new);
        }
        match self.wide.is_some() {
            true if at_once => self.learners.long.keep_wide(),
            true => {}
            false => self.learners.stay_narrow(),
        }
    }

    /// Keeps to the narrow buffer for good: in a job with more tasks than cores, tasks move between cores.
    pub(crate) fn stay_narrow(&mut self) {
        self.learners.stay_narrow();
    }

    /// Ends this end's use of the ring, because the receiver is gone. This task must not write into the ring
    /// afterwards.
    pub(crate) fn let_go(&self) {
        self.memory.let_go(End::Source);
    }

    /// Opens a ring from `me` to `to`. `cursor` is the position at which the search for a reusable ring resumes.
    pub(crate) fn open(
        job: &Job,
        me: Peer,
        to: Peer,
        policy: Policy,
        cursor: &mut u64,
    ) -> io::Result<Out> {
        let memory = RingMemory::open(job, me, to, cursor)?;
        let mut learners = ByLength::new(footprint::MAX_SHORT_BYTES, [WIDE; 2], policy);
        if !memory.may_be_wide() || job.is_crowded() {
            learners.stay_narrow();
        }
        Ok(Out {
            marks: memory.is_marked().then(|| NonNull::from(job.marks(to))),
            narrow: Buffer::new(memory.narrow()),
            // A wide buffer that was left with the ring is reused.
            wide: memory.wide().ok().flatten().map(Buffer::new),
            learners,
            memory,
            producer: Producer::new(),
            bell: NonNull::from(job.bell(to)),
            last: 0,
            said: 0,
            costs: 0,
            me,
        })
    }

    /// Sets the receiver's mark for this ring, if the ring is marked.
    #[inline(always)]
    fn mark(&self) {
        if let Some(marks) = self.marks {
            // SAFETY: the marks are in the segment, which outlives the channel.
            unsafe { marks.as_ref() }.set(self.me);
        }
    }

    /// Returns the receiver's bell.
    #[inline(always)]
    pub(crate) fn bell(&self) -> &Bell {
        // SAFETY: the bell is in the segment, which outlives the channel.
        unsafe { self.bell.as_ref() }
    }

    /// Sends a frame. Returns false if there is no room. The payload must not be longer than [`Out::longest`].
    /// `positions` is called only if the payload does not fit into the line.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        frame: Frame,
        payload: &Views,
        positions: impl FnOnce() -> Positions,
    ) -> Result<bool, Corrupt> {
        let Some(line) = self.producer.claim(&self.memory)? else {
            return Ok(false);
        };
        let len = payload.len();
        let head = frame.context as u64 | (frame.tag as u32 as u64) << 32;
        let mut header = header(frame.kind, len);
        if len <= INLINE {
            // SAFETY: the line has been claimed, so no other task accesses it before it is published.
            unsafe { payload.gather(0, self.memory.inline_bytes(line), len) };
        } else {
            let Positions { mine, heard } = positions();
            self.narrow.cursor.hear(heard)?;
            let Some(flags) = self.put_in_buffer(payload)? else {
                return Ok(false);
            };
            header.flags = flags;
            // With one-way traffic there is no new position to report, and the store would queue behind those of the
            // payload.
            if mine != self.said {
                self.said = mine;
                header.flags |= WITH_POSITION;
                // SAFETY: the line has been claimed, so no other task accesses it before it is published.
                unsafe { self.memory.word(line, 2).write(mine) };
            }
        }
        // SAFETY: the line has been claimed; the receiver does not read word 1 before it is published.
        unsafe { self.memory.word(line, 1).write(head) };
        self.producer.publish(&self.memory, header);
        self.mark();
        Ok(true)
    }

    /// Sends an eager frame in one line. Returns false if the payload does not fit into a line, or if it is not known
    /// that there is room.
    #[inline(always)]
    pub(crate) fn send_line(&mut self, context: u32, tag: i32, payload: &Views) -> bool {
        let Views::Block(from, length @ ..=INLINE) = *payload else {
            return false;
        };
        let Some(line) = self.producer.claim_known(&self.memory) else {
            return false;
        };
        // SAFETY: `from` is a block of `length` bytes; the line has been claimed, so no other task accesses it before
        // it is published.
        unsafe {
            let head = context as u64 | (tag as u32 as u64) << 32;
            self.memory.word(line, 1).write(head);
            copy_line(from, self.memory.inline_bytes(line), length);
        }
        self.producer
            .publish(&self.memory, header(Kind::Eager, length));
        self.mark();
        true
    }

    /// Prefetches the memory of the next message, on the assumption that it will be as long as the last one.
    #[inline(always)]
    pub(crate) fn prepare(&mut self) {
        let len = self.last;
        if len == 0 {
            return;
        }
        self.last = 0;
        let fits = len <= self.narrow.longest();
        let buffer = match &self.wide {
            Some(wide) if !fits || self.learners.choice(len) == Footprint::Wide => wide,
            _ if fits => &self.narrow,
            _ => return,
        };
        let place = buffer.cursor.next(len, buffer.memory.size) as usize;
        prefetch_to_write(buffer.memory.start.as_ptr().wrapping_add(place), len);
    }

    /// Copies a payload into the buffer that suits it. Returns the flags of its line, or `None` if there is no room.
    #[inline(always)]
    fn put_in_buffer(&mut self, payload: &Views) -> Result<Option<u8>, Corrupt> {
        let len = payload.len();
        let fits = len <= self.narrow.longest();
        let choice = self.learners.choice(len);
        // Short messages to a task that answers are fastest from the front of the narrow buffer, whatever is best for
        // one-way traffic.
        let to_front = len <= footprint::MAX_SHORT_BYTES && self.narrow.cursor.has_heard();
        let footprint = match choice {
            Footprint::Wide if to_front => Footprint::Narrow,
            choice => choice,
        };
        let wide = match &mut self.wide {
            Some(wide) if !fits || footprint == Footprint::Wide => Some(wide),
            _ => None,
        };
        let (buffer, flags) = match wide {
            Some(wide) => (wide, IN_WIDE),
            None => {
                let narrow = &mut self.narrow;
                let front = narrow.cursor.rewind(len, narrow.memory.size);
                (narrow, if front { AT_FRONT } else { 0 })
            }
        };
        // No prefetch for a sender that starts at the front: it will do so again, and the receiver is reading those
        // lines now.
        let non_temporal = footprint == Footprint::NonTemporal;
        if ASKED_FOR.contains(&len) && flags & AT_FRONT == 0 && !non_temporal {
            self.last = len;
        }
        let freed = self.memory.freed(flags == IN_WIDE);
        let Some(place) = buffer.claim(len, freed)? else {
            return Ok(None);
        };
        // SAFETY: `place + len` is in the buffer, and these bytes have been claimed, so no other task accesses them
        // before the line is published.
        let to = unsafe { buffer.memory.start.as_ptr().add(place as usize) };
        if len < footprint::MIN_TIMED_BYTES {
            // SAFETY: `to` is valid for the `len` claimed bytes.
            unsafe { payload.gather(0, to, len) };
            return Ok(Some(flags));
        }
        // SAFETY: `to` is valid for the `len` claimed bytes.
        let copy = || unsafe {
            match non_temporal {
                true => payload.gather_non_temporal(0, to, len),
                false => payload.gather(0, to, len),
            }
        };
        let timed = fits && footprint == choice && self.learners.of(len).is_timing();
        if timed {
            let start = ticks();
            copy();
            self.copy_was_timed(len, ticks().wrapping_sub(start));
        } else {
            copy();
        }
        self.learners.of(len).copied(len);
        if self.learners.choice(len) == Footprint::Wide && self.wide.is_none() {
            self.widen(false);
        }
        Ok(Some(flags | if timed { TIMED } else { 0 }))
    }

    /// Records the cost of storing a payload of `len` bytes, and the receiver's latest cost if it is new.
    #[cold]
    fn copy_was_timed(&mut self, len: usize, ticks: u64) {
        let told = self.memory.cost().load(Ordering::Relaxed);
        let (costs, cost) = ((told >> 32) as u32, told as u32);
        if costs != self.costs {
            self.costs = costs;
            self.learners.of(len).read(cost as u64);
        }
        self.learners.of(len).timed(len, ticks);
    }

    /// Notifies the receiver that nothing more will be sent, and wakes it.
    pub(crate) fn close(&mut self) {
        self.producer.close(&self.memory);
        self.mark();
        self.bell().wake();
    }
}

impl Buffer {
    fn new(memory: PayloadBuffer) -> Buffer {
        Buffer {
            memory,
            cursor: Cursor::default(),
        }
    }

    /// Returns the maximum length of a payload: a quarter of the buffer, so that a payload at the end does not block
    /// all others.
    #[inline(always)]
    fn longest(&self) -> usize {
        self.memory.size as usize / 4
    }

    /// Claims room for a payload in the sender's end. Returns its offset, or `None` if there is no room.
    #[inline(always)]
    fn claim(&mut self, len: usize, freed: &AtomicU64) -> Result<Option<u64>, Corrupt> {
        let size = self.memory.size;
        if len > self.longest() {
            return Ok(None);
        }
        let mut place = self.cursor.claim(len, size);
        if place.is_none() {
            self.cursor.look(freed.load(Ordering::Acquire))?;
            place = self.cursor.claim(len, size);
        }
        if place.is_some() {
            self.cursor.advance(len, size);
        }
        Ok(place)
    }

    /// Copies `keep` of the next payload's `length` bytes out, in the receiver's end. Returns whether it published
    /// new room.
    #[inline(always)]
    fn copy_out(&mut self, length: usize, keep: usize, into: &Views, freed: &AtomicU64) -> bool {
        let size = self.memory.size;
        let place = self.cursor.next(length, size) as usize;
        // SAFETY: `place + length` is in the buffer.
        unsafe { into.scatter(0, self.memory.start.as_ptr().add(place), keep) };
        self.cursor.advance(length, size);
        let Some(position) = self.cursor.due(size) else {
            return false;
        };
        freed.store(position, Ordering::Release);
        true
    }
}

impl In {
    /// Ends this end's use of the ring. The sender must be gone, and all that it sent read.
    pub(crate) fn let_go(&self) {
        self.memory.let_go(End::Destination);
    }

    /// Returns the rings that other tasks have opened towards `me` since the last call, with their sources.
    pub(crate) fn opened(job: &Job, me: Peer) -> Vec<(Peer, In)> {
        let rings = RingMemory::opened(job, me).into_iter();
        let channel = |memory: RingMemory| {
            let source = memory.source();
            let channel = In {
                narrow: Buffer::new(memory.narrow()),
                wide: None,
                memory,
                consumer: Consumer::new(),
                bell: NonNull::from(job.bell(source)),
                heard: 0,
                costs: 0,
            };
            (source, channel)
        };
        rings.map(channel).collect()
    }

    /// Returns the sender's bell.
    #[inline(always)]
    pub(crate) fn bell(&self) -> &Bell {
        // SAFETY: the bell is in the segment, which outlives the channel.
        unsafe { self.bell.as_ref() }
    }

    /// Returns the positions for lines of the opposite ring.
    #[inline(always)]
    pub(crate) fn positions(&self) -> Positions {
        Positions {
            mine: self.narrow.cursor.position(),
            heard: self.heard,
        }
    }

    /// Returns whether the sender sets a mark when it writes to the ring.
    pub(crate) fn is_marked(&self) -> bool {
        self.memory.is_marked()
    }

    /// Returns whether there is a frame, or damage, which `front` will report.
    #[inline(always)]
    pub(crate) fn has_line(&self) -> bool {
        !matches!(self.consumer.peek(&self.memory), Ok(None))
    }

    /// Returns the oldest frame, or `None` if the ring is empty. Fails if the ring is damaged.
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
            self.wide = self.memory.wide()?.map(Buffer::new);
        }
        if header.length as usize > self.most(header) {
            return Err(Corrupt {
                what: "a ring line claims a payload longer than a ring may carry",
            });
        }
        // SAFETY: word 1 is in a line inside the segment; it was written before the header was published.
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

    /// Returns the maximum length of a payload in a line with this header. If the payload is in a wide buffer that is
    /// unknown, it is `INLINE`.
    #[inline(always)]
    fn most(&self, header: Header) -> usize {
        match header.flags & IN_WIDE != 0 {
            false => self.narrow.longest(),
            true if self.wide.is_some() => WIDE_EAGER,
            true => INLINE,
        }
    }

    /// Polls the front frame once. If it is an eager message with this context and tag and at most `into.len()`
    /// bytes, copies it out and releases it. Also returns whether it published new room.
    #[inline(always)]
    pub(crate) fn poll_matching(&mut self, context: u32, tag: i32, into: &Views) -> (Polled, bool) {
        let (line, header) = match self.consumer.peek(&self.memory) {
            Ok(Some(found)) => found,
            Ok(None) => return (Polled::Nothing, false),
            Err(_) => return (Polled::Other, false),
        };
        let length = header.length as usize;
        let wanted = context as u64 | (tag as u32 as u64) << 32;
        // SAFETY: word 1 is in a line inside the segment; it was written before the header was published.
        let head = unsafe { self.memory.word(line, 1).read() };
        if header.kind != Kind::Eager as u8 || head != wanted {
            return (Polled::Other, false);
        }
        if let Views::Block(to, room) = *into
            && length <= INLINE
            && length <= room
        {
            // SAFETY: `to` has room for `length` bytes, and `length` is at most `INLINE`, the bytes of a line inside
            // the segment.
            unsafe { copy_line(self.memory.inline_bytes(line), to, length) };
            return (Polled::Received(length), self.consumer.take(&self.memory));
        }
        if length > into.len() || length > self.most(header) {
            return (Polled::Other, false);
        }
        let room = self.copy_out(line, header, length, length, into);
        let made = self.consumer.take(&self.memory) | room;
        (Polled::Received(length), made)
    }

    /// Copies out `keep` of a payload's `length` bytes, where `length` is at most [`In::most`]. Returns whether it
    /// published new room in a buffer.
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
            // SAFETY: `keep` is at most `INLINE`, the bytes of a line inside the segment.
            unsafe { into.scatter(0, self.memory.inline_bytes(line), keep) };
            return false;
        }
        if header.flags & WITH_POSITION != 0 {
            // SAFETY: the word is in a line inside the segment; it was written before the header was published.
            self.heard = unsafe { self.memory.word(line, 2).read() };
        }
        if header.flags & AT_FRONT != 0 {
            let size = self.narrow.memory.size;
            self.narrow.cursor.follow(size);
        }
        if header.flags & TIMED != 0 {
            return self.time_copy_out(header, length, keep, into);
        }
        self.copy_out_of_buffer(header, length, keep, into)
    }

    #[inline(always)]
    fn copy_out_of_buffer(
        &mut self,
        header: Header,
        length: usize,
        keep: usize,
        into: &Views,
    ) -> bool {
        match &mut self.wide {
            Some(wide) if header.flags & IN_WIDE != 0 => {
                wide.copy_out(length, keep, into, self.memory.freed(true))
            }
            _ => self
                .narrow
                .copy_out(length, keep, into, self.memory.freed(false)),
        }
    }

    /// Copies a payload out of its buffer, and publishes the cost to the sender, which requested it. Returns whether
    /// it published new room.
    #[cold]
    fn time_copy_out(&mut self, header: Header, length: usize, keep: usize, into: &Views) -> bool {
        let start = ticks();
        let room = self.copy_out_of_buffer(header, length, keep, into);
        let cost = cost_of_kib(length, ticks().wrapping_sub(start));
        self.costs = self.costs.wrapping_add(1);
        let told = (self.costs as u64) << 32 | cost.min(u32::MAX as u64);
        self.memory.cost().store(told, Ordering::Relaxed);
        room
    }

    /// Copies the front frame's payload out and releases it. Returns whether it published new room.
    #[inline(always)]
    pub(crate) fn accept(&mut self, into: &Views) -> bool {
        let Ok(Some((line, header))) = self.consumer.peek(&self.memory) else {
            return false;
        };
        // The header is read again, and the other task may have changed it meanwhile, so its length is bounded again.
        let length = (header.length as usize).min(self.most(header));
        let keep = length.min(into.len());
        let room = self.copy_out(line, header, length, keep, into);
        self.consumer.take(&self.memory) | room
    }
}

#[cfg(test)]
mod tests;
