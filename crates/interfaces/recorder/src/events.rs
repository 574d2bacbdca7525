//! The ring buffer of events, in which new events overwrite the oldest.

use std::sync::atomic::Ordering::{Relaxed, Release};

use regatta_record::{EVENTS_AT, THREADS_AT, event, head, thread};

use crate::map::Map;

/// The message of an event.
#[derive(Clone, Copy)]
pub(crate) struct Message {
    /// [`event::SENT`] or [`event::RECEIVED`].
    pub flags: u8,
    pub peer: i32,
    pub tag: i32,
    pub bytes: u64,
    pub sequence: u32,
}

impl Message {
    /// No message.
    pub(crate) const NONE: Message = Message {
        flags: 0,
        peer: -1,
        tag: 0,
        bytes: 0,
        sequence: 0,
    };
}

/// Writes an event of the thread that uses this part.
pub(crate) fn write(map: Map, part: usize, kind: u16, (began, ended): (u64, u64), about: Message) {
    let room = map[head::EVENTS].load(Relaxed);
    let number = map[head::EVENT_COUNT].fetch_add(1, Relaxed) & room.wrapping_sub(1);
    let at = EVENTS_AT + number as usize * event::WORDS;
    let Some(words) = map.get(at..at + event::WORDS) else {
        return;
    };
    // Invalidates the old event first, so that a task that is killed in between leaves no mixture of two events.
    words[event::WHAT].store(0, Release);
    words[event::BEGAN].store(began, Release);
    words[event::ENDED].store(ended, Relaxed);
    words[event::BYTES].store(about.bytes, Relaxed);
    let peer = u64::from(about.peer as u32) | u64::from(about.tag as u32) << 32;
    words[event::PEER].store(peer, Relaxed);
    let thread = ((part - THREADS_AT) / thread::WORDS) as u8;
    let what = event::pack(kind, about.flags, thread, about.sequence);
    words[event::WHAT].store(what, Release);
}
