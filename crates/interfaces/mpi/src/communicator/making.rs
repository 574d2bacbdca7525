//! Making intracommunicators and intercommunicators.
//!
//! All groups of a communicator are made together, by one agreement of its members. Multi-stage operations advance
//! meanwhile. Only the new members take part. If they are not known beforehand, all processes exchange their colours
//! first ([`split`]).

use std::ffi::{CStr, c_int};
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use regatta_sys as rg;

use super::{Communicator, Description, Members, Remote, inter, internal_messages, registry};
use crate::abi::*;
use crate::attributes::Attributes;
use crate::errhandler::HandlerSlot;
use crate::error::{Error, PROC_FAILED, Result, checked};
use crate::groups;
use crate::info::Hints;
use crate::progress;
use crate::topology::Topology;

/// The engine's groups with their members: a communicator that has no handle yet.
pub struct Made {
    /// The group for the program's messages.
    pub group: rg::Group,
    /// The group for the library's messages.
    pub hidden: rg::Group,
    /// The local group.
    pub local: Members,
    /// This process's rank in the local group.
    pub rank: c_int,
    /// The rank in `group` of the first process of the local group.
    pub base: c_int,
    /// The remote group.
    pub remote: Option<Remote>,
}

/// The properties of a new communicator besides its groups.
pub struct Inherited {
    /// The error handler.
    pub errhandler: HandlerSlot,
    /// The attributes.
    pub attributes: Attributes<Comm>,
    /// The hints.
    pub hints: Hints,
    /// The topology.
    pub topology: Option<Topology>,
    /// The name.
    pub name: &'static CStr,
}

impl Inherited {
    /// Returns default properties with this name.
    pub fn named(name: &'static CStr) -> Inherited {
        Inherited {
            errhandler: HandlerSlot::new(ERRORS_ARE_FATAL),
            attributes: Attributes::new(),
            hints: Hints::default(),
            topology: None,
            name,
        }
    }

    /// Returns default properties with this error handler.
    pub fn handled_by(errhandler: HandlerSlot) -> Inherited {
        Inherited {
            errhandler,
            ..Inherited::named(c"")
        }
    }

    /// Returns default properties with the error handler of the communicator from which the new one is made.
    pub fn of(parent: &Communicator) -> Inherited {
        Inherited::handled_by(parent.errhandler.clone())
    }
}

impl Made {
    /// Returns an intracommunicator in which this process has this rank.
    pub(super) fn of([group, hidden]: [rg::Group; 2], local: Members, rank: c_int) -> Made {
        Made {
            group,
            hidden,
            local,
            rank,
            base: 0,
            remote: None,
        }
    }

    /// Returns a communicator with a group of the engine, and a hidden group with the same members. Frees the group on
    /// error.
    pub fn of_group(group: rg::Group) -> Result<Made> {
        with_parts(&[group], Made::around(group))
    }

    /// Returns a communicator with a group of the engine, and a hidden group with the same members. Keeps the group on
    /// error.
    pub(super) fn around(group: rg::Group) -> Result<Made> {
        let local = Members::of_engine(group)?;
        // SAFETY: the call takes the group by value and no pointers.
        let rank = unsafe { rg::rg_rank(group) };
        checked(rank)?;
        Ok(Made::of([group, dup_group(group)?], local, rank))
    }

    /// Ties the groups, so that revoking one of them revokes all.
    pub(super) fn tie(&self) {
        let own = self.remote.as_ref().map(|remote| remote.own);
        for group in [Some(self.hidden), own].into_iter().flatten() {
            // SAFETY: the call takes groups by value and no pointers. For groups that are still being made it fails:
            // they are tied when they have been made.
            unsafe { rg::rg_group_tie(self.group, group) };
        }
        tolerate_finalized(self.group);
    }

    /// Returns the communicator with this handle.
    pub fn with_handle(self, handle: Comm, inherited: Inherited) -> Communicator {
        self.tie();
        let described = Description {
            name: inherited.name.to_owned(),
            hints: inherited.hints,
            ..Description::default()
        };
        Communicator {
            handle,
            group: self.group,
            hidden: self.hidden,
            local: self.local,
            rank: self.rank,
            base: self.base,
            remote: self.remote,
            errhandler: inherited.errhandler,
            sequence: AtomicU32::new(0),
            attributes: inherited.attributes,
            topology: inherited.topology,
            described: described.into(),
        }
    }
}

/// Lets requests in the group outlive the departure of a member that is in MPI_Finalize: for MPI such a process is
/// still present. Fails for a group that is still being made; it is called again when the group has been made.
pub(super) fn tolerate_finalized(group: rg::Group) {
    let threads = crate::process::thread_level() >= THREAD_SERIALIZED;
    // SAFETY: the call takes the group by value and no pointers.
    unsafe { rg::rg_group_tolerate_left(group, threads.into()) };
}

/// Registers a new communicator under a new handle.
pub fn publish(made: Made, inherited: Inherited) -> Result<Arc<Communicator>> {
    registry::insert(|handle| made.with_handle(handle, inherited))
}

/// Makes `COUNT` groups of the engine together, with the members with these ranks of `source`, or with all members.
/// Only the new members call it. Several threads may call it at once with different tags.
pub(super) fn make_groups<const COUNT: usize>(
    source: rg::Group,
    ranks: Option<&[c_int]>,
    tag: c_int,
) -> Result<[rg::Group; COUNT]> {
    let mut groups = [rg::Group { id: -1 }; COUNT];
    let mut request = rg::REQUEST_NULL;
    let (count, ranks) = ranks.map_or((0, null()), |ranks| (ranks.len() as c_int, ranks.as_ptr()));
    let (made, out) = (COUNT as c_int, groups.as_mut_ptr());
    // SAFETY: the arrays have these lengths; the call may write the request.
    checked(unsafe { rg::rg_igroup_select(source, count, ranks, tag, made, out, &mut request) })?;
    checked(progress::wait(request, &mut rg::Status::default()))?;
    Ok(groups)
}

/// Makes a group of the engine with the same members.
pub(super) fn dup_group(group: rg::Group) -> Result<rg::Group> {
    make_groups(group, None, UNTOLD).map(|[made]| made)
}

/// Makes a group with the members with these ranks. Only these members call it.
pub(super) fn select(group: rg::Group, ranks: &[c_int], tag: c_int) -> Result<rg::Group> {
    make_groups(group, Some(ranks), tag).map(|[made]| made)
}

/// The tag for making groups that no tag of the program distinguishes.
pub(super) const UNTOLD: c_int = 0;

/// Frees a group, unless it is that of all processes.
pub(super) fn free(group: Option<rg::Group>) {
    if let Some(group) = group
        && group != rg::WORLD
    {
        // SAFETY: the call takes the group by value and no pointers.
        unsafe { rg::rg_group_free(group) };
    }
}

/// Returns `rest`, the result of what was made after these groups. If that is an error, frees the groups. They are
/// revoked first, since other processes may have the rest and wait for this one; if the error is a failed process, they
/// learn that without a revocation.
pub(super) fn with_parts<T>(groups: &[rg::Group], rest: Result<T>) -> Result<T> {
    if let Err(error) = &rest {
        for &group in groups.iter().filter(|&&group| group != rg::WORLD) {
            if error.class() != PROC_FAILED {
                // SAFETY: the call takes the group by value and no pointers.
                unsafe { rg::rg_group_revoke(group) };
            }
            free(Some(group));
        }
    }
    rest
}

/// Duplicates a communicator.
pub fn dup(comm: &Communicator) -> Result<Made> {
    let groups = make_groups(comm.group, None, UNTOLD)?;
    let remote = comm.remote.as_ref().map(|remote| -> Result<Remote> {
        let own = with_parts(&groups, dup_group(remote.own))?;
        let (members, base) = (remote.members.clone(), remote.base);
        Ok(Remote { members, base, own })
    });
    Ok(Made {
        base: comm.base,
        remote: remote.transpose()?,
        ..Made::of(groups, comm.local.clone(), comm.rank)
    })
}

/// The processes of one colour, ordered by key and rank; none for who has no colour. Of an intercommunicator there has to be
/// one on each side.
pub fn split(comm: &Communicator, colour: Option<c_int>, key: c_int) -> Result<Option<Made>> {
    let rows = internal_messages::allgather(comm.group, [colour.unwrap_or(-1), key])?;
    if let Some(remote) = &comm.remote {
        return inter::split(comm, remote, &rows, colour);
    }
    match colour {
        None => Ok(None),
        Some(colour) => made_of(comm, &of_colour(&rows, colour), comm.group, UNTOLD).map(Some),
    }
}

/// Returns the indices of the rows of this colour, ordered by key; equal keys stay in the order of the rows.
pub(super) fn of_colour(rows: &[[c_int; 2]], colour: c_int) -> Vec<c_int> {
    let indices = 0..rows.len() as c_int;
    let mut chosen: Vec<c_int> = indices
        .filter(|&at| rows[at as usize][0] == colour)
        .collect();
    chosen.sort_by_key(|&at| rows[at as usize][1]);
    chosen
}

/// Makes a communicator of the processes with these ranks, who alone call this. `source` is one of the communicator's groups: calls of all processes take that
/// of the program's messages, others the hidden one, where all tags are the program's.
fn made_of(comm: &Communicator, ranks: &[c_int], source: rg::Group, tag: c_int) -> Result<Made> {
    let groups = make_groups(source, Some(ranks), tag)?;
    let local: Vec<c_int> = ranks
        .iter()
        .map(|&rank| comm.local[rank as usize])
        .collect();
    let own = ranks.iter().position(|&rank| rank == comm.rank);
    Ok(Made::of(
        groups,
        local.into(),
        own.unwrap_or_default() as c_int,
    ))
}

/// Makes a communicator of the processes of a group. All processes of the communicator call it. They may pass different
/// groups if these are disjoint.
pub fn create(comm: &Communicator, group: &Members) -> Result<Option<Made>> {
    let ranks = ranks_in(comm, group)?;
    let index = ranks.iter().position(|&rank| rank == comm.rank);
    if comm.remote.is_some() {
        return split(comm, index.map(|_| 0), index.unwrap_or(0) as c_int);
    }
    index
        .map(|_| made_of(comm, &ranks, comm.group, UNTOLD))
        .transpose()
}

/// Returns the ranks of a group's members in a communicator.
fn ranks_in(comm: &Communicator, group: &Members) -> Result<Vec<c_int>> {
    let all: Vec<c_int> = (0..group.len() as c_int).collect();
    let ranks = groups::translate(group, &all, &comm.local)?;
    match ranks.iter().position(|&rank| rank == UNDEFINED) {
        None => Ok(ranks),
        Some(at) => Err(Error::new(
            ERR_GROUP,
            format!("the process with rank {at} in the group is not in the communicator"),
        )),
    }
}

/// The processes of a group, which they alone call with.
pub fn create_group(comm: &Communicator, group: &Members, tag: c_int) -> Result<Option<Made>> {
    let ranks = ranks_in(comm, group)?;
    match ranks.contains(&comm.rank) {
        true => made_of(comm, &ranks, comm.hidden, tag).map(Some),
        false => Ok(None),
    }
}

/// Makes a communicator of the processes of a group, which have no communicator in common. The tag distinguishes
/// several such calls.
pub fn create_from_group(group: &Members, tag: &CStr) -> Result<Option<Made>> {
    let own = groups::own_rank(group)?;
    if own == UNDEFINED {
        return Ok(None);
    }
    let groups = make_named_groups(group, tag)?;
    Ok(Some(Made::of(groups, group.clone(), own)))
}

/// Makes a group and a hidden one of these processes, who all call with this text. Several threads may do so at once with different texts.
pub(super) fn make_named_groups(members: &Members, text: &CStr) -> Result<[rg::Group; 2]> {
    let (source, tag) = text_source(text);
    make_groups(source, Some(members), tag)
}

/// Channels of all tasks from which groups with texts are made.
const TEXT_CHANNELS: c_int = 1 << 26;

/// Returns the channel and the tag for a text: 57 bits of a number (by FNV-1a), so that texts of a program have numbers of their own.
fn text_source(text: &CStr) -> (rg::Group, c_int) {
    let bytes = text.to_bytes().iter();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let channel = (hash >> 31) as c_int & (TEXT_CHANNELS - 1);
    let tag = hash as c_int & c_int::MAX;
    (rg::library_channel(TEXT_CHANNELS + channel), tag)
}
