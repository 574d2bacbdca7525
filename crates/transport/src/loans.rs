//! Loans: blocks of the segment that user code writes and reads in place.
//!
//! A block is memory of one of a few sizes behind a line that says how many bytes there are, whether
//! they are lent, whose they are and who reads them. Whoever is handed a block may give it back, not only who borrowed it: each
//! task keeps the blocks given back to it for its own next loans, so blocks travel with the messages.
//!
//! *Readers.* The owner of a block can share it: then it stays the owner's, and readers are entered
//! in its line, each in a place of its own, which the reader clears when it is done. The owner also
//! remembers them in memory of its own, and lends the block again when each has cleared its place or
//! is gone.
//!
//! *Blocks of those who are gone.* All blocks form a list. Who needs one looks through a part of it
//! for blocks whose owner is gone and that nobody reads, or whose memory the owner gave back.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use regatta_engine::Peer;
use regatta_memory::segment::Segment;
use regatta_memory::views::Views;
use regatta_memory::{Corrupt, LINE};
use rustc_hash::FxHashMap;

const LENT: u64 = u64::from_le_bytes(*b"rg-lent!");
const HERE: u64 = u64::from_le_bytes(*b"rg-here!");
const SMALLEST: usize = 4096 - LINE;
const PAGE: usize = 4096;
/// From this size on, block sizes lie closer together.
const FINE_FROM: usize = 64 << 10;

/// Tasks that can read a block at a time, besides its owner.
const READERS: usize = 9;
/// The owner of a block that is on its way as a message.
const NOBODY: u32 = 0;
/// The owner of a block that anybody may have; its memory may not be there.
const FREE: u32 = u32::MAX;
/// A task keeps so many bytes of blocks for its next loans.
const MOST_KEPT: usize = 128 << 20;
/// No block is shared while so many bytes that were given back wait for readers.
const MOST_WAITING: usize = 128 << 20;
/// Blocks that are looked at for one that can be had, before a new one is made.
const LOOKS: usize = 64;

#[repr(C, align(64))]
struct Tag {
    state: AtomicU64,
    size: AtomicU64,
    /// The block that was made before this one.
    before: AtomicU64,
    /// Number of a task + 1, or [`NOBODY`], or [`FREE`].
    owner: AtomicU32,
    /// Numbers of tasks + 1, or 0.
    readers: [AtomicU32; READERS],
}

/// What a task's loans must know of the job.
pub(crate) struct Around<'a> {
    pub(crate) segment: &'a Segment,
    /// The place of the newest block, or 0.
    pub(crate) newest: &'a AtomicU64,
    pub(crate) me: Peer,
    /// Will this task touch no block any more?
    pub(crate) gone: &'a dyn Fn(Peer) -> bool,
}

/// The blocks a task has.
#[derive(Debug, Default)]
pub(crate) struct Loans {
    kept: FxHashMap<usize, Vec<u64>>,
    kept_bytes: usize,
    /// Who reads the blocks that are shared: places in their lines, and tasks.
    readers: FxHashMap<u64, Vec<(usize, Peer)>>,
    /// Blocks and their sizes that were given back while somebody read them.
    waiting: Vec<(u64, usize)>,
    waiting_bytes: usize,
    /// The block at which the next search goes on.
    cursor: u64,
}

/// The size of the smallest block for so many bytes: with its line a power of two, or from some size on an
/// eighth more, two eighths more, ...
fn block_size(len: usize) -> Option<usize> {
    let whole = len.max(SMALLEST).checked_add(LINE)?;
    if whole <= FINE_FROM {
        return Some(whole.next_power_of_two() - LINE);
    }
    let step = 1 << (whole.ilog2() - 3);
    Some(whole.checked_next_multiple_of(step)? - LINE)
}

fn damaged(corrupt: Corrupt) -> io::Error {
    io::Error::other(corrupt.what)
}

/// The tag before `place`, whatever it says.
fn raw_tag(segment: &Segment, place: u64) -> Result<&Tag, Corrupt> {
    let at = place.checked_sub(LINE as u64).ok_or(NONE)?;
    // SAFETY: atomics only.
    unsafe { segment.words(at) }
}

const NONE: Corrupt = Corrupt {
    what: "a loan's place holds no loan",
};

/// The tag of the block at `place`, and its size, if there is one.
fn tag(segment: &Segment, place: u64) -> Result<(&Tag, usize), Corrupt> {
    let tag = raw_tag(segment, place)?;
    let size = tag.size.load(Ordering::Acquire) as usize;
    if block_size(size) != Some(size) {
        return Err(NONE);
    }
    segment.at(place, size)?;
    Ok((tag, size))
}

impl Around<'_> {
    /// This task, as owner or reader.
    fn mine(&self) -> u32 {
        self.me + 1
    }

    fn is_gone(&self, entry: u32) -> bool {
        entry != NOBODY && entry != FREE && (self.gone)(entry - 1)
    }

    fn make(&self, size: usize) -> io::Result<u64> {
        let align = if size < PAGE { LINE } else { PAGE };
        let place = self.segment.allocate(size + LINE, align)? + LINE as u64;
        let tag = raw_tag(self.segment, place).map_err(damaged)?;
        tag.size.store(size as u64, Ordering::Relaxed);
        tag.owner.store(self.mine(), Ordering::Relaxed);
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            tag.before.store(newest, Ordering::Relaxed);
            let pushed = self.newest.compare_exchange_weak(
                newest,
                place,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match pushed {
                Ok(_) => return Ok(place),
                Err(now) => newest = now,
            }
        }
    }

    /// Make a block this task's own, if nobody else has anything to do with it.
    fn claim(&self, tag: &Tag) -> bool {
        let owner = tag.owner.load(Ordering::Acquire);
        let unread = |reader: &AtomicU32| {
            let reader = reader.load(Ordering::Acquire);
            reader == 0 || self.is_gone(reader)
        };
        (owner == FREE || self.is_gone(owner))
            && tag.readers.iter().all(unread)
            && tag
                .owner
                .compare_exchange(owner, self.mine(), Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// Let the system have the memory of a block, and anybody the block.
    fn let_go(&self, place: u64, size: usize) {
        if let Ok(tag) = raw_tag(self.segment, place) {
            // Memory that stays costs only memory.
            let _ = self.segment.release(place, size);
            tag.owner.store(FREE, Ordering::Release);
        }
    }
}

impl Loans {
    /// Lend `len` bytes.
    pub(crate) fn lend(&mut self, around: &Around, len: usize) -> io::Result<(u64, Views)> {
        let size = block_size(len).ok_or(io::ErrorKind::OutOfMemory)?;
        let place = match self.take(around, size) {
            Some(place) => place,
            None => match self.adopt(around, size)? {
                Some(place) => place,
                None => around.make(size)?,
            },
        };
        let tag = raw_tag(around.segment, place).map_err(damaged)?;
        tag.size.store(size as u64, Ordering::Relaxed);
        tag.state.store(LENT, Ordering::Release);
        let memory = around.segment.at(place, len).map_err(damaged)?;
        // SAFETY: the block is this loan's alone until it is given back.
        Ok((place, unsafe { Views::block(memory.as_ptr(), len) }))
    }

    /// A block of one's own.
    fn take(&mut self, around: &Around, size: usize) -> Option<u64> {
        let mut kept = self.kept.get_mut(&size).and_then(Vec::pop);
        if kept.is_none() && !self.waiting.is_empty() {
            self.collect(around);
            kept = self.kept.get_mut(&size).and_then(Vec::pop);
        }
        self.kept_bytes -= kept.map_or(0, |_| size);
        kept
    }

    /// A block of somebody who is gone, if the next ones of the list have one.
    fn adopt(&mut self, around: &Around, size: usize) -> io::Result<Option<u64>> {
        for _ in 0..LOOKS {
            if self.cursor == 0 {
                self.cursor = around.newest.load(Ordering::Acquire);
            }
            let place = self.cursor;
            let Ok((tag, found)) = tag(around.segment, place) else {
                self.cursor = 0;
                return Ok(None);
            };
            self.cursor = tag.before.load(Ordering::Relaxed);
            if found == size && around.claim(tag) {
                for reader in &tag.readers {
                    reader.store(0, Ordering::Relaxed);
                }
                if let Err(error) = around.segment.back(place, size) {
                    tag.owner.store(FREE, Ordering::Release);
                    return Err(error);
                }
                return Ok(Some(place));
            }
            if self.cursor == 0 {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Take back what was waiting for readers that are done by now.
    fn collect(&mut self, around: &Around) {
        let mut at = 0;
        while let Some(&(place, size)) = self.waiting.get(at) {
            if self.is_read(around, place) {
                at += 1;
                continue;
            }
            self.waiting.remove(at);
            self.waiting_bytes -= size;
            self.keep(around, place, size);
        }
    }

    /// Does anybody read this block of ours?
    pub(crate) fn is_read(&mut self, around: &Around, place: u64) -> bool {
        let Some(readers) = self.readers.get_mut(&place) else {
            return false;
        };
        let Ok(tag) = raw_tag(around.segment, place) else {
            return true;
        };
        readers.retain(|&(at, peer)| {
            let reads = tag.readers[at].load(Ordering::Acquire) == peer + 1;
            if reads && (around.gone)(peer) {
                tag.readers[at].store(0, Ordering::Relaxed);
                return false;
            }
            reads
        });
        if readers.is_empty() {
            self.readers.remove(&place);
            return false;
        }
        true
    }

    fn keep(&mut self, around: &Around, place: u64, size: usize) {
        if self.kept_bytes.saturating_add(size) > MOST_KEPT {
            return around.let_go(place, size);
        }
        self.kept_bytes += size;
        self.kept.entry(size).or_default().push(place);
    }

    /// The memory of a loan that came with a message.
    pub(crate) fn check(segment: &Segment, place: u64, len: u64) -> Result<Views, Corrupt> {
        let (_, size) = tag(segment, place)?;
        if len > size as u64 {
            return Err(Corrupt {
                what: "a message claims to be longer than the loan it lies in",
            });
        }
        let memory = segment.at(place, len as usize)?;
        // SAFETY: inside the segment; the sender has handed the block over.
        Ok(unsafe { Views::block(memory.as_ptr(), len as usize) })
    }

    /// The loan of this task that starts at an address.
    pub(crate) fn at(around: &Around, address: usize) -> Option<(u64, usize)> {
        let place = around.segment.offset_of(address)?;
        let (tag, size) = tag(around.segment, place).ok()?;
        let owner = tag.owner.load(Ordering::Relaxed);
        let lent = tag.state.load(Ordering::Relaxed) == LENT;
        (lent && (owner == NOBODY || owner == around.mine())).then_some((place, size))
    }

    /// A block goes as a message: until somebody has it, it is nobody's.
    pub(crate) fn hand_over(segment: &Segment, place: u64) {
        if let Ok((tag, _)) = tag(segment, place) {
            tag.owner.store(NOBODY, Ordering::Release);
        }
    }

    /// Keep a block for the next loan, as soon as nobody reads it. A block that is not lent is left
    /// alone.
    pub(crate) fn give_back(&mut self, around: &Around, place: u64) {
        let Ok((tag, size)) = tag(around.segment, place) else {
            return;
        };
        let lent = tag
            .state
            .compare_exchange(LENT, HERE, Ordering::AcqRel, Ordering::Relaxed);
        if lent.is_err() {
            return;
        }
        tag.owner.store(around.mine(), Ordering::Release);
        if self.is_read(around, place) {
            self.waiting_bytes += size;
            self.waiting.push((place, size));
        } else {
            self.keep(around, place, size);
        }
    }

    /// Let a task read a block that is lent to this one: the name by which it finds it. `None`: as many
    /// read it as can, or too much waits for readers.
    pub(crate) fn share(&mut self, around: &Around, place: u64, reader: Peer) -> Option<u64> {
        if self.waiting_bytes > MOST_WAITING {
            self.collect(around);
        }
        let tag = raw_tag(around.segment, place).ok()?;
        self.is_read(around, place);
        let readers = self.readers.get(&place);
        let is_free = |at: &usize| readers.is_none_or(|all| all.iter().all(|one| one.0 != *at));
        let at = (0..READERS)
            .find(is_free)
            .filter(|_| self.waiting_bytes <= MOST_WAITING)?;
        tag.owner.store(around.mine(), Ordering::Relaxed);
        tag.readers[at].store(reader + 1, Ordering::Release);
        self.readers.entry(place).or_default().push((at, reader));
        Some(place | at as u64)
    }

    /// The memory of a block that this task may read, by its name.
    pub(crate) fn open(around: &Around, name: u64, len: usize) -> Result<NonNull<u8>, Corrupt> {
        let place = name & !(LINE as u64 - 1);
        let (tag, size) = tag(around.segment, place)?;
        let reader = tag.readers.get((name - place) as usize);
        let allowed = reader.is_some_and(|at| at.load(Ordering::Acquire) == around.mine());
        if !allowed || len > size {
            return Err(Corrupt {
                what: "a shared block was named that this task may not read",
            });
        }
        around.segment.at(place, len)
    }

    /// This task does not read a block any more; or, if the block is its own, the reader it shared it
    /// with by this name will not hear of it.
    pub(crate) fn close(&mut self, around: &Around, name: u64) {
        let place = name & !(LINE as u64 - 1);
        let at = (name - place) as usize;
        let Ok((tag, _)) = tag(around.segment, place) else {
            return;
        };
        let Some(reader) = tag.readers.get(at) else {
            return;
        };
        let shared_by_me = self
            .readers
            .get(&place)
            .is_some_and(|all| all.iter().any(|one| one.0 == at));
        if shared_by_me || reader.load(Ordering::Relaxed) == around.mine() {
            reader.store(0, Ordering::Release);
        }
    }

    /// This task leaves.
    pub(crate) fn leave(&mut self, around: &Around) {
        self.collect(around);
        for (size, places) in std::mem::take(&mut self.kept) {
            for place in places {
                around.let_go(place, size);
            }
        }
        self.kept_bytes = 0;
    }
}

#[cfg(test)]
mod tests;
