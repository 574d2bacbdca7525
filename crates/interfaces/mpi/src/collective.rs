//! Collectives. Each is described once ([`Collective`]) and executed as the program requests: blocking, nonblocking or
//! persistent.
//!
//! Within one group the engine executes them. Its blocking collectives do not match nonblocking ones, so a blocking
//! call uses the engine's blocking collective in every process, whatever the datatypes are. Noncontiguous elements are
//! copied through separate memory. Collectives that the engine does not have use messages in the hidden group. All of
//! them are sent and received at once, under tags that only this collective uses, so no process waits for a later step
//! of another one. There is one exception: a reduction between two groups ends in one group, and one process of that
//! group sends the result to the other.
//!
//! All arguments of this process are checked before anything is sent.

pub mod describe;
mod engine;
mod execution;
mod forms;
pub mod intercommunicator;
pub mod memory;
pub mod messages;
pub mod neighbours;
pub mod quick;
mod reduction;

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use regatta_sys as rg;

pub(crate) use engine::entry;
pub use engine::{Arguments, Entry};
pub use execution::{begin, keep, run, slowly};
pub(crate) use forms::forms;
pub use reduction::{REDUCE, Reduction};

use crate::abi::*;
use crate::communicator::{Communicator, get};
use crate::error::{Error, Result};
use memory::Memory;
use messages::Message;

/// A collective, from the view of this process.
pub struct Collective {
    comm: Arc<Communicator>,
    /// The engine's collective, with its group.
    engine: Option<(Entry, rg::Group)>,
    /// Groups that only this collective uses, if it is persistent: `own` for the engine's collective, `own_hidden` for
    /// the messages.
    own: Option<OwnGroup>,
    own_hidden: Option<OwnGroup>,
    root: c_int,
    gives: LocalData,
    takes: LocalData,
    reduction: Option<Reduction>,
    sends: Vec<Message>,
    receives: Vec<Message>,
    /// Whether this process sends the result to the other group.
    leads: bool,
}

// SAFETY: it has the caller's buffers, which belong to the library until the collective is complete, and nothing that
// is bound to a thread.
unsafe impl Send for Collective {}

/// The elements that this process contributes or receives.
#[derive(Debug)]
pub enum LocalData {
    /// Nothing.
    Nothing,
    /// The elements in the buffer for the other direction (MPI_IN_PLACE).
    InPlace,
    /// A copy of the elements in the buffer for the other direction, for collectives that the engine cannot do in
    /// place.
    Copied,
    /// These elements.
    Memory(Memory),
}

impl LocalData {
    fn memory(&self) -> Option<&Memory> {
        match self {
            LocalData::Memory(memory) => Some(memory),
            _ => None,
        }
    }
}

/// A group of the engine that is freed when this is dropped.
struct OwnGroup(rg::Group);

impl Drop for OwnGroup {
    fn drop(&mut self) {
        if crate::process::require().is_ok() {
            // SAFETY: the call takes a handle and checks it.
            unsafe { rg::rg_group_free(self.0) };
        }
    }
}

impl Collective {
    /// Returns a collective in which this process does nothing.
    fn nothing(comm: Arc<Communicator>) -> Collective {
        Collective {
            comm,
            engine: None,
            own: None,
            own_hidden: None,
            root: 0,
            gives: LocalData::Nothing,
            takes: LocalData::Nothing,
            reduction: None,
            sends: Vec::new(),
            receives: Vec::new(),
            leads: false,
        }
    }

    /// Returns a collective that the engine executes.
    pub fn engine(
        comm: Arc<Communicator>,
        entry: Entry,
        gives: LocalData,
        takes: LocalData,
    ) -> Collective {
        let group = comm.group;
        Collective {
            engine: Some((entry, group)),
            gives,
            takes,
            ..Collective::nothing(comm)
        }
    }

    /// Sets the root.
    pub fn rooted(self, root: c_int) -> Collective {
        Collective { root, ..self }
    }

    /// Sets how elements are combined.
    pub fn reducing(self, reduction: Reduction) -> Collective {
        let reduction = Some(reduction);
        Collective { reduction, ..self }
    }

    /// Returns a collective that consists of messages.
    pub fn messages(
        comm: Arc<Communicator>,
        sends: Vec<Message>,
        receives: Vec<Message>,
    ) -> Collective {
        Collective {
            sends,
            receives,
            ..Collective::nothing(comm)
        }
    }
}

/// The lowest tag of the library's own messages for collectives.
const FIRST_TAG: c_int = 1 << 29;
/// Number of tags of one collective.
const TAGS: c_int = 1 << 10;

/// Returns the first tag of the next collective that uses messages. All processes call this in the same order.
pub fn next_tag(sequence: &AtomicU32) -> c_int {
    let number = sequence.fetch_add(1, Ordering::Relaxed) % (FIRST_TAG / TAGS) as u32;
    FIRST_TAG + number as c_int * TAGS
}

/// The role of this process in a collective with a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The root.
    Root,
    /// A process that exchanges messages with the root, which has this rank.
    Member(c_int),
    /// A process in the root's group of an intercommunicator, other than the root.
    Outside,
}

/// Returns the role of this process in a collective with this root.
pub fn role(comm: &Communicator, root: c_int) -> Result<Role> {
    let last = comm.peers().len() as c_int - 1;
    match (root, &comm.remote) {
        (ROOT, Some(_)) => Ok(Role::Root),
        (PROC_NULL, Some(_)) => Ok(Role::Outside),
        (_, None) if root == comm.rank => Ok(Role::Root),
        _ if (0..=last).contains(&root) => Ok(Role::Member(root)),
        (_, None) => Err(Error::new(
            ERR_ROOT,
            format!("the root is {root}; ranks here are 0 to {last}"),
        )),
        (_, Some(_)) => Err(Error::new(
            ERR_ROOT,
            format!(
                "the root is {root}; it must be MPI_ROOT, MPI_PROC_NULL, or a rank of the other side, 0 to {last}"
            ),
        )),
    }
}

/// Returns an intracommunicator. Fails for an intercommunicator.
pub fn of_one_group(comm: Comm) -> Result<Arc<Communicator>> {
    let comm = get(comm)?;
    match comm.remote {
        None => Ok(comm),
        Some(_) => Err(Error::new(
            ERR_COMM,
            "the communicator is an intercommunicator, which this call does not support",
        )),
    }
}
