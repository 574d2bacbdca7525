//! Memory for the lock words of windows whose other memory belongs to the program.
//!
//! A process that is the first one of windows on its host has one *pool* for them, which the others map once, and keep: to make a window takes no call of the system then.
//! A window has a piece of it, which is given back when all have come to the window's end: nobody looks at it afterwards. After any error it stays as it is, since others
//! to which it was offered may have the window and use it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::copying;
use crate::error::Result;
use crate::segment::{Address, File, NOWHERE, Segment};

/// Size of a pool in bytes. A piece for two processes takes 384 bytes, so there is room for about 170 windows at a
/// time.
const POOL_BYTES: usize = 64 << 10;
/// Alignment of pieces in bytes, so that each has its own cache lines.
const PIECE_ALIGNMENT: usize = 128;
/// Number of processes that this one keeps in mind; more only if they make a window together.
const MAX_NEIGHBOURS: usize = 256;

/// Memory that begins with the lock words of a window.
pub struct Piece {
    segment: Arc<Segment>,
    offset: usize,
    /// Bytes of this process' pool; 0 of other memory.
    taken: usize,
    /// Whether they go back there.
    is_over: AtomicBool,
}

impl Piece {
    /// Returns the whole of a segment as a piece.
    pub fn whole(segment: Segment) -> Piece {
        Piece::lent(Arc::new(segment), 0)
    }

    fn lent(segment: Arc<Segment>, offset: usize) -> Piece {
        Piece {
            segment,
            offset,
            taken: 0,
            is_over: AtomicBool::new(false),
        }
    }

    /// Returns its address.
    pub fn base(&self) -> *mut u8 {
        self.segment.base().wrapping_add(self.offset)
    }

    /// Notes that no other process looks at it any more.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if self.taken != 0
            && *self.is_over.get_mut()
            && let Some(pool) = &mut *own_pool()
        {
            pool.give_back(self.offset, self.taken);
        }
    }
}

/// Memory of this process for windows in which it is the first one on its host.
struct Pool {
    file: File,
    segment: Arc<Segment>,
    /// Lengths of free parts in bytes, by their offsets.
    free: BTreeMap<usize, usize>,
}

static POOL: Mutex<Option<Pool>> = Mutex::new(None);

fn own_pool() -> MutexGuard<'static, Option<Pool>> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    fn new() -> Result<Pool> {
        let file = File::new()?;
        let segment = Arc::new(file.memory(POOL_BYTES, Some(0..POOL_BYTES))?);
        Ok(Pool {
            file,
            segment,
            free: BTreeMap::from([(0, POOL_BYTES)]),
        })
    }

    /// Takes a piece of this many bytes, all zero.
    fn take(&mut self, length: usize) -> Option<Piece> {
        let length = length.next_multiple_of(PIECE_ALIGNMENT);
        let (&offset, &room) = self.free.iter().find(|part| *part.1 >= length)?;
        self.free.remove(&offset);
        if room > length {
            self.free.insert(offset + length, room - length);
        }
        let mut piece = Piece::lent(self.segment.clone(), offset);
        piece.taken = length;
        // SAFETY: this part of the segment is nobody's.
        unsafe { piece.base().write_bytes(0, length) };
        Some(piece)
    }

    fn give_back(&mut self, offset: usize, length: usize) {
        let (mut offset, mut length) = (offset, length);
        if let Some(behind) = self.free.remove(&(offset + length)) {
            length += behind;
        }
        if let Some((&before, &room)) = self.free.range(..offset).next_back()
            && before + room == offset
        {
            (offset, length) = (before, room + length);
        }
        self.free.insert(offset, length);
    }
}

/// Takes a piece of this process's pool for the processes of its host. Returns it with the pool's file and its offset
/// there. Returns `None` if there is no room.
pub fn take(length: usize) -> Option<(Piece, Address, usize)> {
    let mut pool = own_pool();
    if pool.is_none() {
        *pool = Pool::new().ok();
    }
    let pool = pool.as_mut()?;
    let piece = pool.take(length)?;
    let offset = piece.offset;
    Some((piece, pool.file.address(), offset))
}

/// A process of this host with which this one has made a window.
struct Neighbour {
    process: c_int,
    /// Address of the word by which other processes check whether they can copy its memory.
    probe: u64,
    pool: Option<(Address, Arc<Segment>)>,
}

/// Known processes by their task numbers, which are never reused.
static NEIGHBOURS: Mutex<BTreeMap<c_int, Neighbour>> = Mutex::new(BTreeMap::new());

fn neighbours() -> MutexGuard<'static, BTreeMap<c_int, Neighbour>> {
    NEIGHBOURS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers these tasks of this host: for each the task number, the process number, and the address of the word by
/// which others check whether they can copy its memory.
pub fn meet(tasks: impl Iterator<Item = (c_int, c_int, u64)> + Clone) {
    let mut all = neighbours();
    let new = tasks.clone().filter(|task| !all.contains_key(&task.0));
    if all.len() + new.count() > MAX_NEIGHBOURS {
        let present: BTreeSet<c_int> = tasks.clone().map(|task| task.0).collect();
        all.retain(|task, _| present.contains(task));
    }
    for (task, process, probe) in tasks {
        all.entry(task).or_insert(Neighbour {
            process,
            probe,
            pool: None,
        });
    }
}

/// Returns whether the memory of a task can be copied, if this process knows that without asking.
pub fn can_copy(task: c_int, value: impl Fn(c_int) -> u64) -> bool {
    let all = neighbours();
    let known = all.get(&task);
    known.is_some_and(|it| copying::is_possible(it.process, it.probe, value(it.process)))
}

/// Returns the file of a task's pool if this process has mapped it.
pub fn mapped(task: c_int) -> Address {
    let all = neighbours();
    let pool = all.get(&task).and_then(|it| it.pool.as_ref());
    pool.map_or(NOWHERE, |pool| pool.0)
}

/// Returns `length` bytes at `offset` of the pool of a task and its process, which is mapped if that has not been done or is not kept in mind any more; `None` if they cannot be
/// had, or are no piece: another process says where they lie.
pub fn open(
    (task, process): (c_int, c_int),
    address: Address,
    offset: usize,
    length: usize,
) -> Result<Option<Piece>> {
    let is_inside = offset
        .checked_add(length)
        .is_some_and(|end| end <= POOL_BYTES);
    if !is_inside || !offset.is_multiple_of(PIECE_ALIGNMENT) {
        return Ok(None);
    }
    let mut all = neighbours();
    let known = all.get_mut(&task);
    let mapped = known.as_ref().and_then(|it| it.pool.as_ref());
    if let Some((_, segment)) = mapped.filter(|pool| pool.0 == address) {
        return Ok(Some(Piece::lent(segment.clone(), offset)));
    }
    let segment = Segment::open(process, address, POOL_BYTES, Some(0..POOL_BYTES))?;
    let segment = segment.map(Arc::new);
    if let Some(known) = known {
        known.pool = segment.clone().map(|segment| (address, segment));
    }
    Ok(segment.map(|segment| Piece::lent(segment, offset)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_zero_and_lie_apart_and_come_back() {
        let mut pool = Pool::new().expect("memory");
        let mut all: Vec<Piece> = std::iter::from_fn(|| pool.take(300)).collect();
        assert_eq!(all.len(), POOL_BYTES / 384);
        let mut give_back = |piece: Piece| {
            // SAFETY: the piece belongs to the test, and has at least 300 bytes.
            unsafe {
                assert!((0..300).all(|at| *piece.base().add(at) == 0));
                piece.base().write_bytes(7, 300);
            }
            pool.give_back(piece.offset, piece.taken);
        };
        // In an order in which free parts are before and behind a piece.
        let odd: Vec<Piece> = (0..all.len() / 2).map(|at| all.remove(at)).collect();
        odd.into_iter().for_each(&mut give_back);
        all.into_iter().for_each(&mut give_back);
        assert_eq!(pool.free, BTreeMap::from([(0, POOL_BYTES)]));
        let all = pool.take(POOL_BYTES).expect("room for all");
        // SAFETY: the piece belongs to the test, and has `POOL_BYTES` bytes.
        assert!(unsafe { (0..POOL_BYTES).all(|at| *all.base().add(at) == 0) });
    }

    #[test]
    fn a_piece_that_others_may_use_is_nobody_elses() {
        let next = || take(POOL_BYTES / 4).expect("room");
        let (offered, _, offset) = next();
        drop(offered);
        let (ended, _, after) = next();
        assert_ne!(after, offset, "others may write there");
        ended.end();
        drop(ended);
        assert_eq!(next().2, after);
    }

    #[test]
    fn a_pool_is_mapped_once() {
        const TASK: c_int = 7;
        let own = std::process::id() as c_int;
        let (piece, address, offset) = take(500).expect("room");
        let open = |offset, length| {
            let opened = super::open((TASK, own), address, offset, length);
            opened.expect("memory")
        };
        assert!(open(offset, 500).is_some(), "it need not be met");
        meet([(TASK, own, 0)].into_iter());
        assert_eq!(mapped(TASK), NOWHERE);
        let there = open(offset, 500).expect("a map");
        assert_eq!(mapped(TASK), address);
        // SAFETY: both have this length.
        unsafe {
            piece.base().write(9);
            assert_eq!(there.base().read(), 9);
        }
        assert_ne!(there.base(), piece.base());
        for (offset, length) in [(POOL_BYTES - 128, 500), (64, 64), (usize::MAX & !127, 500)] {
            assert!(open(offset, length).is_none());
        }
        let again = open(offset, 500).expect("a map");
        assert_eq!(again.base(), there.base());
        // More than are kept in mind: those that make a window together are, whether some are new or not.
        let many = |first: c_int| (first..first + 300).map(|task| (task, task, 0));
        for _ in 0..2 {
            meet(many(1000).chain([(TASK, own, 0)]));
            assert_eq!(mapped(TASK), address);
        }
        meet(many(2000));
        assert_eq!(mapped(TASK), NOWHERE, "it is not kept in mind any more");
        let later = open(offset, 500).expect("a map");
        // SAFETY: as above. What was mapped before stays for those that have it.
        unsafe {
            assert_eq!((later.base().read(), there.base().read()), (9, 9));
        }
    }
}
