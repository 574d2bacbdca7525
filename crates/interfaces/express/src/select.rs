//! Maps nodes and types, as programs name them, to Regatta's tasks and tags.
//!
//! Messages have a channel of their own, separate from everything else in the program. In it a node is addressed by its
//! task, and the type is the tag.

use std::ffi::c_int;

use regatta_nodes::fault::Fault;
use regatta_nodes::place::place;
use regatta_nodes::rg;

use crate::constants::{DONTCARE, HOST, NONODE};

/// The channel of all messages between nodes: "EX".
pub const CHANNEL: rg::Group = rg::library_channel(0x0045_5800);

/// Returns the task of a node.
#[inline(always)]
pub fn task_of(node: c_int) -> Result<c_int, Fault> {
    let place = place();
    if (0..place.nodes).contains(&node) {
        return Ok(place.first + node);
    }
    match node {
        HOST if place.host >= 0 => Ok(place.host),
        _ => Err(no_node(node)),
    }
}

#[cold]
pub fn no_node(node: c_int) -> Fault {
    let nodes = place().nodes;
    match node {
        HOST => Fault::says("this program has no host program"),
        _ => Fault::says(format!("there is no node {node}; there are {nodes}")),
    }
}

/// Returns the node of a task, or `NONODE` for a node that has been released.
#[inline(always)]
pub fn node_of(task: c_int) -> c_int {
    let place = place();
    match task.wrapping_sub(place.first) {
        _ if task == place.host => HOST,
        node if (0..place.nodes).contains(&node) => node,
        _ => NONODE,
    }
}

/// Returns the program's number, or `none` if it passes NULL.
///
/// # Safety
/// `place` is valid or NULL.
#[inline(always)]
unsafe fn number(place: *const c_int, none: c_int) -> c_int {
    match place.is_null() {
        true => none,
        // SAFETY: the caller guarantees that the memory is valid.
        false => unsafe { *place },
    }
}

/// The receiver of a message as a task, and its tag.
pub struct Address {
    pub task: c_int,
    pub tag: c_int,
}

impl Address {
    /// Converts the arguments of a call. Returns `None` if the receiver is `NONODE`.
    ///
    /// # Safety
    /// `node` and `kind` are valid or NULL.
    #[inline(always)]
    pub unsafe fn read(node: *const c_int, kind: *const c_int) -> Result<Option<Address>, Fault> {
        // SAFETY: the caller guarantees that the memory is valid.
        let (node, tag) = unsafe { (number(node, DONTCARE), number(kind, DONTCARE)) };
        if node == NONODE {
            return Ok(None);
        }
        if tag < 0 {
            return Err(no_type(tag));
        }
        let task = task_of(node)?;
        Ok(Some(Address { task, tag }))
    }
}

#[cold]
fn no_type(tag: c_int) -> Fault {
    Fault::says(format!("{tag} is not a valid type; types start at 0"))
}

/// A selection of messages by sender and type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub task: c_int,
    pub tag: c_int,
}

impl Choice {
    /// Returns whether a message of this task with this tag matches.
    pub fn takes(&self, task: c_int, tag: c_int) -> bool {
        let fits = |wanted: c_int, is: c_int| wanted == rg::ANY || wanted == is;
        fits(self.task, task) && fits(self.tag, tag)
    }

    /// Converts the arguments of a call. Returns `None` if the sender is `NONODE`. NULL means `DONTCARE`.
    ///
    /// # Safety
    /// `node` and `kind` are valid or NULL.
    #[inline(always)]
    pub unsafe fn read(node: *const c_int, kind: *const c_int) -> Result<Option<Choice>, Fault> {
        // SAFETY: the caller guarantees that the memory is valid.
        let (node, tag) = unsafe { (number(node, DONTCARE), number(kind, DONTCARE)) };
        let tag = match tag {
            DONTCARE => rg::ANY,
            ..0 => return Err(no_type(tag)),
            tag => tag,
        };
        let task = match node {
            NONODE => return Ok(None),
            DONTCARE => rg::ANY,
            node => task_of(node)?,
        };
        Ok(Some(Choice { task, tag }))
    }
}

/// Writes the sender and the type of a message to the program's variables. A number that is already right is not
/// written: it may be a Fortran constant in read-only memory.
///
/// # Safety
/// `node` and `kind` are valid or NULL.
#[inline(always)]
pub unsafe fn tell(node: *mut c_int, kind: *mut c_int, status: &rg::Status) {
    for (place, value) in [(node, node_of(status.source)), (kind, status.tag)] {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe {
            if !place.is_null() && *place != value {
                *place = value;
            }
        }
    }
}
