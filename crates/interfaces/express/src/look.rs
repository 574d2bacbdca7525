//! Probing for messages without reading them.
//!
//! Nodes that a host program has released may still write to it. A read from any node does not match them.

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::own::Own;
use regatta_nodes::rg;

use crate::constants::NONODE;
use crate::select::{CHANNEL, Choice, node_of};

/// Whether nodes have been released.
static GIVEN_BACK: Own<bool> = Own::new(false);

/// Records that nodes have been released: messages that they still write are dropped.
pub fn expect_former_nodes() {
    *GIVEN_BACK.get() = true;
}

/// Returns whether a message with this selection may be from a released node.
#[inline(always)]
pub fn may_be_of_former_node(choice: Choice) -> bool {
    choice.task == rg::ANY && *GIVEN_BACK.get()
}

/// Returns the first matching message that has arrived.
#[inline(always)]
pub fn look(choice: Choice) -> Result<Option<rg::Status>, Fault> {
    loop {
        let (mut found, mut status) = (0, rg::Status::default());
        let (task, tag) = (choice.task, choice.tag);
        // SAFETY: the results point to local variables.
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

/// Drops the first message from this sender with this type, which has arrived.
pub fn drop_message(message: Choice) -> Result<(), Fault> {
    let (none, task, tag) = (std::ptr::null_mut(), message.task, message.tag);
    // SAFETY: the buffer has size 0.
    match unsafe { rg::rg_recv(none, 0, task, tag, CHANNEL, std::ptr::null_mut()) } {
        rg::ERR_TRUNCATED => Ok(()),
        code => checked(code),
    }
}
