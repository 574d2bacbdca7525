//! Making communicators of one side, and of two.
//!
//! The engine's calls that make groups wait for all members of the new group, and let nothing else advance meanwhile. So
//! all members meet before, in a barrier that lets it.

use std::ffi::{CStr, c_int};
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
use crate::topology::Topology;

/// Groups of the engine's with their members: a communicator that has no handle yet.
pub struct Made {
    /// The program's messages.
    pub group: rg::Group,
    /// The library's messages.
    pub hidden: rg::Group,
    /// This process' side.
    pub local: Members,
    /// This process' rank there.
    pub rank: c_int,
    /// The rank in `group` of the first process of this side.
    pub base: c_int,
    /// The other side.
    pub remote: Option<Remote>,
}

/// The parts of a new communicator beside its groups.
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
    /// Nothing but a name.
    pub fn named(name: &'static CStr) -> Inherited {
        Inherited {
            errhandler: HandlerSlot::new(ERRORS_ARE_FATAL),
            attributes: Attributes::new(),
            hints: Hints::default(),
            topology: None,
            name,
        }
    }

    /// This error handler.
    pub fn handled_by(errhandler: HandlerSlot) -> Inherited {
        Inherited {
            errhandler,
            ..Inherited::named(c"")
        }
    }

    /// The error handler of a communicator that the new one is made of.
    pub fn of(parent: &Communicator) -> Inherited {
        Inherited::handled_by(parent.errhandler.clone())
    }
}

impl Made {
    /// With a group of the engine's, and a hidden one of the same members.
    pub fn of_group(group: rg::Group) -> Result<Made> {
        with_parts(&[group], Made::around(group))
    }

    /// With a group of the engine's, which stays whatever comes of it, and a hidden one.
    pub(super) fn around(group: rg::Group) -> Result<Made> {
        let local = Members::of_engine(group)?;
        // SAFETY: it takes a group by value.
        let rank = unsafe { rg::rg_rank(group) };
        checked(rank)?;
        Ok(Made {
            group,
            hidden: dup_group(group)?,
            local,
            rank,
            base: 0,
            remote: None,
        })
    }

    /// Whichever of the groups is revoked, all are.
    pub(super) fn tie(&self) {
        let own = self.remote.as_ref().map(|remote| remote.own);
        for group in [Some(self.hidden), own].into_iter().flatten() {
            // SAFETY: it takes groups by value. Of groups that are still being made this is an error: they are tied when they are there.
            unsafe { rg::rg_group_tie(self.group, group) };
        }
        tolerate_finalized(self.group);
    }

    /// The communicator with this handle.
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

/// A process that is in MPI_Finalize is still there for those that have a communicator with it: the requests in this group outlast its leaving.
/// Of a group that is still being made this is an error: it is said when the group is there.
pub(super) fn tolerate_finalized(group: rg::Group) {
    let threads = crate::process::thread_level() >= THREAD_SERIALIZED;
    // SAFETY: it takes a group by value.
    unsafe { rg::rg_group_tolerate_left(group, threads.into()) };
}

/// Gives a new communicator its handle.
pub fn publish(made: Made, inherited: Inherited) -> Result<Arc<Communicator>> {
    registry::insert(|handle| made.with_handle(handle, inherited))
}

/// A new group of the engine's with the members of this one.
pub(super) fn dup_group(group: rg::Group) -> Result<rg::Group> {
    let mut out = rg::Group { id: -1 };
    // SAFETY: `out` is written.
    checked(unsafe { rg::rg_group_dup(group, &mut out) })?;
    Ok(out)
}

/// A new group of the members with these ranks, who alone call this. Several threads may do so at once with different tags.
pub(super) fn select(group: rg::Group, ranks: &[c_int], tag: c_int) -> Result<rg::Group> {
    let mut out = rg::Group { id: -1 };
    let count = ranks.len() as c_int;
    // SAFETY: the array has this length, `out` is written.
    checked(unsafe { rg::rg_group_select_tagged(group, count, ranks.as_ptr(), tag, &mut out) })?;
    Ok(out)
}

/// The tag by which groups are selected that no tag of the program's tells apart.
pub(super) const UNTOLD: c_int = 0;

/// A new group of members with one colour, or none.
pub(super) fn split_group(
    group: rg::Group,
    colour: Option<c_int>,
    key: c_int,
) -> Result<Option<rg::Group>> {
    let mut out = rg::Group { id: -1 };
    let colour = colour.unwrap_or(rg::NONE);
    // SAFETY: `out` is written.
    checked(unsafe { rg::rg_group_split(group, colour, key, &mut out) })?;
    Ok((out.id != -1).then_some(out))
}

/// Frees a group, unless it is the world.
pub(super) fn free(group: Option<rg::Group>) {
    if let Some(group) = group
        && group != rg::WORLD
    {
        // SAFETY: it takes a group by value.
        unsafe { rg::rg_group_free(group) };
    }
}

/// The rest of what was made after these groups. If it came to nothing they are given up: other processes may have the rest, and wait
/// there for this one, so they hear that the groups are revoked. Of a failed process they hear without that.
pub(super) fn with_parts<T>(groups: &[rg::Group], rest: Result<T>) -> Result<T> {
    if let Err(error) = &rest {
        for &group in groups.iter().filter(|&&group| group != rg::WORLD) {
            if error.class() != PROC_FAILED {
                // SAFETY: it takes a group by value.
                unsafe { rg::rg_group_revoke(group) };
            }
            free(Some(group));
        }
    }
    rest
}

/// A duplicate.
pub fn dup(comm: &Communicator) -> Result<Made> {
    internal_messages::barrier(comm.group)?;
    let mut parts = Vec::new();
    let sources = [
        Some(comm.group),
        Some(comm.group),
        comm.remote.as_ref().map(|it| it.own),
    ];
    for source in sources.into_iter().flatten() {
        parts.push(with_parts(&parts, dup_group(source))?);
    }
    let remote = comm.remote.as_ref().map(|remote| Remote {
        members: remote.members.clone(),
        base: remote.base,
        own: parts[2],
    });
    Ok(Made {
        group: parts[0],
        hidden: parts[1],
        local: comm.local.clone(),
        rank: comm.rank,
        base: comm.base,
        remote,
    })
}

/// The processes of one colour, ordered by key and rank; none for who has no colour. Of an intercommunicator there has to be
/// one on each side.
pub fn split(comm: &Communicator, colour: Option<c_int>, key: c_int) -> Result<Option<Made>> {
    if let Some(remote) = &comm.remote {
        return inter::split(comm, remote, colour, key);
    }
    internal_messages::barrier(comm.group)?;
    let group = split_group(comm.group, colour, key)?;
    group.map(Made::of_group).transpose()
}

/// The processes of a group, which all processes of the communicator call with.
pub fn create(comm: &Communicator, group: &Members) -> Result<Option<Made>> {
    let ranks = ranks_in(comm, group)?;
    let index = ranks.iter().position(|&rank| rank == comm.rank);
    let colour = match &comm.remote {
        // Processes may name several groups that have nobody in common.
        None => ranks.first().copied(),
        Some(_) => Some(0),
    };
    match index {
        Some(index) => split(comm, colour, index as c_int),
        None => split(comm, None, 0),
    }
}

/// The ranks of a group's members in a communicator.
fn ranks_in(comm: &Communicator, group: &Members) -> Result<Vec<c_int>> {
    let all: Vec<c_int> = (0..group.len() as c_int).collect();
    let ranks = groups::translate(group, &all, &comm.local)?;
    match ranks.iter().position(|&rank| rank == UNDEFINED) {
        None => Ok(ranks),
        Some(at) => Err(Error::new(
            ERR_GROUP,
            format!("the process with rank {at} in the group is none of the communicator's"),
        )),
    }
}

/// Messages that make groups, in a communicator's hidden group: beyond all others' tags.
const TAGS: c_int = 0x7000_0000;

/// The tag of the library's own messages for one that the program gives.
pub(super) fn own_tag(tag: c_int) -> c_int {
    TAGS | (tag & 0x00ff_ffff)
}

/// The processes of a group, which they alone call with.
pub fn create_group(comm: &Communicator, group: &Members, tag: c_int) -> Result<Option<Made>> {
    let ranks = ranks_in(comm, group)?;
    if !ranks.contains(&comm.rank) {
        return Ok(None);
    }
    internal_messages::assemble(comm.hidden, &ranks, comm.rank, own_tag(tag))?;
    let group = select(comm.hidden, &ranks, own_tag(tag))?;
    Made::of_group(group).map(Some)
}

/// The processes of a group, who have no communicator in common. The tag tells several such calls apart.
pub fn create_from_group(group: &Members, tag: &CStr) -> Result<Option<Made>> {
    let own = groups::own_rank(group)?;
    if own == UNDEFINED {
        return Ok(None);
    }
    internal_messages::assemble(
        internal_messages::CHANNEL,
        group,
        group[own as usize],
        text_tag(tag),
    )?;
    Made::of_group(select(rg::ALL, group, text_tag(tag))?).map(Some)
}

/// The tag of messages for a text that the program gives (by FNV-1a).
pub(super) fn text_tag(text: &CStr) -> c_int {
    let hash = text.to_bytes().iter().fold(0x811c_9dc5_u32, |hash, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    own_tag((hash ^ hash >> 24) as c_int)
}
