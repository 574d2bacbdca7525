//! Communicators.
//!
//! A communicator has two groups of the engine: one for the program's messages, and a hidden one for the library's. The
//! groups of an intercommunicator have the members of both groups: those of the low group first, then those of the
//! other one.
//!
//! Messages need only a few numbers of a communicator. They read them in its *route*, without a lock. Everything else
//! uses the object.

mod duplication;
mod inter;
pub mod internal_messages;
mod making;
mod members;
mod parent;
mod registry;
pub(crate) mod routes;
mod shrinking;

use std::ffi::{CStr, CString, c_int};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use regatta_sys as rg;

pub use duplication::begin as begin_dup;
pub use inter::{LeaderExchange, connect, create_inter, create_inter_from_groups, merge};
pub use making::{Inherited, Made, create, create_from_group, create_group, dup, publish, split};
pub use members::Members;
pub use parent::{
    TAG as PARENT_TAG, VARIABLE as PARENT_VARIABLE, application, message as parent_message,
};
pub use registry::{all, get, insert, remove, try_get, with};
pub use routes::{Route, route, status_of};
pub use shrinking::shrink;

use crate::abi::*;
use crate::attributes::Attributes;
use crate::errhandler::{Handled, HandlerSlot};
use crate::error::{Error, PROC_FAILED, REVOKED, Result, checked};
use crate::info::Hints;
use crate::process;
use crate::topology::Topology;

/// A communicator.
pub struct Communicator {
    /// Its handle.
    pub handle: Comm,
    /// The engine's group for the program's messages, and for collectives of all members of both groups.
    pub group: rg::Group,
    /// The engine's group for the library's own messages.
    pub hidden: rg::Group,
    /// The local group.
    pub local: Members,
    /// This process's rank in the local group.
    pub rank: c_int,
    /// The rank in `group` of the first process of the local group.
    pub base: c_int,
    /// The remote group of an intercommunicator.
    pub remote: Option<Remote>,
    /// Its error handler.
    pub errhandler: HandlerSlot,
    /// Number of collectives so far that use messages.
    pub sequence: AtomicU32,
    /// Its attributes.
    pub attributes: Attributes<Comm>,
    /// Its topology.
    pub topology: Option<Topology>,
    described: Mutex<Description>,
}

/// Properties of a communicator that the program sets.
#[derive(Clone, Debug, Default)]
struct Description {
    name: CString,
    hints: Hints,
    /// Task numbers of processes whose failure has been acknowledged.
    acknowledged: Vec<c_int>,
}

/// The remote group of an intercommunicator.
pub struct Remote {
    /// Its processes.
    pub members: Members,
    /// The rank in `group` of its first process.
    pub base: c_int,
    /// The engine's group with the local processes only.
    pub own: rg::Group,
}

impl Communicator {
    /// Returns the size of the local group.
    pub fn size(&self) -> c_int {
        self.local.len() as c_int
    }

    /// Returns the processes that messages are sent to: the remote group of an intercommunicator, otherwise the local
    /// group.
    pub fn peers(&self) -> &Members {
        self.remote
            .as_ref()
            .map_or(&self.local, |remote| &remote.members)
    }

    /// Returns the rank in `group` of the first process that messages are sent to.
    pub fn peer_base(&self) -> c_int {
        self.remote.as_ref().map_or(0, |remote| remote.base)
    }

    /// Returns the engine's group with the local processes only.
    pub fn own_group(&self) -> rg::Group {
        self.remote.as_ref().map_or(self.group, |remote| remote.own)
    }

    /// Fails if this process knows that the communicator is revoked or a member has failed.
    pub fn check_intact(&self) -> Result {
        // SAFETY: the call takes the group by value and no pointers.
        match unsafe { rg::rg_group_is_revoked(self.group) } {
            1 => return Err(Error::new(REVOKED, "the communicator is revoked")),
            code => checked(code)?,
        }
        let (mut first, mut count) = (0, 0);
        // SAFETY: the array has room for one rank; the call may write the number.
        checked(unsafe { rg::rg_dead(self.group, &mut first, 1, &mut count) })?;
        match count {
            0 => Ok(()),
            _ => {
                let text = format!("process {first} of the communicator has failed");
                Err(Error::new(PROC_FAILED, text))
            }
        }
    }

    fn with_description<T>(&self, act: impl FnOnce(&mut Description) -> T) -> T {
        act(&mut self
            .described
            .lock()
            .unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns its name.
    pub fn name(&self) -> CString {
        self.with_description(|it| it.name.clone())
    }

    /// Calls `use_name` with the name. Returns `None` if another call has the name locked.
    pub fn try_with_name<T>(&self, use_name: impl FnOnce(&CStr) -> T) -> Option<T> {
        let description = self.described.try_lock().ok()?;
        Some(use_name(&description.name))
    }

    /// Sets its name.
    pub fn set_name(&self, name: CString) {
        self.with_description(|it| it.name = name);
    }

    /// Returns its hints.
    pub fn hints(&self) -> Hints {
        self.with_description(|it| it.hints.clone())
    }

    /// Returns the processes whose failure has been acknowledged.
    pub fn acknowledged(&self) -> Members {
        self.with_description(|it| it.acknowledged.clone()).into()
    }

    /// Sets the processes whose failure has been acknowledged.
    pub fn acknowledge(&self, failed: Vec<c_int>) {
        self.with_description(|it| it.acknowledged = failed);
    }

    /// Sets these hints; other hints keep their values.
    pub fn set_hints(&self, hints: &Hints) {
        self.with_description(|it| it.hints.merge(hints));
    }
}

impl Handled for Communicator {
    fn errhandler(&self) -> &HandlerSlot {
        &self.errhandler
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if !process::is_active() {
            return;
        }
        let own = self.remote.as_ref().map(|remote| remote.own);
        for group in [Some(self.group), Some(self.hidden), own] {
            making::free(group);
        }
    }
}

/// The size of MPI_COMM_WORLD; 0 before MPI is initialized. It is kept after MPI_Finalize.
static WORLD_SIZE: AtomicI32 = AtomicI32::new(0);

/// Returns the size of MPI_COMM_WORLD, also after MPI_Finalize. Returns `None` if MPI has never been initialized.
pub fn world_size() -> Option<c_int> {
    Some(WORLD_SIZE.load(Ordering::Relaxed)).filter(|&size| size > 0)
}

/// Makes MPI_COMM_WORLD, MPI_COMM_SELF, and the intercommunicator with the processes that started this one.
pub fn make_world() -> Result {
    let tasks = Members::of_world()?;
    WORLD_SIZE.store(tasks.len() as c_int, Ordering::Relaxed);
    let group = match Members::of_engine(rg::WORLD)? == tasks {
        true => rg::WORLD,
        false => making::select(rg::ALL, &tasks, making::UNTOLD)?,
    };
    let world = Made::of_group(group)?;
    registry::insert_predefined(
        world.with_handle(COMM_WORLD, Inherited::named(c"MPI_COMM_WORLD")),
    )?;
    // SAFETY: the call has no arguments and no preconditions.
    let own = unsafe { rg::rg_tid() };
    checked(own)?;
    let own = Made::of_group(making::select(rg::ALL, &[own], making::UNTOLD)?)?;
    registry::insert_predefined(own.with_handle(COMM_SELF, Inherited::named(c"MPI_COMM_SELF")))?;
    parent::meet_parents()
}

/// Removes MPI_COMM_WORLD and MPI_COMM_SELF when MPI is finalized. The attributes of MPI_COMM_SELF are deleted first.
pub fn leave_world() -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    let deleted = unsafe { get(COMM_SELF)?.attributes.delete_all(COMM_SELF) };
    let _ = remove(COMM_SELF);
    let _ = remove(COMM_WORLD);
    deleted
}

/// Returns the intercommunicator with the processes that started this one, or MPI_COMM_NULL.
pub fn parent() -> Comm {
    parent::parent()
}
