//! Making communicators from an intracommunicator, or from an intercommunicator.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use regatta_sys as rg;

use super::communicators::no_intra;
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::{self, Communicator, Inherited, Made, Members, publish};
use crate::errhandler::{HandlerSlot, Of};
use crate::error::{Error, Object, Result};
use crate::groups;
use crate::info::{self, Hints};
use crate::requests;
use crate::text;

/// Returns a new communicator to the caller, or MPI_COMM_NULL if this process is not in it.
pub(crate) fn give(made: Option<Made>, inherited: Inherited, to: Out<Comm>) -> Result {
    let handle = match made {
        Some(made) => publish(made, inherited)?.handle,
        None => COMM_NULL,
    };
    to.put(handle);
    Ok(())
}

/// Returns what a duplicate inherits besides its groups. If a callback of the program fails, there is no duplicate, and
/// the caller gets MPI_COMM_NULL.
unsafe fn copied(comm: &Communicator, hints: Hints, newcomm: Out<Comm>) -> Result<Inherited> {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    let attributes = unsafe { comm.attributes.copies(comm.handle) };
    let attributes = attributes.inspect_err(|_| newcomm.put(COMM_NULL))?;
    Ok(Inherited {
        attributes,
        topology: comm.topology.clone(),
        hints,
        ..Inherited::of(comm)
    })
}

unsafe fn duplicate(comm: &Communicator, hints: Hints, newcomm: Out<Comm>) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    let inherited = unsafe { copied(comm, hints, newcomm)? };
    give(Some(communicator::dup(comm)?), inherited, newcomm)
}

pub unsafe fn comm_dup(comm: Arc<Communicator>, newcomm: Out<Comm>) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    unsafe { duplicate(&comm, comm.hints(), newcomm) }
}

pub unsafe fn comm_dup_with_info(
    comm: Arc<Communicator>,
    info: Info,
    newcomm: Out<Comm>,
) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    unsafe { duplicate(&comm, info::optional(info)?, newcomm) }
}

/// Begins a duplication.
unsafe fn duplicating(
    comm: Arc<Communicator>,
    hints: Hints,
    newcomm: Out<Comm>,
    request: Out<Request>,
) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    let inherited = unsafe { copied(&comm, hints, newcomm)? };
    let of = comm.handle;
    let (handle, operation) = communicator::begin_dup(comm, inherited)?;
    newcomm.put(handle);
    request.put(requests::of_operation(operation, of)?);
    Ok(())
}

pub unsafe fn comm_idup(
    comm: Arc<Communicator>,
    newcomm: Out<Comm>,
    request: Out<Request>,
) -> Result {
    let hints = comm.hints();
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    unsafe { duplicating(comm, hints, newcomm, request) }
}

pub unsafe fn comm_idup_with_info(
    comm: Arc<Communicator>,
    info: Info,
    newcomm: Out<Comm>,
    request: Out<Request>,
) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    unsafe { duplicating(comm, info::optional(info)?, newcomm, request) }
}

/// Returns the colour of a process, or `None` for MPI_UNDEFINED.
fn colour_of(color: c_int) -> Result<Option<c_int>> {
    match color {
        0.. => Ok(Some(color)),
        UNDEFINED => Ok(None),
        _ => Err(Error::new(
            ERR_ARG,
            format!("the color is {color}; it must be 0 or more, or MPI_UNDEFINED"),
        )),
    }
}

pub unsafe fn comm_split(
    comm: Arc<Communicator>,
    color: c_int,
    key: c_int,
    newcomm: Out<Comm>,
) -> Result {
    let colour = colour_of(color)?;
    let made = communicator::split(&comm, colour, key)?;
    give(made, Inherited::of(&comm), newcomm)
}

/// Returns the number of this process's host. Processes with the same number share memory.
fn host() -> Option<c_int> {
    // SAFETY: the calls take numbers and no pointers.
    let host = unsafe { rg::rg_host_of(rg::rg_tid()) };
    (host >= 0).then_some(host)
}

/// The name, in hints, of the resource that processes on one host share.
const NODE: &str = "mpi_shared_memory";

/// Returns the colour for a split of this type; `None` for a resource type that the library does not know.
fn kind_colour(comm: &Communicator, split_type: c_int, hints: &Hints) -> Result<Option<c_int>> {
    let guided = || hints.text(c"mpi_hw_resource_type") == Some(NODE);
    match split_type {
        UNDEFINED => Ok(None),
        COMM_TYPE_SHARED => Ok(host()),
        COMM_TYPE_HW_GUIDED => Ok(host().filter(|_| guided())),
        COMM_TYPE_RESOURCE_GUIDED => match hints.get(c"mpi_pset_name") {
            Some(name) => {
                let set = crate::session::set(name).unwrap_or_else(|_| Vec::new().into());
                let own = comm.local[comm.rank as usize];
                // The first process of a set identifies the set.
                Ok(set.rank_of(own).map(|_| set[0]))
            }
            None => Ok(host().filter(|_| guided())),
        },
        // Parts of a host are not distinguished, so the only split is by hosts, if there are several.
        COMM_TYPE_HW_UNGUIDED => {
            // SAFETY: the call takes a number and no pointers.
            let hosts = comm
                .peers()
                .iter()
                .map(|&task| unsafe { rg::rg_host_of(task) });
            let hosts: std::collections::HashSet<c_int> = hosts.collect();
            Ok(host().filter(|_| hosts.len() > 1))
        }
        _ => Err(Error::new(
            ERR_ARG,
            format!("split_type is {split_type}, which is not an MPI_COMM_TYPE_ constant"),
        )),
    }
}

pub unsafe fn comm_split_type(
    comm: Arc<Communicator>,
    split_type: c_int,
    key: c_int,
    info: Info,
    newcomm: Out<Comm>,
) -> Result {
    let hints = info::optional(info)?;
    let colour = kind_colour(&comm, split_type, &hints)?;
    let made = communicator::split(&comm, colour, key)?;
    if made.is_some() && split_type == COMM_TYPE_HW_UNGUIDED {
        // Fails without an info object, which is no error: the resource type is then not reported.
        let _ = info::with_object(info, |hints| hints.set_text(c"mpi_hw_resource_type", NODE));
    }
    give(made, Inherited::of(&comm), newcomm)
}

pub unsafe fn comm_create(comm: Arc<Communicator>, members: Members, newcomm: Out<Comm>) -> Result {
    let made = communicator::create(&comm, &members)?;
    give(made, Inherited::of(&comm), newcomm)
}

pub unsafe fn comm_create_group(
    comm: Arc<Communicator>,
    members: Members,
    tag: c_int,
    newcomm: Out<Comm>,
) -> Result {
    super::send::check_tag(tag)?;
    if comm.remote.is_some() {
        return Err(no_intra());
    }
    let made = communicator::create_group(&comm, &members, tag)?;
    give(made, Inherited::of(&comm), newcomm)
}

pub unsafe fn comm_create_from_group(
    group: Group,
    stringtag: *const c_char,
    info: Info,
    errhandler: Errhandler,
    newcomm: *mut Comm,
) -> Result {
    let make = || {
        let members = groups::get(group)?;
        // SAFETY: the caller guarantees that the pointer is valid.
        let newcomm = unsafe { Out::at(newcomm, "newcomm")? };
        let hints = info::optional(info)?;
        let slot = HandlerSlot::with(errhandler, Of::Comm)?;
        // SAFETY: the caller guarantees that the text is NUL-terminated.
        let tag = unsafe { text::given(stringtag, "stringtag", MAX_STRINGTAG_LEN, ERR_ARG)? };
        let made = communicator::create_from_group(&members, tag)?;
        let inherited = Inherited {
            hints,
            ..Inherited::handled_by(slot)
        };
        give(made, inherited, newcomm)
    };
    make().map_err(|error: Error| error.on(Object::Unmade(errhandler)))
}
