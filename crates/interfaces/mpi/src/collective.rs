//! Collectives: every one is described once ([`Collective`]), and carried out as the program asks: now, with a request, or
//! again and again.
//!
//! Within one group the engine does it, whose blocking and other forms do not meet: so a blocking call is the engine's blocking
//! one in every process, whatever its datatypes are. Elements that lie apart go through memory of their own. All that the engine
//! has no collective for goes by messages in the hidden group: all of them are sent and received at once, under a tag that
//! is this collective's alone. So nobody waits for what another one does later, with one exception: a reduction
//! between two groups ends on one side, and one process of that side sends the result to the other one.
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

/// A collective, as this process takes part in it.
pub struct Collective {
    comm: Arc<Communicator>,
    /// The engine's part, and its group.
    engine: Option<(Entry, rg::Group)>,
    /// Groups for this collective alone, if it is persistent: of the engine's part, and of the messages.
    own: Option<OwnGroup>,
    own_hidden: Option<OwnGroup>,
    root: c_int,
    gives: LocalData,
    takes: LocalData,
    reduction: Option<Reduction>,
    sends: Vec<Message>,
    receives: Vec<Message>,
    /// The result goes from here to the other side.
    leads: bool,
}

// SAFETY: it has the caller's buffers, which are the library's until the collective is complete, and no thread's things.
unsafe impl Send for Collective {}

/// The elements that this process gives, or gets.
#[derive(Debug)]
pub enum LocalData {
    /// Nothing.
    Nothing,
    /// The elements in the buffer for the other direction.
    InPlace,
    /// A copy of these elements, where the engine does not work in place.
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

/// A group of the engine's that is freed.
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
    /// One in which this process does nothing.
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

    /// One that the engine does.
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

    /// This one, with a root.
    pub fn rooted(self, root: c_int) -> Collective {
        Collective { root, ..self }
    }

    /// This one, of elements that are combined.
    pub fn reducing(self, reduction: Reduction) -> Collective {
        let reduction = Some(reduction);
        Collective { reduction, ..self }
    }

    /// One by messages.
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

/// Tags of the library's own messages for collectives are from here on.
const FIRST_TAG: c_int = 1 << 29;
/// Tags of one collective.
const TAGS: c_int = 1 << 10;

/// The tags of the next collective by messages: all processes call for them in the same order.
pub fn next_tag(sequence: &AtomicU32) -> c_int {
    let number = sequence.fetch_add(1, Ordering::Relaxed) % (FIRST_TAG / TAGS) as u32;
    FIRST_TAG + number as c_int * TAGS
}

/// The part of this process in a collective with a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The root.
    Root,
    /// Of the root with this rank, among those that messages go to.
    Member(c_int),
    /// On the root's side of an intercommunicator.
    Outside,
}

/// Returns the part of this process in a collective with this root.
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
                "the root is {root}; it is MPI_ROOT, MPI_PROC_NULL, or a rank of the other side, 0 to {last}"
            ),
        )),
    }
}

/// A communicator of one group.
pub fn of_one_group(comm: Comm) -> Result<Arc<Communicator>> {
    let comm = get(comm)?;
    match comm.remote {
        None => Ok(comm),
        Some(_) => Err(Error::new(
            ERR_COMM,
            "the communicator is an intercommunicator, which this call is not for",
        )),
    }
}
