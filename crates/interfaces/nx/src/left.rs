//! How a host waits for a message: as long as a process is left that could send it.
//!
//! A node that fails does not end its host, which has asked to hear of it. When all have ended that it has loaded, a message that it waits for
//! will not come, and that is a fault. Nodes do not look: the launcher ends the job when one of them fails.

use std::ffi::c_int;

use crate::error::{EQNOACT, EQTIME, Fault, check};
use crate::host::take_notice;
use crate::receive::{Buffer, NO_STATUS, receive_within};
use crate::rg;
use crate::state::library;

/// Interval, in seconds, at which a host that waits checks who is left.
const LIVENESS_CHECK_SECONDS: f64 = 0.2;

/// Takes notice of ends. Whether a process is left.
fn somebody_is_left() -> Result<bool, Fault> {
    take_notice()?;
    let cube = library().cube.as_ref();
    Ok(cube.is_none_or(|cube| cube.running(-1, -1).is_some()))
}

/// Receives a message of Regatta's, on a host.
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
                // The last messages of a process come before its end is told.
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

/// A message of Regatta's that could be received now.
pub fn look(tag: c_int, channel: rg::Group, source: c_int) -> Result<Option<rg::Status>, Fault> {
    let (mut found, mut status) = (0, NO_STATUS);
    // SAFETY: places for the answer.
    check(unsafe { rg::rg_iprobe(source, tag, channel, &mut found, &mut status) })?;
    Ok((found != 0).then_some(status))
}

/// A message of Regatta's, as soon as one could be received.
pub fn await_one(tag: c_int, channel: rg::Group, source: c_int) -> Result<rg::Status, Fault> {
    if library().cube.is_some() {
        return until(|| look(tag, channel, source));
    }
    let mut status = NO_STATUS;
    // SAFETY: a place for the answer.
    check(unsafe { rg::rg_probe(source, tag, channel, &mut status) })?;
    Ok(status)
}

/// Looks again whenever something has come, until it is there. On a host, as long as somebody is left.
#[cold]
pub fn until<T>(mut look: impl FnMut() -> Result<Option<T>, Fault>) -> Result<T, Fault> {
    let mut descriptor = -1;
    let mut alone = false;
    // SAFETY: a place for the descriptor, which is Regatta's.
    check(unsafe { rg::rg_fd(&mut descriptor) })?;
    loop {
        // SAFETY: a plain call.
        check(unsafe { rg::rg_clear_fd() })?;
        if let Some(found) = look()? {
            return Ok(found);
        }
        // A look runs no handlers. Handlers that are due may take in messages.
        // SAFETY: a plain call.
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
        // SAFETY: one descriptor.
        if unsafe { libc::poll(&mut readable, 1, (LIVENESS_CHECK_SECONDS * 1000.0) as c_int) } <= 0
        {
            alone = !somebody_is_left()?;
        }
    }
}
