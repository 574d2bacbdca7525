//! Frames that have been received from a peer and not been taken by the engine.
//!
//! ```text
//! bytes: taken | whole parcels, scanned | not scanned yet | room
//!              start                    scanned           end
//! ```
//!
//! Frames stay where they were received until they are taken. Other parcels between them are handled when they are
//! scanned, and become holes, which are skipped later: a hole is a header of kind 0.

use regatta_wire::link::{HEAD, Head, Parcel};

use super::outbox::{RETAIN_BYTES, SPARE_BYTES};

/// Maximum number of untaken bytes that an honest peer can cause.
const MAX_UNTAKEN_BYTES: usize = RETAIN_BYTES + SPARE_BYTES;
/// Size of one read, in bytes.
const READ_BYTES: usize = 64 << 10;
/// Kind in the header of a hole.
const HOLE: u8 = 0;

/// Frames that have been received from a peer and wait for the engine.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) bytes: Box<[u8]>,
    start: usize,
    pub(crate) scanned: usize,
    pub(crate) end: usize,
    /// Number of the byte at `start`, counted over all numbered bytes received.
    pub(crate) taken: u64,
    /// Number of the byte at `scanned`: earlier bytes need not be repeated.
    pub(crate) reached: u64,
}

impl Inbox {
    pub(crate) fn new() -> Inbox {
        Inbox {
            bytes: vec![0; 2 * MAX_UNTAKEN_BYTES + READ_BYTES].into_boxed_slice(),
            start: 0,
            scanned: 0,
            end: 0,
            taken: 0,
            reached: 0,
        }
    }

    /// Drops the parcels that are incomplete, because the connection is lost. They will be sent again.
    pub(crate) fn cut(&mut self) {
        self.end = self.scanned;
    }

    /// Returns the memory for the next bytes. Returns `None` while more bytes are here than an honest peer may have
    /// outstanding; the peer then waits.
    #[inline]
    pub(crate) fn room(&mut self) -> Option<&mut [u8]> {
        if self.start == self.end {
            (self.start, self.scanned, self.end) = (0, 0, 0);
        }
        if self.bytes.len() - self.end < READ_BYTES {
            self.compact();
            if self.scanned > MAX_UNTAKEN_BYTES || self.bytes.len() - self.end < READ_BYTES {
                return None;
            }
        }
        Some(&mut self.bytes[self.end..self.end + READ_BYTES])
    }

    /// Returns whether no byte of an incomplete parcel is here.
    #[inline]
    pub(crate) fn is_scanned(&self) -> bool {
        self.scanned == self.end
    }

    /// Returns the header at `at`, or `None` if it is incomplete.
    #[inline]
    pub(crate) fn head_at(&self, at: usize) -> Option<&[u8; HEAD]> {
        self.bytes[at..self.end].first_chunk()
    }

    /// Returns the body of the parcel at `scanned`, which must be complete.
    #[inline]
    pub(crate) fn body(&self, head: &Head) -> &[u8] {
        &self.bytes[self.scanned + HEAD..self.scanned + head.size()]
    }

    /// Keeps the complete parcel at `scanned` until it is taken.
    #[inline]
    pub(crate) fn hold(&mut self, head: &Head) {
        self.scanned += head.size();
        self.reached += head.size() as u64;
    }

    /// Passes over the parcel of `size` bytes at `scanned`, which has been handled.
    pub(crate) fn pass(&mut self, size: usize) {
        let (at, after) = (self.scanned, self.scanned + size);
        self.scanned = after;
        if self.start == at {
            self.start = after;
            return;
        }
        self.bytes[at] = HOLE;
        let length = (size - HEAD) as u32;
        self.bytes[at + 4..at + 8].copy_from_slice(&length.to_le_bytes());
    }

    /// Returns the header of the oldest frame, or `None` if there is none.
    #[inline]
    pub(crate) fn front(&mut self) -> Option<Head> {
        while self.start < self.scanned {
            let head = self.bytes[self.start..].first_chunk::<HEAD>()?;
            if head[0] == HOLE {
                self.start += HEAD + Head::length_in(head) as usize;
                continue;
            }
            // The header was decoded before, so it can be decoded again.
            let head = Head::decode(head).ok()?;
            if matches!(head.parcel, Parcel::Frame(_)) {
                return Some(head);
            }
            self.take(&head);
        }
        None
    }

    /// Returns the payload of the frame at the front.
    #[inline]
    pub(crate) fn payload(&self, head: &Head) -> &[u8] {
        &self.bytes[self.start + HEAD..self.start + head.size()]
    }

    /// Removes the parcel at the front.
    #[inline]
    pub(crate) fn take(&mut self, head: &Head) {
        self.start += head.size();
        self.taken += head.size() as u64;
    }

    /// Closes the holes, and moves the free memory to the end.
    fn compact(&mut self) {
        let (mut from, mut to) = (self.start, 0);
        while from < self.scanned
            && let Some(head) = self.bytes[from..].first_chunk::<HEAD>()
        {
            let (hole, size) = (head[0] == HOLE, HEAD + Head::length_in(head) as usize);
            if !hole {
                self.bytes.copy_within(from..from + size, to);
                to += size;
            }
            from += size;
        }
        self.bytes.copy_within(self.scanned..self.end, to);
        self.end = to + self.end - self.scanned;
        (self.start, self.scanned) = (0, to);
    }
}
