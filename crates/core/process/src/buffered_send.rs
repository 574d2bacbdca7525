//! Sends that do not wait for their receivers.
//!
//! A message that finds no room is copied and kept here until it goes, in later calls of this task. A large one is offered
//! first as it is: most receivers take it at once, and then it goes straight from the caller's memory. When it stands
//! still, it is copied where it is, in whatever state, and goes on from the copy.

use std::time::{Duration, Instant};

use regatta_engine::{Error, Frames, Going, GroupId, Handle, Mode, Peer, Result, Status, Upkeep};
use regatta_memory::views::{Refused, Views};

use crate::message::check_tag;
use crate::state::{NONE, Process, enter};
use crate::wait::{Awaited, wait_for, wake_other_threads};

/// Time a large message may stand still before it is copied. Within 1 ms a task that waits for something else takes in what it is
/// offered; one that has not by now computes.
const STALL_BEFORE_COPY: Duration = Duration::from_millis(3);

/// The same while a large message from another task waits for a receive here: tasks that send to each other in a circle before any
/// receives stand still for good.
const STALL_BEFORE_COPY_WHEN_OFFERED: Duration = Duration::from_micros(20);

/// The same while that other task is the receiver itself, which has as much to wait for as this one.
const STALL_BEFORE_COPY_WHEN_CROSSED: Duration = Duration::from_micros(2);

/// Number of polls between two checks of a message's progress.
const POLLS_BETWEEN_CHECKS: u32 = 16;

/// Maximum size of a buffer that is kept for the next copy, in bytes: getting new memory from the system for each takes as long as the
/// copy.
const MAX_SPARE_BYTES: usize = 16 << 20;

/// Sends without waiting for the receiver; the memory is the caller's again when this returns. For those that `try_send`
/// has refused.
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
    // A copy is made of what has to stay.
    if !held.engine.send_eagerly(to, context, tag, &message)? {
        held.keep(to, context, tag, &message)?;
    }
    drop(held);
    wake_other_threads();
    Ok(())
}

/// Whether a send is over, or goes on from a copy; if not, it has been taken back.
fn is_taken(handle: Handle, to: Peer, message: &Views) -> Result<bool> {
    if handle == Handle::COMPLETE {
        return Ok(true);
    }
    let outcome = match is_soon_taken(handle, to, message) {
        Ok(Still::Over(outcome)) => Ok(outcome),
        Ok(Still::Copied) => return Ok(true),
        // It has not even been offered, or is for this task itself, or there is no memory for a copy.
        Ok(Still::Here) => {
            // The lock is let go before the wait takes it again.
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

/// The state of a send that nobody waits for.
enum Still {
    /// It is over.
    Over((Status, Option<Error>)),
    /// It goes on from a copy, or from the stream that holds all of it.
    Copied,
    /// It is not in a stream.
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
                // Without memory for a copy its receiver is asked for it, and waited for.
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

/// The outcome of a request, unless it stands still.
struct Soon {
    handle: Handle,
    to: Peer,
    start: Instant,
    polls: u32,
    /// How it is getting on, and since when that has not changed.
    going: Option<Going>,
    since: Duration,
    /// How long it may stand still.
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
    /// Send a copy, when it can go.
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
    /// Keeps memory for the next copy, if it is worth that.
    fn set_spare(&mut self, room: Vec<u8>) {
        if (self.spare.capacity() + 1..=MAX_SPARE_BYTES).contains(&room.capacity()) {
            self.spare = room;
        }
    }

    /// Copies a message but for its first `sent` bytes, which are not read any more. Returns the copy, and the memory that it lies in and that must outlive it.
    fn copy_rest(&mut self, message: &Views, sent: usize) -> Result<(Vec<u8>, Views)> {
        let len = message.len();
        let mut room = std::mem::take(&mut self.spare);
        if room.capacity() < len {
            room = Vec::new();
            room.try_reserve_exact(len).map_err(|_| Refused(len))?;
        }
        let sent = sent.min(len);
        // SAFETY: who calls this keeps the vector until the copy is not used any more; what it holds does not move with it. It has room for so
        // many bytes, and is apart from the message. The bytes before `sent` are not read any more.
        let copy = unsafe {
            message.gather(sent, room.as_mut_ptr().add(sent), len - sent);
            Views::block(room.as_mut_ptr(), len)
        };
        Ok((room, copy))
    }
}

/// A copy of a message, and the memory it is in: to be kept while the other is used.
fn copy(message: &Views) -> Result<(Vec<u8>, Views)> {
    let mut bytes = message.try_to_vec()?;
    // SAFETY: who calls this keeps the vector until the copy is not used any more; what it holds does not move with it.
    let copy = unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) };
    Ok((bytes, copy))
}
