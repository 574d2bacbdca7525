//! Sends that do not wait for their receivers.
//!
//! What finds no room is copied and kept here until it goes, in later calls of this task. A large message is offered
//! first as it is: most receivers take it at once, and then it is copied straight from the caller's memory.

use std::time::Duration;

use regatta_engine::{Error, GroupId, Handle, Mode, Peer, Result, Status, Transport};
use regatta_memory::views::Views;

use crate::message::check_tag;
use crate::state::{NONE, Process, enter};
use crate::wait::{Awaited, wait_for, wake_other_threads};

/// How long the receiver of a large message has to begin. A task that waits for something else takes in what it is
/// offered after 1 ms; one that has not by now computes.
const PATIENCE: Duration = Duration::from_millis(3);

/// Send without waiting for the receiver; the memory is the caller's again when this returns. For those that `send_now`
/// has refused.
#[inline(never)]
pub fn send_kept(message: Views, to: i32, tag: i32, group: GroupId) -> Result<()> {
    let mut held = enter()?;
    check_tag(tag)?;
    if to == NONE {
        return Ok(());
    }
    let (to, context) = held.address(group, to)?;
    if message.len() > held.engine.transport.eager_limit_to(to) {
        let sent = held
            .engine
            .start_send(to, context, tag, message.clone(), Mode::Standard)?;
        drop(held);
        if is_taken(sent)? {
            return Ok(());
        }
        held = enter()?;
    }
    held.keep(to, context, tag, &message)?;
    drop(held);
    wake_other_threads();
    Ok(())
}

/// Whether a send is over; if not, it has been taken back.
fn is_taken(handle: Handle) -> Result<bool> {
    if handle == Handle::SENT {
        return Ok(true);
    }
    let late = false;
    let outcome = match wait_for(Soon { handle, late }) {
        Ok(Some(outcome)) => Ok(outcome),
        // Its receiver may be taking it just now; then it is not taken back but ends soon.
        Ok(None) => {
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

/// The outcome of a request if it comes soon.
struct Soon {
    handle: Handle,
    late: bool,
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

    fn check(&mut self, _process: &mut Process, waited: Duration) -> Result<()> {
        self.late = waited >= PATIENCE;
        Ok(())
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }
}

impl Process {
    /// Send a copy, when it can go.
    fn keep(&mut self, to: Peer, context: u32, tag: i32, message: &Views) -> Result<()> {
        let mut bytes = message.try_to_vec()?;
        // SAFETY: the callback has the vector until the request is complete, and what it holds does not move with it.
        let copy = unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) };
        let handle = self
            .engine
            .start_send(to, context, tag, copy, Mode::Standard)?;
        if handle == Handle::SENT {
            return Ok(());
        }
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
