//! One recorded call, from its beginning to its end.

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

use regatta_abi::{ERR_NOTHING, Group, OK, Status};
use regatta_record::{Call, call, event, head, thread};

use crate::events::{self, Message};
use crate::map::{Map, add, map, now};
use crate::{peers, sequence, thread as own};

/// A call in progress.
pub(crate) struct Span {
    call: Call,
    /// The record, and the position of this thread's part in it. `None` if the call is not recorded.
    place: Option<(Map, usize)>,
    began: u64,
    /// Whether the call is made inside another one, such as by a callback. Its time then counts for the outer call.
    nested: bool,
    /// Whether the call has found nothing. It then writes no event, because polling loops would fill the buffer.
    quiet: bool,
    bytes: u64,
    message: Message,
}

impl Span {
    /// Begins a call.
    #[inline]
    pub(crate) fn enter(call: Call) -> Span {
        Span::begin(call, -1)
    }

    /// Begins a call whose peer is this rank of this group.
    #[inline]
    pub(crate) fn enter_about(call: Call, group: Group, rank: c_int) -> Span {
        Span::begin(call, peers::task(group, rank))
    }

    #[inline]
    fn begin(call: Call, peer: i32) -> Span {
        let mut span = Span {
            call,
            place: None,
            began: 0,
            nested: false,
            quiet: false,
            bytes: 0,
            message: Message::NONE,
        };
        let Some(map) = map() else { return span };
        if map[head::OFF_SINCE].load(Relaxed) != 0 {
            return span;
        }
        let Some(part) = own::part(map) else {
            map[head::UNRECORDED].fetch_add(1, Relaxed);
            return span;
        };
        span.place = Some((map, part));
        span.nested = map[part + thread::CURRENT].load(Relaxed) != 0;
        span.began = now();
        if !span.nested {
            map[part + thread::CURRENT_BEGAN].store(span.began, Relaxed);
            let peer = u64::try_from(peer).map_or(0, |peer| peer + 1);
            map[part + thread::CURRENT_PEER].store(peer, Relaxed);
            map[part + thread::CURRENT].store(u64::from(call.0) + 1, Relaxed);
        }
        span
    }

    /// Adds bytes of this task's data to the call.
    pub(crate) fn bytes(&mut self, bytes: usize) {
        self.bytes = self.bytes.wrapping_add(bytes as u64);
    }

    /// Records that the call has found nothing.
    pub(crate) fn found_nothing(&mut self) {
        self.quiet = true;
    }

    /// Records that the call has sent a message.
    #[inline]
    pub(crate) fn sent(&mut self, group: Group, to: c_int, tag: c_int, bytes: usize) {
        self.message(event::SENT, peers::task(group, to), tag, bytes as u64);
    }

    /// Records that the call has received the message with this status.
    #[inline]
    pub(crate) fn received(&mut self, group: Group, status: &Status) {
        let peer = peers::task(group, status.source);
        self.message(event::RECEIVED, peer, status.tag, status.length as u64);
    }

    fn message(&mut self, flags: u8, peer: i32, tag: i32, bytes: u64) {
        if peer < 0 {
            return;
        }
        // Counts messages even while recording is off, because the peer may record this message.
        let numbers = match flags {
            event::SENT => &sequence::SENT,
            _ => &sequence::RECEIVED,
        };
        let message = Message {
            flags,
            peer,
            tag,
            bytes,
            sequence: numbers.next(peer, tag),
        };
        let Some((map, part)) = self.place else {
            return;
        };
        peers::count(map, part, &message);
        self.bytes = self.bytes.wrapping_add(bytes);
        if self.message.flags == 0 {
            self.message = message;
            return;
        }
        let at = match flags {
            event::SENT => self.began,
            _ => now(),
        };
        events::write(map, part, event::MESSAGE, (at, at), message);
    }

    /// Ends the call with this result, and returns the result.
    #[inline]
    pub(crate) fn leave(self, result: c_int) -> c_int {
        let Some((map, part)) = self.place else {
            return result;
        };
        let ended = now();
        let at = part + thread::CALLS + usize::from(self.call.0) * call::WORDS;
        add(&map[at + call::COUNT], 1);
        add(&map[at + call::BYTES], self.bytes);
        let failed = result < OK && result != ERR_NOTHING;
        if failed {
            add(&map[at + call::FAILED], 1);
        }
        if !self.nested {
            let time = ended.saturating_sub(self.began);
            add(&map[at + call::TIME], time);
            if time > map[at + call::MAX_TIME].load(Relaxed) {
                map[at + call::MAX_TIME].store(time, Relaxed);
            }
            map[part + thread::LAST].store(ended, Relaxed);
            map[head::LAST].store(ended, Relaxed);
            map[part + thread::CURRENT].store(0, Relaxed);
        }
        if !self.quiet && result != ERR_NOTHING {
            let mut message = self.message;
            if message.flags == 0 {
                message.bytes = self.bytes;
            }
            message.flags |= if failed { event::FAILED } else { 0 };
            events::write(map, part, self.call.0, (self.began, ended), message);
        }
        result
    }
}
