//! How a host program waits for somebody: as long as a node is left that could write.
//!
//! A node that fails does not end a host program that was started by hand. When all nodes have ended, what it waits for will not come, and
//! that is a failure. Nodes do not look: the launcher ends the job when one of them fails.

use std::ffi::c_int;

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::place::place;
use regatta_nodes::rg;

use crate::look::look;
use crate::select::Choice;

/// Interval, in milliseconds, at which a host program that waits checks who is left.
const LIVENESS_CHECK_MILLISECONDS: c_int = 200;

/// Whether this is a host program with nodes.
#[inline(always)]
pub fn is_host() -> bool {
    place().node < 0
}

/// A failure, that of the last node, if all have ended.
fn check_nodes() -> Result<(), Fault> {
    let place = place();
    let mut last = Ok(());
    for task in place.first..place.first + place.nodes {
        // A node that has ended, of which nothing has come, is a failure.
        match look(Choice { task, tag: rg::ANY }) {
            Ok(_) => return Ok(()),
            Err(why) => last = Err(why.in_words()),
        }
    }
    last
}

/// Sleeps until there may be something to be taken notice of.
pub fn sleep() -> Result<(), Fault> {
    let mut fd = -1;
    // SAFETY: a place for the descriptor.
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
    // SAFETY: one entry. A signal ends it early, which does no harm.
    if unsafe { libc::poll(&mut wait, 1, patience) } == 0 {
        check_nodes()?;
    }
    // SAFETY: a plain call.
    checked(unsafe { rg::rg_clear_fd() })
}

/// On a host program: waits until there is a message of anybody; the choice of that one.
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

/// On a host program: waits until a request is over; Regatta's code.
#[cold]
pub fn await_end(request: &mut rg::Request, status: &mut rg::Status) -> Result<c_int, Fault> {
    loop {
        let mut done = 0;
        // SAFETY: a request of ours, and places for the answers.
        let code = unsafe { rg::rg_test(request, &mut done, status) };
        if done != 0 || code != rg::OK {
            return Ok(code);
        }
        sleep()?;
    }
}
