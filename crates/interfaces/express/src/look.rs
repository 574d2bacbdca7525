//! Looks at messages that have come, without reading them.
//!
//! Nodes that a host program has given back may still write to it. Where any node is meant, they are not.

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::own::Own;
use regatta_nodes::rg;

use crate::constants::NONODE;
use crate::select::{CHANNEL, Choice, node_of};

/// Nodes have been given back.
static GIVEN_BACK: Own<bool> = Own::new(false);

/// Nodes are given back: what they write from now on is dropped.
pub fn expect_former_nodes() {
    *GIVEN_BACK.get() = true;
}

/// Whether a message that is chosen so may be of somebody who is no node any more.
#[inline(always)]
pub fn may_be_of_former_node(choice: Choice) -> bool {
    choice.task == rg::ANY && *GIVEN_BACK.get()
}

/// The first message of this kind that has come.
#[inline(always)]
pub fn look(choice: Choice) -> Result<Option<rg::Status>, Fault> {
    loop {
        let (mut found, mut status) = (0, rg::Status::default());
        let (task, tag) = (choice.task, choice.tag);
        // SAFETY: places for the answers.
        checked(unsafe { rg::rg_iprobe(task, tag, CHANNEL, &mut found, &mut status) })?;
        if found == 0 {
            return Ok(None);
        }
        if !may_be_of_former_node(choice) || node_of(status.source) != NONODE {
            return Ok(Some(status));
        }
        drop_message(Choice {
            task: status.source,
            tag: status.tag,
        })?;
    }
}

/// Drops the first message of this sender and type, which has come.
pub fn drop_message(message: Choice) -> Result<(), Fault> {
    let (none, task, tag) = (std::ptr::null_mut(), message.task, message.tag);
    // SAFETY: nothing is to be written.
    match unsafe { rg::rg_recv(none, 0, task, tag, CHANNEL, std::ptr::null_mut()) } {
        rg::ERR_TRUNCATED => Ok(()),
        code => checked(code),
    }
}
