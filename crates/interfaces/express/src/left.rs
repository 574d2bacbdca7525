//! How a host program waits for a message: as long as a node is left that could write.
//!
//! A node that fails does not end a host program that was started by hand. When all nodes have ended, the message
//! cannot come, and the wait fails. Nodes do not check this: the launcher ends the job when a node fails.

use std::ffi::c_int;

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::place::place;
use regatta_nodes::rg;

use crate::look::look;
use crate::select::Choice;

/// Interval in milliseconds at which a waiting host program checks whether a node is left.
const LIVENESS_CHECK_MILLISECONDS: c_int = 200;

/// Returns whether this is a host program with nodes.
#[inline(always)]
pub fn is_host() -> bool {
    place().node < 0
}

/// Fails, with the error about the last node, if all nodes have ended.
fn check_nodes() -> Result<(), Fault> {
    let place = place();
    let mut last = Ok(());
    for task in place.first..place.first + place.nodes {
        // Looking for a message from a node that has ended fails if none is left.
        match look(Choice { task, tag: rg::ANY }) {
            Ok(_) => return Ok(()),
            Err(why) => last = Err(why.in_words()),
        }
    }
    last
}

/// Sleeps until there may be something to process.
pub fn sleep() -> Result<(), Fault> {
    let mut fd = -1;
    // SAFETY: the result points to a local variable.
    checked(unsafe { rg::rg_fd(&mut fd) })?;
    let mut wait = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let patience = if is_host() {
        LIVENESS_CHECK_MILLISECONDS
    } else {
        -1
    };
    // SAFETY: the array has one entry. A signal ends the wait early, which is harmless.
    if unsafe { libc::poll(&mut wait, 1, patience) } == 0 {
        check_nodes()?;
    }
    // SAFETY: the call takes plain values only.
    checked(unsafe { rg::rg_clear_fd() })
}

/// Waits, on a host program, for any matching message, and returns its selection.
#[cold]
pub fn await_some(choice: Choice) -> Result<Choice, Fault> {
    loop {
        if let Some(status) = look(choice)? {
            return Ok(Choice {
                task: status.source,
                tag: status.tag,
            });
        }
        sleep()?;
    }
}

/// Waits, on a host program, until a request is complete, and returns Regatta's code.
#[cold]
pub fn await_end(request: &mut rg::Request, status: &mut rg::Status) -> Result<c_int, Fault> {
    loop {
        let mut done = 0;
        // SAFETY: the request is valid, and the results point to local variables.
        let code = unsafe { rg::rg_test(request, &mut done, status) };
        if done != 0 || code != rg::OK {
            return Ok(code);
        }
        sleep()?;
    }
}
