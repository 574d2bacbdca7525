//! Sends that do not wait for their receivers.
//!
//! A message that finds no room is copied and kept here until it goes, in later calls of this task. A large one is offered
//! first as it is: most receivers take it at once, and then it goes straight from the caller's memory. When it stands
//! still, it is copied where it is, in whatever state, and goes on from the copy.

use std::time::Duration;

use regatta_engine::{Error, Frames, Going, GroupId, Handle, Mode, Peer, Result, Status};
use regatta_memory::views::Views;

use crate::message::check_tag;
use crate::state::{NONE, Process, enter};
use crate::wait::{Awaited, wait_for, wake_other_threads};

/// How long a large message may stand still. A task that waits for something else takes in what it is offered after
/// 1 ms; one that has not by now computes.
const PATIENCE: Duration = Duration::from_millis(3);

/// As long as this where a large message from another task waits for a receive here: two that send to each other before either
/// receives stand still for good.
const PATIENCE_OFFERED: Duration = Duration::from_micros(20);

/// Send without waiting for the receiver; the memory is the caller's again when this returns. For those that `send_now`
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
    if message.len() > held.engine.transport.eager_limit_to(to) {
        let sent = held
            .engine
            .start_send(to, context, tag, message.clone(), Mode::Standard)?;
        drop(held);
        if is_taken(sent, &message)? {
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
fn is_taken(handle: Handle, message: &Views) -> Result<bool> {
    if handle == Handle::COMPLETE {
        return Ok(true);
    }
    let outcome = match is_soon_taken(handle, message) {
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

fn is_soon_taken(handle: Handle, message: &Views) -> Result<Still> {
    loop {
        if let Some(outcome) = wait_for(Soon::new(handle))? {
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
            Some(Going::Sent(_)) => {}
        }
        // Without memory for a copy its receiver is asked for it, and waited for.
        let Ok((bytes, copy)) = copy(message) else {
            return Ok(Still::Here);
        };
        if held.engine.send_from(handle, copy)? {
            held.keep_until_sent(handle, bytes)?;
            return Ok(Still::Copied);
        }
    }
}

/// The outcome of a request, unless it stands still.
struct Soon {
    handle: Handle,
    /// How it is getting on, and since when that has not changed.
    going: Option<Going>,
    since: Duration,
    /// How long it may stand still.
    patience: Duration,
    late: bool,
}

impl Soon {
    fn new(handle: Handle) -> Soon {
        Soon {
            handle,
            going: None,
            since: Duration::ZERO,
            patience: PATIENCE,
            late: false,
        }
    }

    fn look_for_offers(&mut self, process: &Process) {
        self.patience = match process.engine.is_stuck() {
            true => PATIENCE_OFFERED,
            false => PATIENCE,
        };
    }
}

impl Awaited for Soon {
    type Output = Option<(Status, Option<Error>)>;
    const PROGRESSES: bool = true;

    fn poll(&mut self, process: &mut Process) -> Result<Option<Self::Output>> {
        process.engine.progress();
        match process.engine.finish(self.handle)? {
            Some(outcome) => Ok(Some(Some(outcome))),
            None => Ok(self.late.then_some(None)),
        }
    }

    fn announce(&mut self, process: &mut Process, asleep: bool) -> bool {
        if asleep {
            self.look_for_offers(process);
        }
        true
    }

    fn check(&mut self, process: &mut Process, waited: Duration) -> Result<()> {
        self.look_for_offers(process);
        let going = process.engine.going(self.handle);
        if going != self.going || going == Some(Going::Read) {
            (self.going, self.since) = (going, waited);
        }
        self.late = going == Some(Going::Filled) || waited - self.since >= self.patience;
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
            drop(bytes);
            if let Ok(mut held) = enter() {
                held.copies -= 1;
            }
        };
        self.call_back(handle, Box::new(release))
    }
}

/// A copy of a message, and the memory it is in: to be kept while the other is used.
fn copy(message: &Views) -> Result<(Vec<u8>, Views)> {
    let mut bytes = message.try_to_vec()?;
    // SAFETY: who calls this keeps the vector until the copy is not used any more; what it holds does not move with it.
    let copy = unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) };
    Ok((bytes, copy))
}
