//! The outgoing side of a link: numbered parcels, which are kept until they are acknowledged; urgent parcels, which
//! may be lost; and chunks of streams, which are read from user memory.
//!
//! ```text
//! kept:   acknowledged | written, not acknowledged | not written yet | room
//!                      start                       sent              end
//! ```
//!
//! Parcels may be sent by a bypass beside the connection (see `bypass`). They count as written; the last `unsure`
//! bytes of what is written were sent by the bypass alone, and may not have arrived. Before anything is written on
//! the connection again, the outbox writes there the number of the byte at which it continues ([`Parcel::Place`]),
//! and then these bytes, before everything else. So the connection alone carries everything in order.
//!
//! The memory here is bounded even if a peer reads nothing. Kept parcels have limits: [`RETAIN_BYTES`] for frames,
//! and [`SPARE_BYTES`] beyond that for bare parcels. A peer causes urgent parcels by what it sends, however little it
//! reads. Each of these reports a state, such as a position of this side, so at about [`MAX_URGENT_BYTES`] bytes no
//! more are added: once they are written, the link makes the next ones from its present state. Bare parcels for which
//! there is no room are queued as late; their number is bounded by the streams that the peer may have open (see
//! `stream_limit`).

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use regatta_memory::views::Views;
use regatta_wire::link::{HEAD, Head, MAX_CHUNK_BYTES, Parcel};

use super::stream::OutStream;
use regatta_connection::channel::Channel;

/// Maximum number of bytes that may wait for an acknowledgement.
pub(crate) const RETAIN_BYTES: usize = 256 << 10;
/// Number of bytes beyond [`RETAIN_BYTES`] for bare parcels, which consist of a header only and need not wait for the
/// room of frames.
pub(crate) const SPARE_BYTES: usize = 64 << 10;
/// Number of bytes of urgent parcels from which on no more are added.
const MAX_URGENT_BYTES: usize = 1 << 10;
/// Size in bytes of the buffer in which a message that is not contiguous is gathered before it is sent.
const STAGING_BYTES: usize = 64 << 10;
/// Maximum size of a chunk in bytes. A frame that is sent meanwhile follows after it.
const CHUNK_BYTES: usize = 256 << 10;
const _: () = assert!(CHUNK_BYTES <= MAX_CHUNK_BYTES);

/// A parcel that has been written in part, and must be completed before anything else is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Midway {
    Nowhere,
    /// The parcel that names the byte at which the connection continues.
    Place,
    Kept,
    Urgent,
    Chunk,
}

/// A chunk being written.
#[derive(Debug)]
struct OnWire {
    stream: u32,
    head: [u8; HEAD],
    /// Pointer into user memory, or into the stage.
    payload: *const u8,
    length: usize,
    done: usize,
}

/// The outgoing side of a link.
#[derive(Debug)]
pub(crate) struct Outbox {
    kept: Box<[u8]>,
    start: usize,
    sent: usize,
    end: usize,
    /// Number of the byte at `start`, counted over all bytes ever kept.
    base: u64,
    /// Number of the first byte that the peer had not received when the last connection began.
    resumed: u64,
    /// Number of bytes before `sent` that were sent by the bypass and are not known to have arrived.
    unsure: usize,
    /// Whether the last parcels were sent by the bypass, so that the connection continues at another byte than where
    /// it stopped.
    by_bypass: bool,
    /// Number of the byte up to which parcels sent by the bypass are being written again.
    repeats: u64,
    place: [u8; HEAD],
    place_sent: usize,
    urgent: Vec<u8>,
    urgent_sent: usize,
    chunk: Option<OnWire>,
    stage: Vec<u8>,
    midway: Midway,
    /// Index of the stream whose chunk was last; the next one follows.
    turn: usize,
    /// Bare parcels for which there was no room, in order. There are no more than streams can end at a time, and both
    /// sides have a bounded number of streams.
    late: VecDeque<(Parcel, u32)>,
}

// SAFETY: the pointer of a chunk leads into the stage, or into the memory of a message that is being sent. The
// message's owner guarantees that this memory stays valid until then, from whichever thread the progress is made.
unsafe impl Send for Outbox {}

impl Outbox {
    pub(crate) fn new() -> Outbox {
        Outbox {
            kept: vec![0; 2 * RETAIN_BYTES + SPARE_BYTES].into_boxed_slice(),
            start: 0,
            sent: 0,
            end: 0,
            base: 0,
            resumed: 0,
            unsure: 0,
            by_bypass: false,
            repeats: 0,
            place: [0; HEAD],
            place_sent: 0,
            urgent: Vec::new(),
            urgent_sent: 0,
            chunk: None,
            stage: Vec::new(),
            midway: Midway::Nowhere,
            turn: 0,
            late: VecDeque::new(),
        }
    }

    /// Returns whether there is room for a frame of this many bytes.
    #[inline]
    pub(crate) fn has_room(&self, length: usize) -> bool {
        self.end - self.start + HEAD + length <= RETAIN_BYTES
    }

    /// Returns whether there is room for a bare parcel.
    fn has_spare(&self) -> bool {
        self.end - self.start + HEAD <= RETAIN_BYTES + SPARE_BYTES
    }

    /// Returns whether the peer acknowledges enough of what it is sent. If not, it should be prevented from causing
    /// more bare parcels.
    #[inline]
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.end - self.start <= RETAIN_BYTES + SPARE_BYTES / 2
    }

    /// Returns whether all numbered parcels are acknowledged.
    pub(crate) fn is_settled(&self) -> bool {
        self.start == self.end
    }

    /// Returns whether nothing is left to write, other than chunks that have not begun.
    #[inline]
    pub(crate) fn is_written(&self) -> bool {
        self.sent == self.end && self.midway == Midway::Nowhere && self.urgent.is_empty()
    }

    /// Returns whether a parcel can begin on the connection, as none has been written in part.
    pub(crate) fn is_between(&self) -> bool {
        self.midway == Midway::Nowhere
    }

    /// Keeps a numbered parcel, to be sent in its turn. The caller has checked `has_room`, or the parcel is bare.
    #[inline]
    pub(crate) fn keep(&mut self, head: &Head, payload: &Views) {
        let size = head.size();
        if self.end + size > self.kept.len() {
            self.kept.copy_within(self.start..self.end, 0);
            self.sent -= self.start;
            self.end -= self.start;
            self.start = 0;
        }
        let (front, body) = self.kept[self.end..self.end + size].split_at_mut(HEAD);
        front.copy_from_slice(&head.encode());
        // SAFETY: `body` has as many bytes as the payload, and is memory of this outbox.
        unsafe { payload.gather(0, body.as_mut_ptr(), body.len().min(payload.len())) };
        self.end += size;
    }

    /// Keeps a bare numbered parcel, which acknowledges everything up to `taken`.
    pub(crate) fn keep_bare(&mut self, parcel: Parcel, context: u32, taken: u64) {
        if !self.has_spare() {
            // A peer whose buffer is full takes no frames, but may still send.
            return self.late.push_back((parcel, context));
        }
        self.keep(&Head::bare(parcel, context, taken), &Views::none());
    }

    /// Returns whether a bare parcel waits for room.
    #[inline]
    pub(crate) fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Keeps the late parcels for which there is room now. No frame overtakes them, since there is room for bare
    /// parcels before there is room for frames.
    #[cold]
    pub(crate) fn keep_late(&mut self, taken: u64) {
        while self.has_spare()
            && let Some((parcel, context)) = self.late.pop_front()
        {
            self.keep_bare(parcel, context, taken);
        }
    }

    /// Returns whether an urgent parcel may be added.
    pub(crate) fn has_room_to_urge(&self) -> bool {
        self.urgent.len() < MAX_URGENT_BYTES
    }

    /// Returns the number of bytes of urgent parcels that wait.
    #[cfg(test)]
    pub(crate) fn urged(&self) -> usize {
        self.urgent.len()
    }

    /// Returns whether a chunk is being written from this memory.
    #[cfg(test)]
    pub(crate) fn reads(&self, memory: &std::ops::Range<*const u8>) -> bool {
        let chunk = self.chunk.as_ref();
        chunk.is_some_and(|chunk| memory.contains(&chunk.payload))
    }

    /// Queues a parcel that may be lost with the connection. It goes before all numbered parcels and chunks.
    pub(crate) fn urge(&mut self, head: &Head, body: &[u8]) {
        self.urgent.extend_from_slice(&head.encode());
        self.urgent.extend_from_slice(body);
    }

    /// Handles the peer's acknowledgement that it has taken everything up to byte `position`. Fails if that was not
    /// sent.
    #[inline]
    pub(crate) fn acknowledged(&mut self, position: u64) -> Result<(), &'static str> {
        let Some(more) = position.checked_sub(self.base) else {
            return Ok(());
        };
        let sent = (self.sent - self.start) as u64;
        if more > sent && position > self.repeats {
            return Err("a connection acknowledges data that was not sent");
        }
        // The peer may have received it by the bypass while it is being repeated on the connection: what has begun
        // there is kept.
        let more = more.min(sent);
        self.start += more as usize;
        self.base += more;
        self.unsure = self.unsure.min(self.sent - self.start);
        if self.start == self.end {
            (self.start, self.sent, self.end) = (0, 0, 0);
        }
        Ok(())
    }

    // The bypass.

    /// Returns the number of the byte at `sent`.
    #[inline]
    fn sent_to(&self) -> u64 {
        self.base + (self.sent - self.start) as u64
    }

    /// Returns the parcel that was just kept, and the number of its first byte. Nothing else may be left to write.
    #[inline]
    pub(crate) fn just_kept(&self) -> (u64, &[u8]) {
        (self.sent_to(), &self.kept[self.sent..self.end])
    }

    /// Records that the parcel just kept was sent by the bypass.
    #[inline]
    pub(crate) fn went_by_bypass(&mut self) {
        self.unsure += self.end - self.sent;
        self.sent = self.end;
        self.by_bypass = true;
    }

    /// Returns whether there are parcels that were sent by the bypass and may not have arrived.
    #[inline]
    pub(crate) fn is_unsure(&self) -> bool {
        self.unsure > 0
    }

    /// Returns the number of the first byte of such parcels.
    pub(crate) fn first_unsure(&self) -> Option<u64> {
        self.is_unsure()
            .then(|| self.sent_to() - self.unsure as u64)
    }

    /// Returns the number of bytes of such parcels.
    #[inline]
    pub(crate) fn unsure(&self) -> usize {
        self.unsure
    }

    /// Records that the peer has received everything before byte `position` by either path. Fails if that was not
    /// sent.
    #[inline]
    pub(crate) fn reached(&mut self, position: u64) -> Result<(), &'static str> {
        let sent = self.sent_to();
        if position > sent {
            let known = position <= self.repeats;
            self.unsure = 0;
            return known
                .then_some(())
                .ok_or("a bypass acknowledges data that was not sent");
        }
        self.unsure = self.unsure.min((sent - position) as usize);
        Ok(())
    }

    /// Lets the next `pump` write the parcels on the connection that may not have arrived by the bypass.
    #[cold]
    pub(crate) fn repeat_unsure(&mut self) {
        if self.is_unsure() && self.midway == Midway::Nowhere {
            self.go_on_here();
        }
    }

    /// Continues the connection behind the last byte that is known to have arrived by the bypass.
    #[cold]
    fn go_on_here(&mut self) {
        self.repeats = self.sent_to();
        self.sent -= self.unsure;
        (self.unsure, self.by_bypass) = (0, false);
        self.place = Head::bare(Parcel::Place, 0, self.sent_to()).encode();
        (self.place_sent, self.midway) = (0, Midway::Place);
    }

    fn write_place(&mut self, channel: &mut Channel) -> io::Result<(usize, bool)> {
        let n = channel.send(&[IoSlice::new(&self.place[self.place_sent..])])?;
        self.place_sent += n;
        Ok((n, self.place_sent == HEAD))
    }

    /// Prepares for a new connection: sending continues after byte `received`, and what comes after byte `taken` is
    /// kept. The peer has room for as much as is kept, and what it has received but not taken fills a part of that
    /// room. Returns false if the peer's positions are outdated: it has connected again since, and this connection
    /// became known late.
    pub(crate) fn rewind(&mut self, received: u64, taken: u64) -> Result<bool, &'static str> {
        self.forget_connection();
        if received < self.resumed || taken < self.base {
            return Ok(false);
        }
        // The peer may have taken more than it acknowledged last, but not more than was kept.
        self.sent = self.end;
        let untaken = self.acknowledged(taken).and_then(|()| {
            let untaken = received.checked_sub(taken);
            let kept = (self.end - self.start) as u64;
            untaken
                .filter(|&untaken| untaken <= kept)
                .ok_or("a connection resumes past the data that was sent")
        });
        self.sent = self.start;
        self.sent += untaken? as usize;
        self.resumed = received;
        Ok(true)
    }

    /// Forgets the connection, which is lost, and what was in transit on it.
    pub(crate) fn forget_connection(&mut self) {
        self.urgent.clear();
        self.urgent_sent = 0;
        self.chunk = None;
        self.midway = Midway::Nowhere;
        self.sent = self.start;
        (self.unsure, self.by_bypass, self.repeats) = (0, false, 0);
    }

    /// Copies the rest of a stream's chunk that is being written, because the message's memory will no longer be
    /// valid.
    pub(crate) fn let_go(&mut self, stream: u32) {
        let Some(chunk) = self.chunk.as_mut().filter(|chunk| chunk.stream == stream) else {
            return;
        };
        if chunk.payload == self.stage.as_ptr() {
            return;
        }
        // SAFETY: the message's memory is still valid during this call.
        let rest = unsafe { std::slice::from_raw_parts(chunk.payload, chunk.length) };
        self.stage.clear();
        self.stage.extend_from_slice(rest);
        chunk.payload = self.stage.as_ptr();
    }

    /// Writes what can be written now, with chunks of at most `budget` streams. Returns whether any byte was written.
    pub(crate) fn pump(
        &mut self,
        channel: &mut Channel,
        streams: &mut [OutStream],
        mut budget: usize,
    ) -> io::Result<bool> {
        let mut moved = false;
        loop {
            if self.midway == Midway::Nowhere {
                self.midway = if !self.urgent.is_empty() {
                    Midway::Urgent
                } else if self.sent < self.end {
                    Midway::Kept
                } else if self.chunk.is_some() {
                    Midway::Chunk
                } else if budget > 0 && self.next_chunk(streams) {
                    budget -= 1;
                    Midway::Chunk
                } else {
                    channel.flush()?;
                    return Ok(moved);
                };
                if self.by_bypass {
                    self.go_on_here();
                }
            }
            let alone = self.midway != Midway::Kept || budget == 0 || self.chunk.is_some();
            let both = !alone && self.next_chunk(streams);
            budget -= usize::from(both);
            let (n, done) = match self.midway {
                Midway::Place => self.write_place(channel)?,
                Midway::Urgent => self.write_urgent(channel)?,
                Midway::Chunk => self.write_chunk(channel)?,
                _ if both => self.write_both(channel)?,
                _ => self.write_kept(channel)?,
            };
            moved |= n > 0;
            if !done {
                return Ok(moved);
            }
            // Repeated parcels come before everything that was sent after them.
            self.midway = match self.midway {
                Midway::Place if self.sent < self.end => Midway::Kept,
                _ => Midway::Nowhere,
            };
        }
    }

    #[inline]
    fn write_kept(&mut self, channel: &mut Channel) -> io::Result<(usize, bool)> {
        let n = channel.send(&[IoSlice::new(&self.kept[self.sent..self.end])])?;
        self.sent += n;
        Ok((n, self.sent == self.end))
    }

    /// Writes the kept parcels and a chunk that has not begun, in one system call.
    fn write_both(&mut self, channel: &mut Channel) -> io::Result<(usize, bool)> {
        let kept = &self.kept[self.sent..self.end];
        let Some(chunk) = &mut self.chunk else {
            return Ok((0, false));
        };
        // SAFETY: the payload is in the memory of a message being sent, which its owner keeps until the stream has
        // ended, or in the stage, which is not changed while a chunk is written from it.
        let payload = unsafe { std::slice::from_raw_parts(chunk.payload, chunk.length) };
        let parts = [kept, &chunk.head, payload].map(IoSlice::new);
        let n = channel.send(&parts)?;
        let of_kept = n.min(kept.len());
        chunk.done = n - of_kept;
        self.sent += of_kept;
        if self.sent < self.end {
            return Ok((n, false));
        }
        let done = chunk.done == HEAD + chunk.length;
        match done {
            true => self.chunk = None,
            false => self.midway = Midway::Chunk,
        }
        Ok((n, done))
    }

    /// Writes what was just kept, if nothing else must be written first. This is the whole of a small send.
    #[inline]
    pub(crate) fn write_now(&mut self, channel: &mut Channel) -> io::Result<bool> {
        if self.midway != Midway::Nowhere || !self.urgent.is_empty() || self.by_bypass {
            return Ok(false);
        }
        let (_, done) = self.write_kept(channel)?;
        if !done {
            self.midway = Midway::Kept;
        }
        Ok(true)
    }

    fn write_urgent(&mut self, channel: &mut Channel) -> io::Result<(usize, bool)> {
        let n = channel.send(&[IoSlice::new(&self.urgent[self.urgent_sent..])])?;
        self.urgent_sent += n;
        let done = self.urgent_sent == self.urgent.len();
        if done {
            self.urgent.clear();
            self.urgent_sent = 0;
        }
        Ok((n, done))
    }

    fn write_chunk(&mut self, channel: &mut Channel) -> io::Result<(usize, bool)> {
        let Some(chunk) = &mut self.chunk else {
            return Ok((0, true));
        };
        // SAFETY: the payload is in the memory of a message being sent, which its owner keeps until the stream has
        // ended, or in the stage, which is not changed while a chunk is written from it.
        let payload = unsafe { std::slice::from_raw_parts(chunk.payload, chunk.length) };
        let n = match chunk.head.get(chunk.done..) {
            Some(head) if !head.is_empty() => {
                channel.send(&[IoSlice::new(head), IoSlice::new(payload)])?
            }
            _ => channel.send(&[IoSlice::new(&payload[chunk.done - HEAD..])])?,
        };
        chunk.done += n;
        let done = chunk.done == HEAD + chunk.length;
        if done {
            self.chunk = None;
        }
        Ok((n, done))
    }

    /// Begins a chunk of the next stream that may send one. Returns false if there is none.
    fn next_chunk(&mut self, streams: &mut [OutStream]) -> bool {
        for _ in 0..streams.len() {
            self.turn = (self.turn + 1) % streams.len();
            let stream = &mut streams[self.turn];
            let Some((message, left)) = stream.sendable() else {
                continue;
            };
            let offset = stream.sent as usize;
            let (payload, length) = match message.contiguous() {
                Some(base) => (
                    base.wrapping_add(offset).cast_const(),
                    left.min(CHUNK_BYTES),
                ),
                None => {
                    let length = left.min(STAGING_BYTES);
                    self.stage.clear();
                    self.stage.reserve(STAGING_BYTES);
                    // SAFETY: the stage has room for `length` bytes, and the range is inside the message.
                    unsafe {
                        message.gather(offset, self.stage.as_mut_ptr(), length);
                        self.stage.set_len(length);
                    }
                    (self.stage.as_ptr(), length)
                }
            };
            let last = offset + length == message.len();
            let mut head = Head::bare(Parcel::Chunk, stream.id, stream.sent);
            (head.length, head.last) = (length as u32, last);
            stream.sent += length as u64;
            self.chunk = Some(OnWire {
                stream: stream.id,
                head: head.encode(),
                payload,
                length,
                done: 0,
            });
            return true;
        }
        false
    }
}
