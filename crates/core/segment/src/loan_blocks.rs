//! Loans: blocks of the segment that user code writes and reads in place.
//!
//! A block is memory of one of a few sizes behind a tag ([`Block`]) that says whose it is and who reads it. A task that is
//! handed a block may give it back, not only who borrowed it: each task keeps the blocks given back to it for its own next
//! loans, so blocks travel with the messages. Another task that needs a block of that size may take one that is kept, so
//! a stream of loans in one direction needs few blocks.
//!
//! *Readers.* The owner of a block can share it: then it stays the owner's, and readers are entered
//! in its tag, each in a place of its own, which the reader clears when it is done. The owner also
//! remembers them in memory of its own, and lends the block again when each has cleared its place or
//! is gone.
//!
//! *Blocks of those who are gone.* All blocks form a [`List`]. A task that needs a block looks through a part of it for one of the
//! right size that another task keeps, or whose owner is gone, and that nobody reads. Where the owner is gone and the size is
//! not right, the memory goes back to the system.
//! A block under way belongs to its receiver, so it comes back that way when the receiver is gone; when the sender is
//! gone the receiver keeps what has not arrived ([`LoanBlocks::take_in`]).

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

const SMALLEST: usize = 4096 - LINE;
const PAGE: usize = 4096;
/// From this size on, block sizes lie closer together.
const FINE_FROM: usize = 64 << 10;

/// Maximum size of the blocks that a task keeps for its next loans, in bytes.
const MAX_KEPT_BYTES: usize = 128 << 20;
/// Size of the blocks given back that wait for readers, in bytes, above which no block is shared.
const MAX_WAITING_BYTES: usize = 128 << 20;
/// Number of blocks searched for one that can be had, before a new one is made.
const MAX_BLOCKS_SEARCHED: u64 = 64;

/// The job, as far as a task's loans need it.
pub struct Around<'a> {
    /// The job's segment.
    pub segment: &'a Segment,
    /// All blocks.
    pub blocks: &'a List,
    /// The task.
    pub me: u32,
    /// Will this task touch no block any more?
    pub gone: &'a dyn Fn(u32) -> bool,
}

/// The blocks a task has.
#[derive(Debug, Default)]
pub struct LoanBlocks {
    /// By size, the oldest first. Another task may have one of these by now.
    kept: FxHashMap<usize, VecDeque<u64>>,
    /// All in `kept`: each stands there once.
    listed: FxHashSet<u64>,
    kept_bytes: usize,
    /// The readers of the blocks that are shared: places in their lines, and tasks.
    readers: FxHashMap<u64, Vec<(usize, u32)>>,
    /// Blocks and their sizes that were given back while somebody read them.
    waiting: Vec<(u64, usize)>,
    waiting_bytes: usize,
    /// The block at which the next search goes on.
    cursor: u64,
}

/// The size of the smallest block for this many bytes: with its line a power of two, or from some size on an
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
fn raw_tag(segment: &Segment, place: u64) -> Result<&Block, Corrupt> {
    let at = place.checked_sub(LINE as u64).ok_or(NONE)?;
    // SAFETY: atomics only.
    unsafe { segment.words(at) }
}

const NONE: Corrupt = Corrupt {
    what: "a loan's place holds no loan",
};

/// The tag of the block at `place`, and its size, if there is one.
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

/// All blocks, newest first: their places, tags and sizes.
fn all<'a>(
    segment: &'a Segment,
    blocks: &List,
) -> impl Iterator<Item = (u64, (&'a Block, usize))> + use<'a> {
    let find = move |place| listed_at(segment, place);
    blocks.walk(list::most_pieces(segment), find)
}

/// A dead task had been handed out this memory for a block.
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

    /// Let the system have the memory of a block of this task, and anybody the block.
    fn let_go(&self, place: u64, size: usize) {
        if let Ok(tag) = raw_tag(self.segment, place) {
            tag.let_go(self.me, || {
                // Memory that stays costs only memory.
                let _ = self.segment.release(place, size);
            });
        }
    }
}

impl LoanBlocks {
    /// Lend `len` bytes.
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
        // SAFETY: the block is this loan's alone until it is given back.
        Ok((place, unsafe { Views::block(memory.as_ptr(), len) }))
    }

    /// A block of one's own.
    fn take(&mut self, around: &Around, size: usize) -> Option<u64> {
        let mut kept = self.take_kept(around, size);
        if kept.is_none() && !self.waiting.is_empty() {
            self.collect(around);
            kept = self.take_kept(around, size);
        }
        kept
    }

    /// The block of this size that was kept last, but for those that others have by now.
    fn take_kept(&mut self, around: &Around, size: usize) -> Option<u64> {
        loop {
            let place = self.kept.get_mut(&size)?.pop_back()?;
            if self.regain(around, place, size) {
                return Some(place);
            }
        }
    }

    /// This block is not in `kept` any more. Is it this task's to use?
    fn regain(&mut self, around: &Around, place: u64, size: usize) -> bool {
        self.listed.remove(&place);
        self.kept_bytes -= size;
        raw_tag(around.segment, place).is_ok_and(|tag| tag.reuse(around.me))
    }

    /// A block that another task keeps, or of one that is gone, if the next ones of the list have one.
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

    /// Keep a block for the next loan. If too much is kept, the oldest of this size goes to the system.
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

    /// The memory of a loan that came with a message.
    pub fn check(segment: &Segment, place: u64, len: u64) -> Result<Views, Corrupt> {
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
    pub fn at(around: &Around, address: usize) -> Option<(u64, usize)> {
        let place = around.segment.offset_of(address)?;
        let (tag, size) = tag(around.segment, place).ok()?;
        tag.is_lent_to(around.me).then_some((place, size))
    }

    /// A block goes to a task as a message. False: it cannot, for somebody reads it or it is not this task's.
    pub fn send(&mut self, around: &Around, place: u64, to: u32) -> bool {
        !self.is_read(around, place)
            && tag(around.segment, place).is_ok_and(|(tag, _)| tag.send(around.me, to))
    }

    /// The message did not go out.
    pub fn take_back(around: &Around, place: u64, to: u32) {
        if let Ok((tag, _)) = tag(around.segment, place) {
            tag.take_back(around.me, to);
        }
    }

    /// A block has come from that task.
    pub fn arrive(around: &Around, place: u64, from: u32) -> Result<(), Corrupt> {
        let (tag, _) = tag(around.segment, place)?;
        match tag.arrive(around.me, from) {
            true => Ok(()),
            false => Err(Corrupt {
                what: "a message names a loan that its sender has not handed over",
            }),
        }
    }

    /// A task is gone, and all that it sent has been taken in. Blocks that it had handed over and not sent are kept.
    pub fn take_in(&mut self, around: &Around, from: u32) {
        for (place, (tag, _)) in all(around.segment, around.blocks) {
            if tag.arrive(around.me, from) {
                self.give_back(around, place);
            }
        }
    }

    /// Keep a block for the next loan, as soon as nobody reads it. A block that is not lent to this task is left
    /// alone.
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

    /// Let a task read a block that is lent to this one: the name by which it finds it. `None`: as many
    /// read it as can, or too much waits for readers.
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

    /// The memory of a block that this task may read, by its name.
    pub fn open(around: &Around, name: u64, len: usize) -> Result<NonNull<u8>, Corrupt> {
        let place = name & !(LINE as u64 - 1);
        let (tag, size) = tag(around.segment, place)?;
        let allowed = tag.reader((name - place) as usize) == Some(around.me + 1);
        if !allowed || len > size {
            return Err(Corrupt {
                what: "a shared block was named that this task may not read",
            });
        }
        around.segment.at(place, len)
    }

    /// This task does not read a block any more; or, if the block is its own, the reader it shared it
    /// with by this name will not hear of it.
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

    /// This task leaves, and nobody knows it yet. From now on it touches no block.
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
