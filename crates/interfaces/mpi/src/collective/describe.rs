//! Descriptions of collectives, made of the arguments of calls, which are all checked here.
//!
//! Safety of all of them: buffers and lists are those that the standard asks for.
#![allow(clippy::missing_safety_doc)]

use std::cmp::Ordering;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::memory::{Buffer, Counts, Element, Memory, Part, even};
use super::messages::{Content, Message};
use super::{
    Collective, Kind, LocalData, Reduction, Role, intercommunicator, next_tag, of_one_group, role,
};
use crate::abi::*;
use crate::communicator::{Communicator, get};
use crate::error::{Error, Result};

/// MPI_Barrier.
pub fn barrier(comm: Comm) -> Result<Collective> {
    let comm = get(comm)?;
    Ok(Collective::engine(
        comm,
        Kind::Barrier,
        LocalData::Nothing,
        LocalData::Nothing,
    ))
}

/// MPI_Bcast.
pub unsafe fn broadcast(comm: Comm, buffer: Buffer, root: c_int) -> Result<Collective> {
    let comm = get(comm)?;
    let role = role(&comm, root)?;
    if role == Role::Outside {
        return Ok(intercommunicator::outside(comm));
    }
    // SAFETY: the caller's promise.
    let memory = unsafe { buffer.memory("buffer", 1)? };
    if comm.remote.is_some() {
        return Ok(match role {
            Role::Member(root) => intercommunicator::from_one(comm, root, memory),
            _ => intercommunicator::to_all(comm, |_| memory.clone()),
        });
    }
    let (gives, takes) = match role {
        Role::Root => (LocalData::Memory(memory), LocalData::Nothing),
        _ => (LocalData::Nothing, LocalData::Memory(memory)),
    };
    Ok(rooted(comm, Kind::Broadcast, root, gives, takes))
}

fn rooted(
    comm: Arc<Communicator>,
    kind: Kind,
    root: c_int,
    gives: LocalData,
    takes: LocalData,
) -> Collective {
    Collective {
        root,
        ..Collective::engine(comm, kind, gives, takes)
    }
}

/// MPI_Gather and MPI_Gatherv.
pub unsafe fn gather(comm: Comm, send: Buffer, recv: Buffer, root: c_int) -> Result<Collective> {
    let comm = get(comm)?;
    let listed = matches!(recv.counts, Counts::Listed(..));
    let kind = Kind::Gather { listed };
    let peers = comm.peers().len();
    // SAFETY: the caller's promise.
    unsafe {
        match (role(&comm, root)?, &comm.remote) {
            (Role::Outside, _) => Ok(intercommunicator::outside(comm)),
            (Role::Root, Some(_)) => {
                let takes = recv.memory("recvbuf", peers)?;
                Ok(intercommunicator::from_all(comm, |rank| takes.only(rank)))
            }
            (Role::Member(root), Some(_)) => {
                let gives = send.memory("sendbuf", 1)?;
                Ok(intercommunicator::to_one(comm, root, gives))
            }
            (Role::Member(_), None) => {
                let gives = LocalData::Memory(send.memory("sendbuf", 1)?);
                Ok(rooted(comm, kind, root, gives, LocalData::Nothing))
            }
            (Role::Root, None) => {
                let takes = recv.memory("recvbuf", peers)?;
                let gives = given(&send, 1, &takes, comm.rank as usize)?;
                Ok(rooted(comm, kind, root, gives, LocalData::Memory(takes)))
            }
        }
    }
}

/// The elements of a process that also gets some: as many as it gets from itself.
unsafe fn given(send: &Buffer, parts: usize, takes: &Memory, own: usize) -> Result<LocalData> {
    if send.is_in_place() {
        return Ok(LocalData::InPlace);
    }
    // SAFETY: the caller's promise.
    let gives = unsafe { send.memory("sendbuf", parts)? };
    distinct(&gives, takes)?;
    let (gave, got) = (
        gives.part(if parts == 1 { 0 } else { own }),
        takes.part(own),
    );
    fits(gave, got)?;
    if parts == 1 {
        elsewhere((&gives, gave), (takes, got))?;
    }
    Ok(LocalData::Memory(gives))
}

/// A process gives itself as much as it takes.
fn fits(gave: Part, got: Part) -> Result {
    let class = match gave.bytes.cmp(&got.bytes) {
        Ordering::Equal => return Ok(()),
        Ordering::Greater => ERR_TRUNCATE,
        Ordering::Less => ERR_COUNT,
    };
    let text = format!(
        "this process gives itself {} bytes, and takes {}; both have to be as many",
        gave.bytes, got.bytes
    );
    Err(Error::new(class, text))
}

/// The two buffers of a call are not one.
fn distinct(gives: &Memory, takes: &Memory) -> Result {
    match gives.address == takes.address && gives.bytes() > 0 && takes.bytes() > 0 {
        false => Ok(()),
        true => Err(Error::new(
            ERR_BUFFER,
            "sendbuf and recvbuf are the same (MPI_IN_PLACE as sendbuf says that)",
        )),
    }
}

/// A process' part is not its place in the buffer of all.
fn elsewhere((one, part): (&Memory, Part), (all, own): (&Memory, Part)) -> Result {
    let place = |memory: &Memory, part: Part| {
        let address = memory.address.wrapping_byte_offset(part.offset as isize);
        address as usize
    };
    match part.bytes > 0 && place(one, part) == place(all, own) {
        false => Ok(()),
        true => Err(Error::new(
            ERR_BUFFER,
            "one buffer is this process' own part of the other (MPI_IN_PLACE says that)",
        )),
    }
}

/// MPI_Scatter and MPI_Scatterv.
pub unsafe fn scatter(comm: Comm, send: Buffer, recv: Buffer, root: c_int) -> Result<Collective> {
    let comm = get(comm)?;
    let listed = matches!(send.counts, Counts::Listed(..));
    let kind = Kind::Scatter { listed };
    let peers = comm.peers().len();
    // SAFETY: the caller's promise.
    unsafe {
        match (role(&comm, root)?, &comm.remote) {
            (Role::Outside, _) => Ok(intercommunicator::outside(comm)),
            (Role::Root, Some(_)) => {
                let gives = send.memory("sendbuf", peers)?;
                Ok(intercommunicator::to_all(comm, |rank| gives.only(rank)))
            }
            (Role::Member(root), Some(_)) => {
                let takes = recv.memory("recvbuf", 1)?;
                Ok(intercommunicator::from_one(comm, root, takes))
            }
            (Role::Member(_), None) => {
                let takes = LocalData::Memory(recv.memory("recvbuf", 1)?);
                Ok(rooted(comm, kind, root, LocalData::Nothing, takes))
            }
            (Role::Root, None) => {
                let gives = send.memory("sendbuf", peers)?;
                let takes = match recv.is_in_place() {
                    true => LocalData::InPlace,
                    false => {
                        let takes = recv.memory("recvbuf", 1)?;
                        distinct(&gives, &takes)?;
                        let (gave, got) = (gives.part(comm.rank as usize), takes.part(0));
                        fits(gave, got)?;
                        elsewhere((&takes, got), (&gives, gave))?;
                        LocalData::Memory(takes)
                    }
                };
                Ok(rooted(comm, kind, root, LocalData::Memory(gives), takes))
            }
        }
    }
}

/// MPI_Allgather and MPI_Allgatherv.
pub unsafe fn allgather(comm: Comm, send: Buffer, recv: Buffer) -> Result<Collective> {
    let comm = get(comm)?;
    // SAFETY: the caller's promise.
    unsafe {
        let takes = recv.memory("recvbuf", comm.peers().len())?;
        if comm.remote.is_some() {
            let gives = send.memory("sendbuf", 1)?;
            return Ok(intercommunicator::exchange(
                comm,
                |_| gives.clone(),
                |rank| takes.only(rank),
            ));
        }
        let gives = given(&send, 1, &takes, comm.rank as usize)?;
        Ok(Collective::engine(
            comm,
            Kind::Allgather,
            gives,
            LocalData::Memory(takes),
        ))
    }
}

/// MPI_Alltoall and MPI_Alltoallv.
pub unsafe fn alltoall(comm: Comm, send: Buffer, recv: Buffer) -> Result<Collective> {
    let comm = get(comm)?;
    let peers = comm.peers().len();
    // SAFETY: the caller's promise.
    unsafe {
        let takes = recv.memory("recvbuf", peers)?;
        if comm.remote.is_some() {
            let gives = send.memory("sendbuf", peers)?;
            return Ok(intercommunicator::exchange(
                comm,
                |rank| gives.only(rank),
                |rank| takes.only(rank),
            ));
        }
        let gives = given(&send, peers, &takes, comm.rank as usize)?;
        Ok(Collective::engine(
            comm,
            Kind::Alltoall,
            gives,
            LocalData::Memory(takes),
        ))
    }
}

/// The buffer of MPI_Alltoallw: each part has its own type, and a displacement in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Typed {
    /// Where it begins, or MPI_IN_PLACE.
    pub address: *mut c_void,
    /// Elements of each part.
    pub counts: Ints,
    /// Where each begins.
    pub displs: Ints,
    /// Their types.
    pub types: *const Datatype,
}

/// The buffer with these lists.
pub fn typed(address: *const c_void, counts: Ints, displs: Ints, types: *const Datatype) -> Typed {
    let address = address.cast_mut();
    Typed {
        address,
        counts,
        displs,
        types,
    }
}

impl Typed {
    /// Its parts.
    pub(super) unsafe fn memories(&self, name: &str, parts: usize) -> Result<Vec<Memory>> {
        if self.address as usize == IN_PLACE {
            let text = format!("{name} may not be MPI_IN_PLACE here");
            return Err(Error::new(ERR_BUFFER, text));
        }
        if parts > 0 && (self.counts.is_null() || self.displs.is_null() || self.types.is_null()) {
            let text = format!("a list of {name} is a null pointer");
            return Err(Error::new(ERR_ARG, text));
        }
        let part = |at| {
            // SAFETY: the caller's promise.
            let (count, displacement, datatype) = unsafe {
                (
                    self.counts.get(at),
                    self.displs.get(at),
                    *self.types.add(at),
                )
            };
            let address = self.address.wrapping_byte_offset(displacement as isize);
            // SAFETY: there is no list.
            unsafe { even(address, count, datatype).memory(name, 1) }
        };
        (0..parts).map(part).collect()
    }
}

/// MPI_Alltoallw.
pub unsafe fn alltoallw(comm: Comm, send: Typed, recv: Typed) -> Result<Collective> {
    let comm = get(comm)?;
    let peers = comm.peers().len();
    // SAFETY: the caller's promise.
    unsafe {
        let takes = recv.memories("recvbuf", peers)?;
        if send.address as usize == IN_PLACE && comm.remote.is_none() {
            let (tag, base) = (next_tag(&comm.sequence), comm.peer_base());
            let message = |content: fn(Memory) -> Content| {
                let all = takes.iter().enumerate();
                let all = all.map(|(rank, part)| Message {
                    peer: base + rank as c_int,
                    tag,
                    content: content(part.clone()),
                });
                all.collect()
            };
            let (sends, receives) = (message(Content::Copied), message(Content::Memory));
            return Ok(Collective::messages(comm, sends, receives));
        }
        let gives = send.memories("sendbuf", peers)?;
        // MPI_BOTTOM may be both: the types have the addresses.
        let same = send.address == recv.address && !send.address.is_null();
        if same && gives.iter().chain(&takes).any(|it| it.bytes() > 0) {
            let text = "sendbuf and recvbuf are the same (MPI_IN_PLACE as sendbuf says that)";
            return Err(Error::new(ERR_BUFFER, text));
        }
        Ok(intercommunicator::exchange(
            comm,
            |rank| gives[rank].clone(),
            |rank| takes[rank].clone(),
        ))
    }
}

/// The arguments of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Reduced {
    /// The operands, or MPI_IN_PLACE.
    pub send: *const c_void,
    /// The result.
    pub recv: *mut c_void,
    /// Elements.
    pub count: i64,
    /// Of this type.
    pub datatype: Datatype,
    /// Combined by this.
    pub op: Op,
}

impl Reduced {
    unsafe fn takes(&self, count: i64) -> Result<Memory> {
        let recv = even(self.recv, count, self.datatype);
        // SAFETY: the caller's promise.
        unsafe { recv.memory("recvbuf", 1) }
    }

    unsafe fn gives(&self) -> Result<Memory> {
        let send = even(self.send, self.count, self.datatype);
        // SAFETY: the caller's promise.
        unsafe { send.memory("sendbuf", 1) }
    }

    fn reduction(&self) -> Result<Reduction> {
        let element = Element::of(self.datatype)?;
        element.bytes(self.count)?;
        Reduction::new(self.op, self.datatype, element, self.count as usize)
    }

    fn is_in_place(&self) -> bool {
        self.send as usize == IN_PLACE
    }

    /// Operands and result of a process that has both. In place the operands are where the result goes, all of them.
    unsafe fn both(&self, count: i64) -> Result<(LocalData, LocalData)> {
        // SAFETY: the caller's promise.
        unsafe {
            if self.is_in_place() {
                return Ok((
                    LocalData::InPlace,
                    LocalData::Memory(self.takes(self.count)?),
                ));
            }
            let (gives, takes) = (self.gives()?, self.takes(count)?);
            distinct(&gives, &takes)?;
            Ok((LocalData::Memory(gives), LocalData::Memory(takes)))
        }
    }
}

/// MPI_Reduce.
pub unsafe fn reduce(comm: Comm, what: Reduced, root: c_int) -> Result<Collective> {
    let comm = get(comm)?;
    let role = role(&comm, root)?;
    let between = comm.remote.is_some();
    if role == Role::Outside {
        return Ok(intercommunicator::outside(comm));
    }
    let reduction = what.reduction()?;
    // SAFETY: the caller's promise.
    unsafe {
        let (gives, takes) = match role {
            Role::Root if between => {
                return Ok(intercommunicator::result_at_root(
                    comm,
                    what.takes(what.count)?,
                ));
            }
            Role::Member(root) if between => {
                return Ok(intercommunicator::reduced_for(
                    comm,
                    root,
                    what.gives()?,
                    reduction,
                ));
            }
            Role::Root => what.both(what.count)?,
            _ => (LocalData::Memory(what.gives()?), LocalData::Nothing),
        };
        Ok(Collective {
            reduction: Some(reduction),
            ..rooted(comm, Kind::Reduce, root, gives, takes)
        })
    }
}

/// MPI_Allreduce.
pub unsafe fn allreduce(comm: Comm, what: Reduced) -> Result<Collective> {
    let comm = get(comm)?;
    let reduction = what.reduction()?;
    // SAFETY: the caller's promise.
    unsafe {
        if comm.remote.is_some() {
            let (gives, takes) = (what.gives()?, what.takes(what.count)?);
            return Ok(intercommunicator::reduced_for_all(
                comm, gives, takes, reduction, 0,
            ));
        }
        let (gives, takes) = what.both(what.count)?;
        Ok(reduction_of(comm, Kind::Allreduce, gives, takes, reduction))
    }
}

fn reduction_of(
    comm: Arc<Communicator>,
    kind: Kind,
    gives: LocalData,
    takes: LocalData,
    reduction: Reduction,
) -> Collective {
    Collective {
        reduction: Some(reduction),
        ..Collective::engine(comm, kind, gives, takes)
    }
}

/// MPI_Scan.
pub unsafe fn scan(comm: Comm, what: Reduced) -> Result<Collective> {
    let comm = of_one_group(comm)?;
    let reduction = what.reduction()?;
    // SAFETY: the caller's promise.
    let (gives, takes) = unsafe { what.both(what.count)? };
    Ok(reduction_of(comm, Kind::Scan, gives, takes, reduction))
}

/// MPI_Exscan.
pub unsafe fn exscan(comm: Comm, what: Reduced) -> Result<Collective> {
    let comm = of_one_group(comm)?;
    let reduction = what.reduction()?;
    // SAFETY: the caller's promise.
    let (gives, takes) = unsafe {
        match (comm.rank, what.is_in_place()) {
            // Nothing comes to the first one. It says no less than the others what is wrong, or they would wait for it.
            (0, false) if what.send == what.recv.cast_const() => what.both(what.count)?,
            (0, false) => (LocalData::Memory(what.gives()?), LocalData::Nothing),
            (0, true) => (
                LocalData::Memory(what.takes(what.count)?),
                LocalData::Nothing,
            ),
            _ => what.both(what.count)?,
        }
    };
    Ok(reduction_of(comm, Kind::Exscan, gives, takes, reduction))
}

/// MPI_Reduce_scatter and MPI_Reduce_scatter_block: `what` has no count, but the lists say it.
pub unsafe fn reduce_scatter(
    comm: Comm,
    what: Reduced,
    counts: ScatterCounts,
) -> Result<Collective> {
    let comm = get(comm)?;
    // SAFETY: the caller's promise.
    unsafe {
        let counts = counts.list(comm.size() as usize)?;
        let total = counts.iter().try_fold(0i64, |sum, &it| sum.checked_add(it));
        let total = total
            .ok_or_else(|| Error::new(ERR_COUNT, "the counts together are more than memory"))?;
        let what = Reduced {
            count: total,
            ..what
        };
        let mut reduction = what.reduction()?;
        let mine = counts[comm.rank as usize];
        if comm.remote.is_some() {
            // Each side scatters the other one's result, and both have as many elements.
            let (gives, takes) = (what.gives()?, what.takes(mine)?);
            let before: i64 = counts[..comm.rank as usize].iter().sum();
            let from = before as usize * gives.element.size;
            return Ok(intercommunicator::reduced_for_all(
                comm, gives, takes, reduction, from,
            ));
        }
        reduction.scatter(&counts);
        let (gives, takes) = what.both(mine)?;
        let (gives, takes) = match (gives, takes) {
            // The result is the front alone.
            (LocalData::InPlace, LocalData::Memory(whole)) if !whole.element.is_dense() => {
                let takes = what.takes(mine)?;
                (LocalData::Memory(whole), LocalData::Memory(takes))
            }
            sides => sides,
        };
        Ok(reduction_of(
            comm,
            Kind::ReduceScatter,
            gives,
            takes,
            reduction,
        ))
    }
}

/// Elements of the result for each process.
#[derive(Clone, Copy, Debug)]
pub enum ScatterCounts {
    /// So many for each.
    Block(i64),
    /// By a list.
    Listed(Ints),
}

impl ScatterCounts {
    unsafe fn list(self, size: usize) -> Result<Vec<i64>> {
        let list = match self {
            ScatterCounts::Block(count) => vec![count; size],
            ScatterCounts::Listed(counts) if counts.is_null() => {
                return Err(Error::new(ERR_ARG, "recvcounts is a null pointer"));
            }
            // SAFETY: the caller's promise.
            ScatterCounts::Listed(counts) => unsafe { counts.to_vec(size) },
        };
        match list.iter().find(|&&it| it < 0) {
            None => Ok(list),
            Some(count) => {
                let text = format!("a count is {count}; it is 0 or more");
                Err(Error::new(ERR_COUNT, text))
            }
        }
    }
}

/// These arguments.
pub fn reduced(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
) -> Reduced {
    Reduced {
        send,
        recv,
        count,
        datatype,
        op,
    }
}
