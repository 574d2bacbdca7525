//! Fast paths of sends and receives. Each does its whole operation at once, or has no effect. In the latter case the caller uses the general path
//! ([`message`](crate::message)), which also returns the error, if any.
//!
//! A fast path enters the engine only if that costs nothing, in one of two ways. The name of a function says which:
//!
//! | name | entered by | for |
//! |---|---|---|
//! | `try_..._as_owner` | the thread to which the lock is biased: the first that has called, while no second one has | leaf functions: code that calls no other function, and so saves no registers |
//! | `try_...` | that thread; with several threads, any of them while none is inside | the rest |
//!
//! [`enter_or!`] makes the code inside a part of the caller; [`as_owner`](crate::state::as_owner) takes it as a closure, for callers that continue
//! outside.
//!
//! *Rules for small blocking sends and receives that need not wait:* one passage through the lock, no request, no allocation, no clock, and no
//! system call unless the receiver sleeps. (docs/hot-paths.md names the test.)

pub use regatta_engine::SentLine;
use regatta_engine::{Frames, GroupId, Handle, Peer, Polled};
pub use regatta_memory::ring::INLINE as LINE;
use regatta_memory::views::Views;

use crate::state::{Process, enter, enter_or};

/// Number of polls of a blocking receive before it becomes a request: this takes about as long as an answer.
pub(crate) const POLLS_BEFORE_REQUEST: u32 = 1000;

/// Sends a small message if possible at once, and returns whether it was sent. A message that fits into a line of a ring takes a shorter path.
#[inline(always)]
pub fn try_send(message: &Views, to: i32, tag: i32, group: GroupId) -> bool {
    enter_or!(try_enter, process, false);
    let Some((to, context)) = process.address_now(group, to) else {
        return false;
    };
    if tag < 0 {
        return false;
    }
    let engine = &mut process.engine;
    if message.len() <= LINE {
        let sent = engine.try_send_line(to, context, tag, message);
        if sent == SentLine::ToSleeper {
            engine.transport_mut().wake(to);
        }
        if sent != SentLine::No {
            return true;
        }
    }
    engine.try_send(to, context, tag, message)
}

/// Sends a message that fits into a line of a ring, [`LINE`] bytes, to a rank of the world. Does not wake a sleeping receiver ([`wake_receiver`]).
///
/// Each store of this path is queued with the stores to shared memory, which take as long as a cache line takes from core to core. The more stores a
/// message needs, the fewer messages are in flight at once. So this is a leaf function: everything that would need a call is left to others.
#[inline(always)]
pub fn try_send_as_owner(message: &Views, to: i32, tag: i32, group: GroupId) -> SentLine {
    if group != GroupId::WORLD {
        return SentLine::No;
    }
    enter_or!(try_enter_as_owner, process, SentLine::No);
    // Looking a task up among those that are gone would need a call.
    if tag < 0 || !process.is_world_rank(group, to) || !process.engine.is_nobody_gone() {
        return SentLine::No;
    }
    let to = process.first + to as u32;
    process.engine.try_send_line(to, 0, tag, message)
}

/// Wakes this rank of the world, to which a line was sent while it slept ([`SentLine::ToSleeper`]).
#[cold]
pub fn wake_receiver(to: i32) {
    if let Ok(mut held) = enter() {
        let peer = held.first + to as u32;
        held.engine.transport_mut().wake(peer);
    }
}

/// Receives a small message of this source and tag if it arrives soon. Returns its length.
#[inline(always)]
pub fn try_receive_as_owner(into: &Views, from: i32, tag: i32, group: GroupId) -> Option<usize> {
    enter_or!(try_enter_as_owner, process, None);
    if tag < 0 {
        return None;
    }
    let (from, context) = process.address_now(group, from)?;
    process.receive_soon(from, context, tag, into)
}

impl Process {
    /// Receives a small message of this peer if it is the next frame now or soon. Returns its length.
    #[inline(always)]
    pub(crate) fn receive_soon(
        &mut self,
        from: Peer,
        context: u32,
        tag: i32,
        into: &Views,
    ) -> Option<usize> {
        let engine = &mut self.engine;
        let looks = if self.pace.spins() {
            POLLS_BEFORE_REQUEST
        } else {
            1
        };
        for look in 0..looks {
            match engine.poll_matching(from, context, tag, into) {
                Polled::Received(length) => return Some(length),
                Polled::Other => return None,
                Polled::Nothing => {}
            }
            if look == 0 {
                engine.prepare(from);
            }
            std::hint::spin_loop();
        }
        None
    }
}

/// Starts to receive a message of this source and tag if no other receive is pending. Does not poll for it.
#[inline(always)]
pub fn try_post(into: &Views, from: i32, tag: i32, group: GroupId) -> Option<Handle> {
    enter_or!(try_enter, process, None);
    if tag < 0 {
        return None;
    }
    let (from, context) = process.address_now(group, from)?;
    process.engine.try_post(from, context, tag, into)
}

/// Does the same as [`try_post`], from a rank of the world: a leaf function like [`try_send_as_owner`].
#[inline(always)]
pub fn try_post_as_owner(into: &Views, from: i32, tag: i32, group: GroupId) -> Option<Handle> {
    if group != GroupId::WORLD {
        return None;
    }
    enter_or!(try_enter_as_owner, process, None);
    if tag < 0 || !process.is_world_rank(group, from) || !process.engine.is_nobody_gone() {
        return None;
    }
    let from = process.first + from as u32;
    process.engine.try_post(from, 0, tag, into)
}
