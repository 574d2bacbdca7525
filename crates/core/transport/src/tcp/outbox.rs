//! The outgoing side of a link: numbered parcels, kept until they are acknowledged; urgent ones, which may be lost;
//! and chunks of streams, which are taken from user memory.
//!
//! ```text
//! kept:   acknowledged | written, not acknowledged | not written yet | room
//!                      start                       sent              end
//! ```
//!
//! Parcels may go by a bypass beside the connection (see `bypass`). They count as written, and the last `unsure` bytes of what is written went
//! by the bypass alone, and may not have come. Before anything is written on the connection again, the outbox says there with which
//! byte it goes on ([`Parcel::Place`]), and these bytes follow, before everything else. So the connection alone carries all in its order.
//!
//! Nothing here grows while a peer reads nothing. Kept parcels have limits, [`RETAIN_BYTES`] for frames and [`SPARE_BYTES`] beyond it for bare
//! parcels. A peer causes urgent parcels by what it sends, however little it reads; each tells a state (how far this side is),
//! so there are none beyond [`MAX_URGENT_BYTES`] bytes: the link makes the next ones, of the state as it is then, when those are written.
//! Bare parcels that find no room are late: no more than streams can end that the peer may have open (see `stream_limit`).

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use regatta_memory::views::Views;
use regatta_wire::link::{HEAD, Head, MAX_CHUNK_BYTES, Parcel};

use super::stream::OutStream;
use regatta_connection::channel::Channel;

/// Bytes that may wait for an acknowledgement.
pub(crate) const RETAIN_BYTES: usize = 256 << 10;
/// Bytes beyond [`RETAIN_BYTES`] for parcels that are only a head and do not wait for room among the frames.
pub(crate) const SPARE_BYTES: usize = 64 << 10;
/// Number of bytes of urgent parcels from which on no more are added.
const MAX_URGENT_BYTES: usize = 1 << 10;
/// Size of the buffer, in bytes, in which a message that is not one block is collected before it is sent.
const STAGING_BYTES: usize = 64 << 10;
/// Size of a chunk, in bytes: a frame that comes up meanwhile goes after it.
const CHUNK_BYTES: usize = 256 << 10;
const _: () = assert!(CHUNK_BYTES <= MAX_CHUNK_BYTES);

/// A parcel that has been written in part, and must be finished before anything else is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Midway {
    Nowhere,
    /// The word that says where the connection goes on.
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
    /// In user memory, or in the stage.
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
    /// Number of the byte at `start`, of all that were ever kept.
    base: u64,
    /// Number of the first byte that the peer had not received when a connection last began.
    resumed: u64,
    /// Bytes before `sent` that went by the bypass, and are not known to have come.
    unsure: usize,
    /// The last parcels went by the bypass: the connection goes on elsewhere than where it was left.
    by_bypass: bool,
    /// So far parcels have gone by the bypass that are written once more.
    repeats: u64,
    place: [u8; HEAD],
    place_sent: usize,
    urgent: Vec<u8>,
    urgent_sent: usize,
    chunk: Option<OnWire>,
    stage: Vec<u8>,
    midway: Midway,
    /// Whose chunk is next.
    turn: usize,
    /// Bare parcels that found no room, in their order. As many as streams can end at a time: the peer has a
    /// bounded number, and this task its own.
    late: VecDeque<(Parcel, u32)>,
}

// SAFETY: the pointer of a chunk leads to memory of a message that is being sent (whose owner promised that it
// stays until then, from whichever thread makes the progress), or into the stage.
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

    /// Is there room for a frame of this many bytes?
    #[inline]
    pub(crate) fn has_room(&self, length: usize) -> bool {
        self.end - self.start + HEAD + length <= RETAIN_BYTES
    }

    /// Is there room for a bare parcel?
    fn has_spare(&self) -> bool {
        self.end - self.start + HEAD <= RETAIN_BYTES + SPARE_BYTES
    }

    /// Does the peer acknowledge enough of what it is sent? If not, it should give cause to fewer bare parcels.
    #[inline]
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.end - self.start <= RETAIN_BYTES + SPARE_BYTES / 2
    }

    /// Is everything numbered acknowledged?
    pub(crate) fn is_settled(&self) -> bool {
        self.start == self.end
    }

    /// Is anything left to write, other than chunks that have not begun?
    #[inline]
    pub(crate) fn is_written(&self) -> bool {
        self.sent == self.end && self.midway == Midway::Nowhere && self.urgent.is_empty()
    }

    /// Can a parcel begin on the connection, with none on its way?
    pub(crate) fn is_between(&self) -> bool {
        self.midway == Midway::Nowhere
    }

    /// Keep a numbered parcel and send it in its turn. The caller has asked for room, or the parcel is bare.
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
        // SAFETY: `body` has as many bytes as the payload, and is memory of ours.
        unsafe { payload.gather(0, body.as_mut_ptr(), body.len().min(payload.len())) };
        self.end += size;
    }

    /// Keep a numbered parcel that is only a head, and says that everything up to `taken` has been taken.
    pub(crate) fn keep_bare(&mut self, parcel: Parcel, context: u32, taken: u64) {
        if !self.has_spare() {
            // A peer whose buffer is full takes no frames and may send on all the same.
            return self.late.push_back((parcel, context));
        }
        self.keep(&Head::bare(parcel, context, taken), &Views::none());
    }

    /// Does a bare parcel wait for room?
    #[inline]
    pub(crate) fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// No frame overtakes what is late: there is room for bare parcels before there is any for frames.
    #[cold]
    pub(crate) fn keep_late(&mut self, taken: u64) {
        while self.has_spare()
            && let Some((parcel, context)) = self.late.pop_front()
        {
            self.keep_bare(parcel, context, taken);
        }
    }

    /// Whether an urgent parcel may be added.
    pub(crate) fn has_room_to_urge(&self) -> bool {
        self.urgent.len() < MAX_URGENT_BYTES
    }

    /// Bytes of urgent parcels that wait.
    #[cfg(test)]
    pub(crate) fn urged(&self) -> usize {
        self.urgent.len()
    }

    /// Is a chunk on its way out of this memory?
    #[cfg(test)]
    pub(crate) fn reads(&self, memory: &std::ops::Range<*const u8>) -> bool {
        let chunk = self.chunk.as_ref();
        chunk.is_some_and(|chunk| memory.contains(&chunk.payload))
    }

    /// Send a parcel that may be lost, in its turn but before others.
    pub(crate) fn urge(&mut self, head: &Head, body: &[u8]) {
        self.urgent.extend_from_slice(&head.encode());
        self.urgent.extend_from_slice(body);
    }

    /// The peer has taken everything up to byte `position`.
    #[inline]
    pub(crate) fn acknowledged(&mut self, position: u64) -> Result<(), &'static str> {
        let Some(more) = position.checked_sub(self.base) else {
            return Ok(());
        };
        let sent = (self.sent - self.start) as u64;
        if more > sent && position > self.repeats {
            return Err("a connection acknowledges what was not sent");
        }
        // It may have come by the bypass and be under way once more: then what the connection has been promised of it stays.
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

    /// Number of the byte at `sent`.
    #[inline]
    fn sent_to(&self) -> u64 {
        self.base + (self.sent - self.start) as u64
    }

    /// The parcel that was just kept, nothing else being left to write, behind the number of its first byte.
    #[inline]
    pub(crate) fn just_kept(&self) -> (u64, &[u8]) {
        (self.sent_to(), &self.kept[self.sent..self.end])
    }

    /// It has gone by the bypass.
    #[inline]
    pub(crate) fn went_by_bypass(&mut self) {
        self.unsure += self.end - self.sent;
        self.sent = self.end;
        self.by_bypass = true;
    }

    /// Have parcels gone by the bypass that may not have come?
    #[inline]
    pub(crate) fn is_unsure(&self) -> bool {
        self.unsure > 0
    }

    /// Number of the first byte of such parcels.
    pub(crate) fn first_unsure(&self) -> Option<u64> {
        self.is_unsure()
            .then(|| self.sent_to() - self.unsure as u64)
    }

    /// Bytes of such parcels.
    #[inline]
    pub(crate) fn unsure(&self) -> usize {
        self.unsure
    }

    /// By whichever way, all has come before byte `position`.
    #[inline]
    pub(crate) fn reached(&mut self, position: u64) -> Result<(), &'static str> {
        let sent = self.sent_to();
        if position > sent {
            let known = position <= self.repeats;
            self.unsure = 0;
            return known
                .then_some(())
                .ok_or("a bypass has taken what was not sent");
        }
        self.unsure = self.unsure.min((sent - position) as usize);
        Ok(())
    }

    /// Parcels that may not have come by the bypass are written on the connection, when that is pumped.
    #[cold]
    pub(crate) fn repeat_unsure(&mut self) {
        if self.is_unsure() && self.midway == Midway::Nowhere {
            self.go_on_here();
        }
    }

    /// The connection goes on behind what is known to have come by the bypass.
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

    /// On a new connection: go on after byte `received`, and keep what comes after byte `taken`. The peer has room for as much as
    /// is kept, and what it has received and not taken fills some of it. False: the peer is further than that, so what it said is
    /// old: it has called again since, and this connection is only heard of late.
    pub(crate) fn rewind(&mut self, received: u64, taken: u64) -> Result<bool, &'static str> {
        self.forget_connection();
        if received < self.resumed || taken < self.base {
            return Ok(false);
        }
        // It may have taken more than the last acknowledgement said, but not more than was kept.
        self.sent = self.end;
        let untaken = self.acknowledged(taken).and_then(|()| {
            let untaken = received.checked_sub(taken);
            let kept = (self.end - self.start) as u64;
            untaken
                .filter(|&untaken| untaken <= kept)
                .ok_or("a connection begins behind what was sent")
        });
        self.sent = self.start;
        self.sent += untaken? as usize;
        self.resumed = received;
        Ok(true)
    }

    /// The connection is lost, and what was on its way with it.
    pub(crate) fn forget_connection(&mut self) {
        self.urgent.clear();
        self.urgent_sent = 0;
        self.chunk = None;
        self.midway = Midway::Nowhere;
        self.sent = self.start;
        (self.unsure, self.by_bypass, self.repeats) = (0, false, 0);
    }

    /// A stream's memory is about to go: what the wire has been promised of it is saved.
    pub(crate) fn let_go(&mut self, stream: u32) {
        let Some(chunk) = self.chunk.as_mut().filter(|chunk| chunk.stream == stream) else {
            return;
        };
        if chunk.payload == self.stage.as_ptr() {
            return;
        }
        // SAFETY: the message's memory is still there, which is why this is called now.
        let rest = unsafe { std::slice::from_raw_parts(chunk.payload, chunk.length) };
        self.stage.clear();
        self.stage.extend_from_slice(rest);
        chunk.payload = self.stage.as_ptr();
    }

    /// Write what can be written now, chunks of at most `budget` streams among it; whether any byte was.
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
            // Repeated parcels come before all that was said after them.
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

    /// Write what is kept and a chunk that has not begun, by one system call.
    fn write_both(&mut self, channel: &mut Channel) -> io::Result<(usize, bool)> {
        let kept = &self.kept[self.sent..self.end];
        let Some(chunk) = &mut self.chunk else {
            return Ok((0, false));
        };
        // SAFETY: as in `write_chunk`.
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

    /// Write what was just kept, if nothing is in its way: the whole of a small send.
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
        // SAFETY: memory of a message being sent, which its owner keeps until the stream has ended; or of the
        // stage, which is not touched while a chunk is on its way from it.
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

    /// Begin a chunk of the next stream that may send one.
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
                    // SAFETY: the room was just made, and the cut lies inside the message.
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
