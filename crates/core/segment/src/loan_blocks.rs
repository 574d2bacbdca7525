//! Loans: blocks of the segment that user code writes and reads in place.
//!
//! A block is memory of one of a few sizes behind a tag ([`Block`]) that names its owner and its readers. A block
//! that was sent to a task belongs to that task, which may give it back. Each task keeps the blocks that it gives
//! back for its own next loans, so blocks travel with the messages. Another task that needs a block of that size may
//! take one that is kept, so a stream of loans in one direction needs few blocks.
//!
//! *Readers.* The owner of a block can share it. The block then stays the owner's, and each reader is entered in a
//! slot of the tag, which the reader clears when it is done. The owner also remembers the readers in its own memory,
//! and lends the block again once each reader has cleared its slot or is gone.
//!
//! *Blocks of tasks that are gone.* All blocks form a [`List`]. A task that needs a block searches a part of the list
//! for one of the right size that nobody reads, and that another task keeps or whose owner is gone. If the search
//! finds a block of another size whose owner is gone, it releases that block's memory to the system. A block in
//! transit belongs to its receiver, so it is recovered in this way if the receiver is gone. If the sender is gone,
//! the receiver keeps the blocks that have not arrived ([`LoanBlocks::take_in`]).

use std::collections::VecDeque;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use regatta_memory::block::{Block, Claimed, READERS};
use regatta_memory::list::{self, Link, List};
use regatta_memory::making::{Left, Maker};
use regatta_memory::segment::Segment;
use regatta_memory::views::Views;
use regatta_memory::{Corrupt, LINE};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::left;

const MIN_BLOCK_BYTES: usize = 4096 - LINE;
const PAGE: usize = 4096;
/// Size in bytes from which block sizes are spaced more closely.
const FINE_FROM: usize = 64 << 10;

/// Maximum total size in bytes of the blocks that a task keeps for its next loans.
const MAX_KEPT_BYTES: usize = 128 << 20;
/// Total size in bytes of the blocks given back that wait for readers, above which no block is shared.
const MAX_WAITING_BYTES: usize = 128 << 20;
/// Number of blocks searched for a reusable one before a new one is made.
const MAX_BLOCKS_SEARCHED: u64 = 64;

/// The parts of the job that a task's loans need.
pub struct Around<'a> {
    /// The job's segment.
    pub segment: &'a Segment,
    /// The list of all blocks.
    pub blocks: &'a List,
    /// The task.
    pub me: u32,
    /// Returns whether a task will never again access a block.
    pub gone: &'a dyn Fn(u32) -> bool,
}

/// The blocks of a task.
#[derive(Debug, Default)]
pub struct LoanBlocks {
    /// Offsets of the kept blocks by size, the oldest first. Another task may have taken some of them.
    kept: FxHashMap<usize, VecDeque<u64>>,
    /// All blocks in `kept`, each of which is in there once.
    listed: FxHashSet<u64>,
    kept_bytes: usize,
    /// The readers of each shared block: slots in its tag, and tasks.
    readers: FxHashMap<u64, Vec<(usize, u32)>>,
    /// Blocks that were given back while they were read, and their sizes.
    waiting: Vec<(u64, usize)>,
    waiting_bytes: usize,
    /// The block at which the next search resumes.
    cursor: u64,
}

/// Returns the size of the smallest block for this many bytes. With its line, a size is a power of two; from
/// `FINE_FROM` on there are also sizes in steps of an eighth of a power of two. Returns `None` on overflow.
fn block_size(len: usize) -> Option<usize> {
    let whole = len.max(MIN_BLOCK_BYTES).checked_add(LINE)?;
    if whole <= FINE_FROM {
        return Some(whole.next_power_of_two() - LINE);
    }
    let step = 1 << (whole.ilog2() - 3);
    Some(whole.checked_next_multiple_of(step)? - LINE)
}

fn damaged(corrupt: Corrupt) -> io::Error {
    io::Error::other(corrupt.what)
}

/// Returns the tag before `place`, without checking its contents.
fn raw_tag(segment: &Segment, place: u64) -> Result<&Block, Corrupt> {
    let at = place.checked_sub(LINE as u64).ok_or(NONE)?;
    // SAFETY: `Block` consists of atomics only.
    unsafe { segment.words(at) }
}

const NONE: Corrupt = Corrupt {
    what: "a loan's slot holds no loan",
};

/// Returns the tag of the block at `place`, and the block's size. Fails if no block is there.
fn tag(segment: &Segment, place: u64) -> Result<(&Block, usize), Corrupt> {
    let tag = raw_tag(segment, place)?;
    let size = tag.size.load(Ordering::Acquire) as usize;
    if block_size(size) != Some(size) {
        return Err(NONE);
    }
    segment.at(place, size)?;
    Ok((tag, size))
}

/// A block on the list: its tag, its size, and its link.
type Listed<'a> = ((&'a Block, usize), &'a Link);

fn listed_at(segment: &Segment, place: u64) -> Option<Listed<'_>> {
    let (tag, size) = tag(segment, place).ok()?;
    Some(((tag, size), &tag.before))
}

/// Returns all blocks, newest first: their offsets, tags and sizes.
fn all<'a>(
    segment: &'a Segment,
    blocks: &List,
) -> impl Iterator<Item = (u64, (&'a Block, usize))> + use<'a> {
    let find = move |place| listed_at(segment, place);
    blocks.walk(list::most_pieces(segment), find)
}

/// Makes a block of memory that a task had allocated for one when it died, and puts it on the list.
pub(crate) fn list_for_dead(segment: &Segment, blocks: &List, left: Left, task: u32) {
    let place = left.start + LINE as u64;
    let size = (left.end.saturating_sub(left.start)).saturating_sub(LINE as u64) as usize;
    let fits = block_size(size) == Some(size) && segment.at(place, size).is_ok();
    if fits
        && all(segment, blocks).all(|(other, _)| other != place)
        && let Ok(tag) = raw_tag(segment, place)
    {
        tag.begin(size, task);
        blocks.push(place, &tag.before);
    }
}

impl Around<'_> {
    fn make(&self, size: usize) -> io::Result<u64> {
        let align = if size < PAGE { LINE } else { PAGE };
        let maker = Maker {
            task: self.me,
            kind: left::BLOCK,
        };
        let place = self.segment.allocate_for(maker, size + LINE, align)? + LINE as u64;
        let tag = raw_tag(self.segment, place).map_err(damaged)?;
        tag.begin(size, self.me);
        self.blocks.push(place, &tag.before);
        self.segment.listed(self.me);
        Ok(place)
    }

    /// Releases the memory of a block of this task to the system, and lets any task take the block.
    fn let_go(&self, place: u64, size: usize) {
        if let Ok(tag) = raw_tag(self.segment, place) {
            tag.let_go(self.me, || {
                // If the release fails, the memory stays allocated; nothing else is affected.
                let _ = self.segment.release(place, size);
            });
        }
    }
}

impl LoanBlocks {
    /// Lends `len` bytes. Returns the offset of the block and its memory.
    pub fn lend(&mut self, around: &Around, len: usize) -> io::Result<(u64, Views)> {
        let size = block_size(len).ok_or(io::ErrorKind::OutOfMemory)?;
        let place = match self.take(around, size) {
            Some(place) => place,
            None => match self.adopt(around, size)? {
                Some(place) => place,
                None => around.make(size)?,
            },
        };
        let tag = raw_tag(around.segment, place).map_err(damaged)?;
        tag.lend();
        let memory = around.segment.at(place, len).map_err(damaged)?;
        // SAFETY: only this loan uses the block until it is given back.
        Ok((place, unsafe { Views::block(memory.as_ptr(), len) }))
    }

    /// Takes a kept block of this size. Returns `None` if this task has none.
    fn take(&mut self, around: &Around, size: usize) -> Option<u64> {
        let mut kept = self.take_kept(around, size);
        if kept.is_none() && !self.waiting.is_empty() {
            self.collect(around);
            kept = self.take_kept(around, size);
        }
        kept
    }

    /// Takes the block of this size that was kept last, skipping those that other tasks have taken.
    fn take_kept(&mut self, around: &Around, size: usize) -> Option<u64> {
        loop {
            let place = self.kept.get_mut(&size)?.pop_back()?;
            if self.regain(around, place, size) {
                return Some(place);
            }
        }
    }

    /// Accounts for a block that was removed from `kept`. Returns whether it still belongs to this task, which may
    /// then use it.
    fn regain(&mut self, around: &Around, place: u64, size: usize) -> bool {
        self.listed.remove(&place);
        self.kept_bytes -= size;
        raw_tag(around.segment, place).is_ok_and(|tag| tag.reuse(around.me))
    }

    /// Searches the next blocks of the list for one of this size that another task keeps, or whose owner is gone, and
    /// takes it.
    fn adopt(&mut self, around: &Around, size: usize) -> io::Result<Option<u64>> {
        let find = |place| listed_at(around.segment, place);
        let mut walk = around
            .blocks
            .walk_on(self.cursor, MAX_BLOCKS_SEARCHED, find);
        let adopted = walk.find_map(|(place, (tag, found))| {
            let fits = found == size;
            if !fits && !tag.is_abandoned(around.gone) {
                return None;
            }
            let claimed = tag.claim(around.me, around.gone)?;
            if !fits {
                around.let_go(place, found);
                return None;
            }
            let backed = match claimed {
                Claimed::Bare => around.segment.back(place, size),
                Claimed::Whole => Ok(()),
            };
            if backed.is_err() {
                around.let_go(place, size);
            }
            Some(backed.map(|()| place))
        });
        self.cursor = walk.next_place();
        adopted.transpose()
    }

    /// Keeps the waiting blocks whose readers are done.
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

    /// Returns whether a task reads this block, which must be this task's own.
    pub fn is_read(&mut self, around: &Around, place: u64) -> bool {
        let Some(readers) = self.readers.get_mut(&place) else {
            return false;
        };
        let Ok(tag) = raw_tag(around.segment, place) else {
            return true;
        };
        readers.retain(|&(at, peer)| {
            let reads = tag.reader(at) == Some(peer + 1);
            if reads && (around.gone)(peer) {
                tag.dismiss(at);
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

    /// Keeps a block for the next loan. If too much is kept, releases the oldest block of this size to the system.
    fn keep(&mut self, around: &Around, place: u64, size: usize) {
        if self.kept_bytes.saturating_add(size) > MAX_KEPT_BYTES {
            let oldest = self.kept.get_mut(&size).and_then(VecDeque::pop_front);
            let Some(oldest) = oldest else {
                return around.let_go(place, size);
            };
            if self.regain(around, oldest, size) {
                around.let_go(oldest, size);
            }
        }
        if self.listed.insert(place) {
            self.kept_bytes += size;
            self.kept.entry(size).or_default().push_back(place);
        }
        if let Ok(tag) = raw_tag(around.segment, place) {
            tag.keep(around.me);
        }
    }

    /// Returns the memory of a loan that a message names. Fails if no block is there, or if it is shorter than `len`.
    pub fn check(segment: &Segment, place: u64, len: u64) -> Result<Views, Corrupt> {
        let (_, size) = tag(segment, place)?;
        if len > size as u64 {
            return Err(Corrupt {
                what: "a message claims to be longer than its loan",
            });
        }
        let memory = segment.at(place, len as usize)?;
        // SAFETY: the memory is inside the segment, and the sender has handed the block over.
        Ok(unsafe { Views::block(memory.as_ptr(), len as usize) })
    }

    /// Returns the loan of this task that starts at an address: its offset and size.
    pub fn at(around: &Around, address: usize) -> Option<(u64, usize)> {
        let place = around.segment.offset_of(address)?;
        let (tag, size) = tag(around.segment, place).ok()?;
        tag.is_lent_to(around.me).then_some((place, size))
    }

    /// Hands a block to a task, to which a message sends it. Returns false if the block is being read or is not this
    /// task's.
    pub fn send(&mut self, around: &Around, place: u64, to: u32) -> bool {
        !self.is_read(around, place)
            && tag(around.segment, place).is_ok_and(|(tag, _)| tag.send(around.me, to))
    }

    /// Takes a block back whose message was not sent.
    pub fn take_back(around: &Around, place: u64, to: u32) {
        if let Ok((tag, _)) = tag(around.segment, place) {
            tag.take_back(around.me, to);
        }
    }

    /// Takes possession of a block that a message from task `from` has brought.
    pub fn arrive(around: &Around, place: u64, from: u32) -> Result<(), Corrupt> {
        let (tag, _) = tag(around.segment, place)?;
        match tag.arrive(around.me, from) {
            true => Ok(()),
            false => Err(Corrupt {
                what: "a message names a loan that its sender has not sent",
            }),
        }
    }

    /// Takes over the blocks that a task had handed to this one and not sent. Call it when that task is gone and all
    /// its messages have been received.
    pub fn take_in(&mut self, around: &Around, from: u32) {
        for (place, (tag, _)) in all(around.segment, around.blocks) {
            if tag.arrive(around.me, from) {
                self.give_back(around, place);
            }
        }
    }

    /// Ends a loan, and keeps the block for the next one as soon as no task reads it. Has no effect on a block that
    /// is not lent to this task.
    pub fn give_back(&mut self, around: &Around, place: u64) {
        let Ok((tag, size)) = tag(around.segment, place) else {
            return;
        };
        if !tag.is_owned_by(around.me) || !tag.end_loan() {
            return;
        }
        if self.is_read(around, place) {
            self.waiting_bytes += size;
            self.waiting.push((place, size));
        } else {
            self.keep(around, place, size);
        }
    }

    /// Lets a task read a block that is lent to this one. Returns the name by which the reader opens it. Returns
    /// `None` if it has the maximum number of readers, or if too many bytes wait for readers.
    pub fn share(&mut self, around: &Around, place: u64, reader: u32) -> Option<u64> {
        if self.waiting_bytes > MAX_WAITING_BYTES {
            self.collect(around);
        }
        let tag = raw_tag(around.segment, place).ok()?;
        self.is_read(around, place);
        let readers = self.readers.get(&place);
        let is_free = |at: &usize| readers.is_none_or(|all| all.iter().all(|one| one.0 != *at));
        let at = (0..READERS)
            .find(is_free)
            .filter(|_| self.waiting_bytes <= MAX_WAITING_BYTES && tag.is_owned_by(around.me))?;
        tag.admit(at, reader);
        self.readers.entry(place).or_default().push((at, reader));
        Some(place | at as u64)
    }

    /// Returns the memory of a block that this task may read, by its name.
    pub fn open(around: &Around, name: u64, len: usize) -> Result<NonNull<u8>, Corrupt> {
        let place = name & !(LINE as u64 - 1);
        let (tag, size) = tag(around.segment, place)?;
        let allowed = tag.reader((name - place) as usize) == Some(around.me + 1);
        if !allowed || len > size {
            return Err(Corrupt {
                what: "a message names a shared block that this task may not read",
            });
        }
        around.segment.at(place, len)
    }

    /// Ends the reading of a block by this task. If the block is this task's own, withdraws the share of this name,
    /// which its reader will not receive.
    pub fn close(&mut self, around: &Around, name: u64) {
        let place = name & !(LINE as u64 - 1);
        let at = (name - place) as usize;
        let Ok((tag, _)) = tag(around.segment, place) else {
            return;
        };
        let shared_by_me = self
            .readers
            .get(&place)
            .is_some_and(|all| all.iter().any(|one| one.0 == at));
        if shared_by_me || tag.reader(at) == Some(around.me + 1) {
            tag.dismiss(at);
        }
    }

    /// Releases the kept blocks. Call it before other tasks learn that this one leaves; after it, this task accesses
    /// no block.
    pub fn leave(&mut self, around: &Around) {
        self.collect(around);
        for (size, places) in std::mem::take(&mut self.kept) {
            for place in places {
                if self.regain(around, place, size) {
                    around.let_go(place, size);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
