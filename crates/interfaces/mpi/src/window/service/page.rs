//! The shared memory of an inbox: slots for requests, and room for their bytes.
//!
//! Other processes may write anything there at any time: each number is read once, then checked.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::segment::Segment;

/// Number of requests that can wait at a process.
pub const SLOTS: usize = 31;
/// Bit beside those of the slots: the inbox is closed.
pub const CLOSED: u32 = 1 << SLOTS;
/// Bytes of a slot's room for a request, and for a reply.
pub const SLOT_DATA_BYTES: usize = 32 << 10;

/// Bit: the reply has been given.
pub const DONE_BIT: u32 = 1;
/// Bit: the thread of the inbox has given it.
pub const BY_THREAD_BIT: u32 = 2;
/// Bit: the client sleeps until the reply is given.
pub const SLEEPING_BIT: u32 = 4;
/// Position of the error class behind these bits.
pub const CLASS_SHIFT: u32 = 3;

/// The words that servers and clients poll.
#[repr(C, align(128))]
pub struct Head {
    /// A bit for each slot whose request nobody serves yet, and [`CLOSED`]. A server clears the bits of the requests that it takes.
    pub posted: AtomicU32,
    /// 1 while the inbox's thread sleeps.
    pub sleeps: AtomicU32,
    /// Number of threads that serve requests: while it is 0 no request is served whose bit is not set.
    pub serving: AtomicU32,
}

/// A request.
#[repr(C, align(128))]
pub struct Slot {
    /// The [`Client`] as a number; 0 while the slot is free.
    pub client: AtomicU64,
    /// [`DONE_BIT`], [`BY_THREAD_BIT`] and the class of the error; 0 or [`SLEEPING_BIT`] before.
    pub done: AtomicU32,
    /// The target's number of the window.
    pub window: AtomicU32,
    parts: [[AtomicU64; 2]; 3],
}

/// The process that has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its task number, by which others see that it has ended.
    pub task: c_int,
    /// Its process id.
    pub process: c_int,
}

impl Client {
    /// Returns it as the number in a slot.
    pub fn number(self) -> u64 {
        u64::from(self.task as u32) << 32 | u64::from(self.process as u32)
    }

    /// Returns the client with this number in a slot.
    pub fn of(number: u64) -> Client {
        Client {
            task: (number >> 32) as c_int,
            process: number as c_int,
        }
    }
}

/// A part of a request, or room for one.
#[derive(Clone, Copy)]
pub struct Part {
    /// In bytes.
    pub length: u64,
    /// In the client's memory; 0 if it is in the slot's area.
    pub address: u64,
}

impl Slot {
    /// Sets where the words are, the data (which follow the words in the slot's area), and the room for the reply's data.
    pub fn set_parts(&self, parts: [Part; 3]) {
        for (place, part) in self.parts.iter().zip(parts) {
            place[0].store(part.length, Ordering::Relaxed);
            place[1].store(part.address, Ordering::Relaxed);
        }
    }

    /// Returns what the client has set.
    pub fn parts(&self) -> [Part; 3] {
        [0, 1, 2].map(|part: usize| Part {
            length: self.parts[part][0].load(Ordering::Relaxed),
            address: self.parts[part][1].load(Ordering::Relaxed),
        })
    }
}

#[repr(C, align(128))]
struct Area(UnsafeCell<[u8; SLOT_DATA_BYTES]>);

/// The memory of an inbox.
#[repr(C)]
pub struct Page {
    /// The words that servers and clients poll.
    pub head: Head,
    /// The requests.
    pub slots: [Slot; SLOTS],
    given: [Area; SLOTS],
    replies: [Area; SLOTS],
}

// SAFETY: areas are reached by pointers only, and by whoever has the slot.
unsafe impl Sync for Page {}

impl Page {
    /// Bytes of the segment.
    pub const LENGTH: usize = size_of::<Page>();

    /// Returns the page in a segment of [`Page::LENGTH`] bytes.
    pub fn of(segment: &Segment) -> &Page {
        // SAFETY: the segment is as long, and stays as long as it is borrowed; any bits are numbers.
        unsafe { &*segment.base().cast() }
    }

    /// Returns a slot's room for a request.
    pub fn given(&self, index: usize) -> *mut u8 {
        self.given[index].0.get().cast()
    }

    /// Returns a slot's room for the data of a reply.
    pub fn reply(&self, index: usize) -> *mut u8 {
        self.replies[index].0.get().cast()
    }

    /// Returns whether requests are not served any more.
    pub fn is_closed(&self) -> bool {
        self.head.posted.load(Ordering::Relaxed) & CLOSED != 0
    }
}

/// Sleeps until woken, if the word has this value; `limit` is in nanoseconds.
pub fn sleep(word: &AtomicU32, value: u32, limit: Option<libc::c_long>) {
    let limit = limit.map(|nanoseconds| libc::timespec {
        tv_sec: 0,
        tv_nsec: nanoseconds,
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word is never freed; the call reads the limit.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, value, limit) };
}

/// Wakes all who sleep on a word.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the word is never freed.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, c_int::MAX) };
}
