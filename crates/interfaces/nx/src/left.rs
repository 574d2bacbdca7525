//! How a host waits for a message: as long as a process is left that could send it.
//!
//! A node that fails does not end its host, because the host has requested to be notified. When all processes that the
//! host has loaded have ended, a message for which it waits cannot come, and the wait fails. Nodes do not check this:
//! the launcher ends the job when a node fails.

use std::ffi::c_int;

use crate::error::{EQNOACT, EQTIME, Fault, check};
use crate::host::take_notice;
use crate::receive::{Buffer, NO_STATUS, receive_within};
use crate::rg;
use crate::state::library;

/// Interval in seconds at which a waiting host checks whether a process is left.
const LIVENESS_CHECK_SECONDS: f64 = 0.2;

/// Handles the ends of processes that have been reported. Returns whether a process is left.
fn somebody_is_left() -> Result<bool, Fault> {
    take_notice()?;
    let cube = library().cube.as_ref();
    Ok(cube.is_none_or(|cube| cube.running(-1, -1).is_some()))
}

/// Receives a message through Regatta, on a host.
#[cold]
pub fn receive(
    tag: c_int,
    channel: rg::Group,
    source: c_int,
    buffer: Buffer,
) -> Result<rg::Status, Fault> {
    let mut seconds = LIVENESS_CHECK_SECONDS;
    loop {
        match receive_within(tag, channel, source, buffer, seconds) {
            Err(fault) if fault.code == EQTIME && seconds == 0.0 => {
                return Err(Fault::plain(EQNOACT));
            }
            Err(fault) if fault.code == EQTIME => {
                // The last messages of a process arrive before the report of its end, so look once more.
                seconds = if somebody_is_left()? {
                    LIVENESS_CHECK_SECONDS
                } else {
                    0.0
                };
            }
            done => return done,
        }
    }
}

/// Returns the description of a message that could be received now, if there is one.
pub fn look(tag: c_int, channel: rg::Group, source: c_int) -> Result<Option<rg::Status>, Fault> {
    let (mut found, mut status) = (0, NO_STATUS);
    // SAFETY: the results point to local variables.
    check(unsafe { rg::rg_iprobe(source, tag, channel, &mut found, &mut status) })?;
    Ok((found != 0).then_some(status))
}

/// Waits until a message can be received, and returns its description.
pub fn await_one(tag: c_int, channel: rg::Group, source: c_int) -> Result<rg::Status, Fault> {
    if library().cube.is_some() {
        return until(|| look(tag, channel, source));
    }
    let mut status = NO_STATUS;
    // SAFETY: the result points to a local variable.
    check(unsafe { rg::rg_probe(source, tag, channel, &mut status) })?;
    Ok(status)
}

/// Calls `look` whenever something has arrived, until it finds something. On a host, fails if no process is left.
#[cold]
pub fn until<T>(mut look: impl FnMut() -> Result<Option<T>, Fault>) -> Result<T, Fault> {
    let mut descriptor = -1;
    let mut alone = false;
    // SAFETY: the result points to a local variable.
    check(unsafe { rg::rg_fd(&mut descriptor) })?;
    loop {
        // SAFETY: the call takes plain values only.
        check(unsafe { rg::rg_clear_fd() })?;
        if let Some(found) = look()? {
            return Ok(found);
        }
        // `look` runs no handlers. Handlers that are due may take in messages.
        // SAFETY: the call has no arguments.
        check(unsafe { rg::rg_progress() })?;
        if let Some(found) = look()? {
            return Ok(found);
        }
        if alone {
            return Err(Fault::plain(EQNOACT));
        }
        let mut readable = libc::pollfd {
            fd: descriptor,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the array has one entry.
        if unsafe { libc::poll(&mut readable, 1, (LIVENESS_CHECK_SECONDS * 1000.0) as c_int) } <= 0
        {
            alone = !somebody_is_left()?;
        }
    }
}
