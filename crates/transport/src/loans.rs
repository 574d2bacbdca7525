//! Loans: blocks of the segment that user code writes and reads in place.
//!
//! A block is a power of two of bytes behind a line that says how many and whether it is lent.
//! Whoever holds a block may give it back, not only who borrowed it: each task keeps the blocks
//! given back to it for its own next loans, so blocks travel with the messages.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use regatta_memory::segment::Segment;
use regatta_memory::views::Views;
use regatta_memory::{Corrupt, LINE};
use rustc_hash::FxHashMap;

const LENT: u64 = u64::from_le_bytes(*b"rg-lent!");
const HERE: u64 = u64::from_le_bytes(*b"rg-here!");
const SMALLEST: usize = 4096 - LINE;

#[repr(C, align(64))]
struct Tag {
    state: AtomicU64,
    size: AtomicU64,
}

/// The blocks a task keeps.
#[derive(Debug, Default)]
pub(crate) struct Loans {
    kept: FxHashMap<usize, Vec<u64>>,
}

fn block_size(len: usize) -> Option<usize> {
    Some((len.max(SMALLEST).checked_add(LINE)?).checked_next_power_of_two()? - LINE)
}

/// The tag of the block at `place`, and its size, if there is one.
fn tag(segment: &Segment, place: u64) -> Result<(&Tag, usize), Corrupt> {
    const NONE: Corrupt = Corrupt {
        what: "a loan's place holds no loan",
    };
    let at = place.checked_sub(LINE as u64).ok_or(NONE)?;
    // SAFETY: atomics only.
    let tag: &Tag = unsafe { segment.words(at) }?;
    let size = tag.size.load(Ordering::Acquire) as usize;
    if block_size(size) != Some(size) {
        return Err(NONE);
    }
    segment.at(place, size)?;
    Ok((tag, size))
}

impl Loans {
    /// Lend `len` bytes.
    pub(crate) fn lend(&mut self, segment: &Segment, len: usize) -> io::Result<(u64, Views)> {
        let size = block_size(len).ok_or(io::ErrorKind::OutOfMemory)?;
        let kept = self.kept.get_mut(&size).and_then(Vec::pop);
        let place = match kept {
            Some(place) => place,
            None => segment.allocate(size + LINE, LINE)? + LINE as u64,
        };
        let damaged = |corrupt: Corrupt| io::Error::other(corrupt.what);
        // SAFETY: atomics only.
        let tag: &Tag = unsafe { segment.words(place - LINE as u64) }.map_err(damaged)?;
        tag.size.store(size as u64, Ordering::Relaxed);
        tag.state.store(LENT, Ordering::Release);
        let memory = segment.at(place, len).map_err(damaged)?;
        // SAFETY: the block is this loan's alone until it is given back.
        Ok((place, unsafe { Views::block(memory.as_ptr(), len) }))
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

    /// The loan that starts at an address.
    pub(crate) fn at(segment: &Segment, address: usize) -> Option<(u64, usize)> {
        let place = segment.offset_of(address)?;
        let (tag, size) = tag(segment, place).ok()?;
        (tag.state.load(Ordering::Relaxed) == LENT).then_some((place, size))
    }

    /// Keep a block for the next loan. A block that is not lent is left alone.
    pub(crate) fn give_back(&mut self, segment: &Segment, place: u64) {
        let Ok((tag, size)) = tag(segment, place) else {
            return;
        };
        let lent = tag
            .state
            .compare_exchange(LENT, HERE, Ordering::AcqRel, Ordering::Relaxed);
        if lent.is_ok() {
            self.kept.entry(size).or_default().push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_and_made_up_ones_are_refused() {
        let segment = Segment::create("test", 1 << 20).unwrap();
        let mut loans = Loans::default();
        let (place, views) = loans.lend(&segment, 5000).unwrap();
        assert_eq!(views.len(), 5000);
        let address = views.contiguous().unwrap() as usize;
        assert_eq!(Loans::at(&segment, address), Some((place, 8192 - LINE)));
        assert_eq!(Loans::at(&segment, address + 64), None);
        assert_eq!(Loans::at(&segment, 0x1234), None);
        assert!(Loans::check(&segment, place, 9000).is_err());
        assert!(Loans::check(&segment, place + 1, 1).is_err());
        assert!(Loans::check(&segment, u64::MAX, 1).is_err());
        loans.give_back(&segment, place);
        assert_eq!(Loans::at(&segment, address), None, "given back");
        loans.give_back(&segment, place);
        let again = loans.lend(&segment, 8000).unwrap().0;
        let other = loans.lend(&segment, 8000).unwrap().0;
        assert_eq!(again, place);
        assert_ne!(other, place, "giving back twice lends it once");
        assert!(loans.lend(&segment, usize::MAX).is_err());
    }
}
