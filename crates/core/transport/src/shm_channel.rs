//! A shared-memory channel: a ring and its payload buffer, as its sender ([`Out`]) and as its receiver ([`In`]).

use std::io;
use std::ptr::NonNull;

use regatta_engine::{Arrival, Peer};
use regatta_memory::Corrupt;
use regatta_memory::bell::Bell;
use regatta_memory::ends::End;
use regatta_memory::payload_buffer::Cursor;
use regatta_memory::ring::{Consumer, Header, INLINE, Producer};
use regatta_memory::views::Views;
use regatta_wire::{Frame, Kind};

use regatta_segment::job::Job;
use regatta_segment::ring_marks::Marks;
use regatta_segment::ring_memory::RingMemory;

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
    memory: RingMemory,
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
    memory: RingMemory,
    consumer: Consumer,
    buffer: Cursor,
    /// The sender's bell, for when it sleeps for want of room.
    bell: NonNull<Bell>,
}

// SAFETY: as for `RingMemory`; bells are atomics in the same segment.
unsafe impl Send for Out {}
// SAFETY: as above.
unsafe impl Send for In {}

impl Out {
    /// Longest payload of a frame in this ring.
    pub(crate) fn longest(&self) -> usize {
        self.memory.buffer_size() as usize / 8
    }

    /// The receiver is gone: this task does not write into the ring any more.
    pub(crate) fn let_go(&self) {
        self.memory.let_go(End::Source);
    }

    /// Open a ring from `me` to `to`. `cursor` is where the next search for one that can be used again goes on.
    pub(crate) fn open(job: &Job, me: Peer, to: Peer, cursor: &mut u64) -> io::Result<Out> {
        let memory = RingMemory::open(job, me, to, cursor)?;
        Ok(Out {
            marks: memory.is_marked().then(|| NonNull::from(job.marks(to))),
            memory,
            producer: Producer::new(),
            buffer: Cursor::default(),
            bell: NonNull::from(job.bell(to)),
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
            unsafe { self.memory.buffer().add(place as usize) }
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
        let size = self.memory.buffer_size();
        if len as u64 > size / 4 {
            return Ok(None);
        }
        let mut place = self.buffer.claim(len, size);
        if place.is_none() {
            self.buffer.look(self.memory.freed(), size)?;
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

    /// The rings others have opened towards `me` since the last look, with their sources.
    pub(crate) fn opened(job: &Job, me: Peer) -> Vec<(Peer, In)> {
        let rings = RingMemory::opened(job, me).into_iter();
        let channel = |memory: RingMemory| {
            let source = memory.source();
            let channel = In {
                memory,
                consumer: Consumer::new(),
                buffer: Cursor::default(),
                bell: NonNull::from(job.bell(source)),
            };
            (source, channel)
        };
        rings.map(channel).collect()
    }

    /// The sender's bell.
    #[inline(always)]
    pub(crate) fn bell(&self) -> &Bell {
        // SAFETY: in the segment, which outlives the channel.
        unsafe { self.bell.as_ref() }
    }

    /// Does its sender mark what it has written to?
    pub(crate) fn is_marked(&self) -> bool {
        self.memory.is_marked()
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
        if header.length as u64 > self.memory.buffer_size() / 4 {
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
            || length as u64 > self.memory.buffer_size() / 4
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
        let size = self.memory.buffer_size();
        let place = self.buffer.next(length, size) as usize;
        // SAFETY: `place + length` lies in the buffer.
        unsafe { into.scatter(0, self.memory.buffer().add(place), keep) };
        self.buffer.advance(length, size);
        let Some(freed) = self.buffer.due(size) else {
            return false;
        };
        self.memory.publish_freed(freed);
        true
    }

    /// Copy the front frame's payload out and be done with it. True: room was made known.
    #[inline(always)]
    pub(crate) fn accept(&mut self, into: &Views) -> bool {
        let Ok(Some((line, header))) = self.consumer.peek(&self.memory) else {
            return false;
        };
        // The length is read again, and may have been changed meanwhile: bounded again.
        let size = self.memory.buffer_size();
        let length = (header.length as usize).min(size as usize / 4);
        let keep = length.min(into.len());
        let room = self.copy_out(line, length, keep, into);
        self.consumer.take(&self.memory) | room
    }
}

#[cfg(test)]
mod tests;
