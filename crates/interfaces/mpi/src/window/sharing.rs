//! The memory that processes of a host share in a window: lock words, and the window's memory if the library allocates
//! it.

use std::ffi::c_int;

use super::copying;
use super::lock_memory::{self, Piece};
use super::lock_table::{self, LockTable};
use super::making::Wish;
use super::telling::{NO_WINDOW, Offer, Part, Told, parts_of, tell_part, value_of};
use crate::abi::*;
use crate::communicator::Communicator;
use crate::communicator::internal_messages::Failed;
use crate::error::{Error, Result};
use crate::segment::{File, Segment};

/// Page size in bytes. Segments begin with lock words; the window's memory begins on a page of its own.
const PAGE: usize = 4096;
/// Alignment in bytes of each process's memory, unless it must continue that of the process before.
const ALIGNMENT: usize = 64;

/// Memory that the processes of a host share.
pub(super) struct Shared {
    pub(super) locks: LockTable,
    /// Offset in bytes of the memory of each local process.
    pub(super) offsets: Vec<usize>,
    /// Whether only this process uses it, because it could not map the segment of another one.
    pub(super) alone: bool,
}

/// Returns the size of a segment in bytes, and the offset of the memory of each of these processes. Returns `None` on
/// overflow.
fn plan(told: &[Told], local: &[c_int], wish: &Wish) -> Option<(usize, Vec<usize>)> {
    let mut end = lock_table::length(local.len(), told.len()).next_multiple_of(PAGE);
    let is_made = wish.is_made();
    let apart = wish.hints.text(c"alloc_shared_noncontig") == Some("true");
    let mut offsets = Vec::new();
    for &rank in local {
        if wish.flavor == WIN_FLAVOR_ALLOCATE || apart {
            end = end.checked_next_multiple_of(ALIGNMENT)?;
        }
        offsets.push(end);
        if is_made {
            end = end.checked_add(told[rank as usize].size as usize)?;
        }
    }
    Some((end.checked_next_multiple_of(PAGE)?, offsets))
}

fn too_large() -> Error {
    Error::new(
        ERR_SIZE,
        "the memory of all processes exceeds the address space",
    )
}

/// Creates the segment of this host in a file of the first process there, or maps it. If it has only lock words, it is
/// a piece of a pool. The result has no memory if it cannot be mapped.
pub(super) fn share(
    made: &Communicator,
    told: &[Told],
    local: Vec<c_int>,
    wish: &Wish,
    offer: Offer,
) -> Result<(Option<Shared>, Option<File>)> {
    let (length, offsets) = plan(told, &local, wish).ok_or_else(too_large)?;
    let leader = local[0];
    // Each process reserves its own part, so that its memory is on its own NUMA node.
    let own = offsets[local.binary_search(&made.rank).unwrap_or(0)];
    let size = match wish.is_made() {
        true => told[made.rank as usize].size as usize,
        false => 0,
    };
    let words = lock_table::length(local.len(), told.len());
    let parts = [0..words, own..own + size];
    let first = &told[leader as usize];
    let task = (made.local[leader as usize], first.process);
    let mut kept = None;
    let memory = match offer {
        Offer::Piece(piece, ..) => Some(piece),
        Offer::File(file) => {
            let segment = file.memory(length, parts)?;
            kept = Some(file);
            Some(Piece::whole(segment))
        }
        Offer::Nothing if made.rank == leader && local.len() == 1 => {
            Some(Piece::whole(Segment::private(length)?))
        }
        Offer::Nothing if made.rank == leader => return Err(no_segment(length)),
        Offer::Nothing if first.offset >= 0 => {
            lock_memory::open(task, first.file, first.offset as usize, words)?
        }
        Offer::Nothing => {
            Segment::open(first.process, first.file, length, parts)?.map(Piece::whole)
        }
    };
    let shared = memory.map(|memory| Shared {
        locks: LockTable::new(memory, local, made.local.clone()),
        offsets,
        alone: false,
    });
    Ok((shared, kept))
}

#[cold]
fn no_segment(length: usize) -> Error {
    let text = format!("{length} bytes of memory for the window cannot be allocated on its host");
    Error::new(ERR_NO_MEM, text)
}

/// Allocates memory for this process only, where the processes of a host cannot share memory.
fn apart(made: &Communicator, told: &[Told], wish: &Wish) -> Result<Option<Shared>> {
    let own = vec![made.rank];
    let (length, offsets) = plan(told, &own, wish).ok_or_else(too_large)?;
    Ok(Some(Shared {
        locks: LockTable::new(
            Piece::whole(Segment::private(length)?),
            own,
            made.local.clone(),
        ),
        offsets,
        alone: true,
    }))
}

/// Returns the address of this process's memory, and whether the memory of all processes of its host can be copied.
pub(super) fn own_part(
    made: &Communicator,
    told: &[Told],
    wish: &Wish,
    shared: &Shared,
) -> (usize, bool) {
    let own_place = shared.locks.place(made.rank).unwrap_or(0);
    if wish.is_made() {
        let offset = shared.offsets[own_place];
        return (shared.locks.memory.base() as usize + offset, true);
    }
    let can_copy = shared.locks.local.iter().all(|&rank| {
        let it = &told[rank as usize];
        copying::is_possible(it.process, it.probe, value_of(it.process))
    });
    (wish.base, can_copy)
}

/// Creates or maps the memory of this host, and exchanges the parts of all processes.
pub(super) fn agree_on_parts(
    made: &Communicator,
    told: &[Told],
    local: &[c_int],
    wish: &Wish,
    offer: Offer,
) -> Result<(Shared, Vec<Part>)> {
    lock_memory::meet(local.iter().map(|&rank| {
        let it = &told[rank as usize];
        (made.local[rank as usize], it.process, it.probe)
    }));
    let (mut shared, file) = match share(made, told, local.to_vec(), wish, offer) {
        Ok((shared, file)) => (Ok(shared), file),
        Err(error) => (Err(error), None),
    };
    let mut heard = tell_part(made, told, wish, &shared);
    if let Ok(all) = &heard
        && all.iter().all(|it| it[0] == SUCCESS)
        && all.iter().any(|it| it[1] == 0)
    {
        if local.iter().any(|&rank| all[rank as usize][1] == 0) {
            shared = apart(made, told, wish);
        }
        heard = tell_part(made, told, wish, &shared);
    }
    // The file is kept open until all processes have mapped it.
    drop(file);
    let (shared, all) = (shared?, heard?);
    if let Some(failed) = Failed::first(all.iter().map(|it| it[0])) {
        return Err(failed.error(NO_WINDOW));
    }
    let shared = shared.ok_or_else(|| Error::new(ERR_INTERN, NO_WINDOW))?;
    Ok((shared, parts_of(all)))
}
