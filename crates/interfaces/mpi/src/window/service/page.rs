//! The shared memory of an inbox: slots for requests, and areas for their bytes.
//!
//! Other processes may write anything to it at any time. So each number is read once and then checked.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::segment::Segment;

/// Number of slots: requests that can be pending at a process.
pub const SLOTS: usize = 31;
/// Bit besides those of the slots: the inbox is closed.
pub const CLOSED: u32 = 1 << SLOTS;
/// Length in bytes of a slot's area for a request, and of that for a reply.
pub const SLOT_DATA_BYTES: usize = 32 << 10;

/// Bit: the reply has been written.
pub const DONE_BIT: u32 = 1;
/// Bit: the inbox's thread has written the reply.
pub const BY_THREAD_BIT: u32 = 2;
/// Bit: the client sleeps until the reply is written.
pub const SLEEPING_BIT: u32 = 4;
/// Position of the error class, above these bits.
pub const CLASS_SHIFT: u32 = 3;

/// The words that servers and clients poll.
#[repr(C, align(128))]
pub struct Head {
    /// A bit for each slot with a request that no thread has taken yet, and [`CLOSED`]. A server clears the bits of the
    /// requests that it takes.
    pub posted: AtomicU32,
    /// 1 while the inbox's thread sleeps, otherwise 0.
    pub sleeps: AtomicU32,
    /// Number of threads that serve requests. While it is 0, no request whose bit is cleared is being served.
    pub serving: AtomicU32,
}

/// A slot for a request.
#[repr(C, align(128))]
pub struct Slot {
    /// The [`Client`] as a number; 0 if the slot is free.
    pub client: AtomicU64,
    /// [`DONE_BIT`], [`BY_THREAD_BIT`] and the error class; before that 0 or [`SLEEPING_BIT`].
    pub done: AtomicU32,
    /// The number by which the target knows the window.
    pub window: AtomicU32,
    parts: [[AtomicU64; 2]; 3],
}

/// The process that has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its task number, by which others can check whether it has ended.
    pub task: c_int,
    /// Its process id.
    pub process: c_int,
}

impl Client {
    /// Returns it as the number in a slot.
    pub fn number(self) -> u64 {
        u64::from(self.task as u32) << 32 | u64::from(self.process as u32)
    }

    /// Returns the client for a number in a slot.
    pub fn of(number: u64) -> Client {
        Client {
            task: (number >> 32) as c_int,
            process: number as c_int,
        }
    }
}

/// A part of a request, or memory for a part of the reply.
#[derive(Clone, Copy)]
pub struct Part {
    /// Length in bytes.
    pub length: u64,
    /// Address in the client's memory; 0 if it is in the slot's area.
    pub address: u64,
}

impl Slot {
    /// Sets the locations of the words, of the data (which follow the words in the slot's area), and of the memory for
    /// the reply's data.
    pub fn set_parts(&self, parts: [Part; 3]) {
        for (place, part) in self.parts.iter().zip(parts) {
            place[0].store(part.length, Ordering::Relaxed);
            place[1].store(part.address, Ordering::Relaxed);
        }
    }

    /// Returns the locations that the client has set.
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

// SAFETY: areas are accessed only by pointers, and only by the owner of the slot and the thread that serves it.
unsafe impl Sync for Page {}

impl Page {
    /// Size of the segment in bytes.
    pub const LENGTH: usize = size_of::<Page>();

    /// Returns the page in a segment of [`Page::LENGTH`] bytes.
    pub fn of(segment: &Segment) -> &Page {
        // SAFETY: the segment has this size and lives as long as it is borrowed; all fields are numbers, for which any
        // bits are valid.
        unsafe { &*segment.base().cast() }
    }

    /// Returns a slot's area for a request.
    pub fn given(&self, index: usize) -> *mut u8 {
        self.given[index].0.get().cast()
    }

    /// Returns a slot's area for the data of a reply.
    pub fn reply(&self, index: usize) -> *mut u8 {
        self.replies[index].0.get().cast()
    }

    /// Returns whether requests are no longer served.
    pub fn is_closed(&self) -> bool {
        self.head.posted.load(Ordering::Relaxed) & CLOSED != 0
    }
}

/// Sleeps until woken, if the word has this value. `limit` is the maximum time in nanoseconds.
pub fn sleep(word: &AtomicU32, value: u32, limit: Option<libc::c_long>) {
    let limit = limit.map(|nanoseconds| libc::timespec {
        tv_sec: 0,
        tv_nsec: nanoseconds,
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word is never freed; the call reads the limit.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, value, limit) };
}

/// Wakes all threads that sleep on a word.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the word is never freed.
    unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, c_int::MAX) };
}
