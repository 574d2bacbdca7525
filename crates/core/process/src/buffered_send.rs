//! Sends that do not wait for their receivers.
//!
//! A message for which there is no space is copied and kept here until a later call of this task can send it. A large one is first offered without a
//! copy: most receivers take it at once, directly from the caller's memory. If it makes no progress, it is copied in its current state and continued
//! from the copy.

use std::time::{Duration, Instant};

use regatta_engine::{Error, Frames, Going, GroupId, Handle, Mode, Peer, Result, Status, Upkeep};
use regatta_memory::views::{Refused, Views};

use crate::message::check_tag;
use crate::state::{NONE, Process, enter};
use crate::wait::{Awaited, wait_for, wake_other_threads};

/// Time without progress after which a large message is copied. A task that waits for something else receives offered messages within 1 ms; one that
/// has not by now computes.
const STALL_BEFORE_COPY: Duration = Duration::from_millis(3);

/// The same while a large message from another task waits for a receive here: tasks that send to each other in a cycle before any of them receives
/// would never make progress.
const STALL_BEFORE_COPY_WHEN_OFFERED: Duration = Duration::from_micros(20);

/// The same while that other task is the receiver itself, which is in the same situation as this one.
const STALL_BEFORE_COPY_WHEN_CROSSED: Duration = Duration::from_micros(2);

/// Number of polls between two checks of a message's progress.
const POLLS_BETWEEN_CHECKS: u32 = 16;

/// Maximum size of a buffer that is kept for the next copy, in bytes. Getting new memory from the system takes as long as the copy.
const MAX_SPARE_BYTES: usize = 16 << 20;

/// Sends a message without waiting for the receiver. The memory belongs to the caller again when this returns. For messages that `try_send` could
/// not send.
#[inline(never)]
pub fn send_kept(message: Views, to: i32, tag: i32, group: GroupId) -> Result<()> {
    let mut held = enter()?;
    check_tag(tag)?;
    if to == NONE {
        held.check_open(group)?;
        return Ok(());
    }
    let (to, context) = held.address(group, to)?;
    if message.len() > held.engine.transport_mut().eager_limit_to(to) {
        let sent = held
            .engine
            .start_send(to, context, tag, message.clone(), Mode::Standard)?;
        drop(held);
        if is_taken(sent, to, &message)? {
            return Ok(());
        }
        held = enter()?;
    }
    // A copy is made only of what cannot be sent now.
    if !held.engine.send_eagerly(to, context, tag, &message)? {
        held.keep(to, context, tag, &message)?;
    }
    drop(held);
    wake_other_threads();
    Ok(())
}

/// Returns whether a send is complete or continues from a copy. Otherwise it was withdrawn.
fn is_taken(handle: Handle, to: Peer, message: &Views) -> Result<bool> {
    if handle == Handle::COMPLETE {
        return Ok(true);
    }
    let outcome = match is_soon_taken(handle, to, message) {
        Ok(Still::Over(outcome)) => Ok(outcome),
        Ok(Still::Copied) => return Ok(true),
        // The message was not even offered, or is for this task itself, or there is no memory for a copy.
        Ok(Still::Here) => {
            // Release the lock before the wait takes it again.
            let recalled = enter()?.engine.recall(handle);
            recalled.and_then(|()| crate::message::wait(handle))
        }
        Err(error) => Err(error),
    };
    match outcome {
        Ok((_, None)) => Ok(true),
        Ok((_, Some(Error::Cancelled))) => Ok(false),
        Ok((_, Some(error))) => Err(error),
        Err(error) => {
            enter()?.engine.forget(handle);
            Err(error)
        }
    }
}

/// The state of a send that must not wait.
enum Still {
    /// The send is complete.
    Over((Status, Option<Error>)),
    /// The send continues from a copy, or from the stream that contains all of it.
    Copied,
    /// The message is not in a stream, or there is no memory for a copy.
    Here,
}

fn is_soon_taken(handle: Handle, to: Peer, message: &Views) -> Result<Still> {
    loop {
        if let Some(outcome) = wait_for(Soon::new(handle, to))? {
            return Ok(Still::Over(outcome));
        }
        let mut held = enter()?;
        match held.engine.going(handle) {
            None => return Ok(Still::Here),
            Some(Going::Read) => continue,
            Some(Going::Filled) => {
                held.keep_until_sent(handle, Vec::new())?;
                return Ok(Still::Copied);
            }
            Some(Going::Sent(sent)) => {
                let sent = usize::try_from(sent.for_good).unwrap_or(usize::MAX);
                // Without memory for a copy, the caller withdraws the message and waits for the receiver's answer.
                let Ok((room, copy)) = held.copy_rest(message, sent) else {
                    return Ok(Still::Here);
                };
                if held.engine.send_from(handle, copy)? {
                    held.keep_until_sent(handle, room)?;
                    return Ok(Still::Copied);
                }
                held.set_spare(room);
            }
        }
    }
}

/// Waits for the outcome of a request, unless the request makes no progress.
struct Soon {
    handle: Handle,
    to: Peer,
    start: Instant,
    polls: u32,
    /// The progress, and the time since which it has not changed.
    going: Option<Going>,
    since: Duration,
    /// Maximum time without progress.
    patience: Duration,
    late: bool,
}

impl Soon {
    fn new(handle: Handle, to: Peer) -> Soon {
        Soon {
            handle,
            to,
            start: Instant::now(),
            polls: 0,
            going: None,
            since: Duration::ZERO,
            patience: STALL_BEFORE_COPY,
            late: false,
        }
    }

    fn look_for_offers(&mut self, process: &mut Process) {
        self.patience = if process.engine.is_offered_by(self.to) {
            process.engine.transport_mut().note_crossing(self.to);
            STALL_BEFORE_COPY_WHEN_CROSSED
        } else if process.engine.may_block_senders() {
            STALL_BEFORE_COPY_WHEN_OFFERED
        } else {
            STALL_BEFORE_COPY
        };
    }

    fn look(&mut self, process: &mut Process) {
        let waited = self.start.elapsed();
        let going = process.engine.going(self.handle);
        if going != self.going || going == Some(Going::Read) {
            (self.going, self.since) = (going, waited);
        }
        self.look_for_offers(process);
        self.late = going == Some(Going::Filled) || waited - self.since >= self.patience;
    }
}

impl Awaited for Soon {
    type Output = Option<(Status, Option<Error>)>;
    const PROGRESSES: bool = true;

    fn poll(&mut self, process: &mut Process) -> Result<Option<Self::Output>> {
        process.engine.progress();
        if let Some(outcome) = process.engine.finish(self.handle)? {
            self.look_for_offers(process);
            return Ok(Some(Some(outcome)));
        }
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(POLLS_BETWEEN_CHECKS) {
            self.look(process);
        }
        Ok(self.late.then_some(None))
    }

    fn announce(&mut self, process: &mut Process, asleep: bool) -> bool {
        if asleep {
            self.look_for_offers(process);
        }
        true
    }

    fn check(&mut self, process: &mut Process, _: Duration) -> Result<()> {
        self.look(process);
        Ok(())
    }

    fn patience(&self) -> Duration {
        self.patience
    }
}

impl Process {
    /// Sends a copy when possible.
    fn keep(&mut self, to: Peer, context: u32, tag: i32, message: &Views) -> Result<()> {
        let (bytes, copy) = copy(message)?;
        let handle = self
            .engine
            .start_send(to, context, tag, copy, Mode::Standard)?;
        match handle == Handle::COMPLETE {
            true => Ok(()),
            false => self.keep_until_sent(handle, bytes),
        }
    }

    fn keep_until_sent(&mut self, handle: Handle, bytes: Vec<u8>) -> Result<()> {
        self.copies += 1;
        let release = move |_, _| {
            if let Ok(mut held) = enter() {
                held.copies -= 1;
                held.set_spare(bytes);
            }
        };
        self.call_back(handle, Box::new(release))
    }
}

impl Process {
    /// Keeps memory for the next copy, if that is useful.
    fn set_spare(&mut self, room: Vec<u8>) {
        if (self.spare.capacity() + 1..=MAX_SPARE_BYTES).contains(&room.capacity()) {
            self.spare = room;
        }
    }

    /// Copies a message except for its first `sent` bytes, which are not read any more. Returns the memory of the copy and the copy. The memory must
    /// outlive the copy.
    fn copy_rest(&mut self, message: &Views, sent: usize) -> Result<(Vec<u8>, Views)> {
        let len = message.len();
        let mut room = std::mem::take(&mut self.spare);
        if room.capacity() < len {
            room = Vec::new();
            room.try_reserve_exact(len).map_err(|_| Refused(len))?;
        }
        let sent = sent.min(len);
        // SAFETY: the caller keeps the vector until the copy is not used any more, and its contents do not move with it. It has a capacity of at
        // least `len` bytes and does not overlap the message. The bytes before `sent` are not read any more.
        let copy = unsafe {
            message.gather(sent, room.as_mut_ptr().add(sent), len - sent);
            Views::block(room.as_mut_ptr(), len)
        };
        Ok((room, copy))
    }
}

/// Returns the memory of a copy of a message, and the copy. The caller keeps the former while it uses the latter.
fn copy(message: &Views) -> Result<(Vec<u8>, Views)> {
    let mut bytes = message.try_to_vec()?;
    // SAFETY: the caller keeps the vector until the copy is not used any more, and its contents do not move with it.
    let copy = unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) };
    Ok((bytes, copy))
}
