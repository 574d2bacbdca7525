//! Pieces of memory: the bytes that a call accesses at a target, as blocks with constant strides.

use super::targets::Spot;
use crate::datatype::copy_blocks;
use crate::datatype::layout::Piece;
use crate::error::Result;

/// Maximum number of bytes of a request.
pub const MAX_BYTES: usize = 64 << 20;
/// Bit in the word of a piece: it has several blocks, and their count and stride follow.
const HAS_COUNT_BIT: u64 = 1;
/// Word before a piece in the long form, which is needed if a piece is too long or too far from the first one. Words of
/// the short form are never 0, since no block is empty.
const LONG_FORM_WORD: u64 = 0;
/// Length of a block in bytes from which on the long form is needed.
const SHORT_FORM_LIMIT_BYTES: usize = 1 << 31;
/// Average length of a block in bytes from which on copying costs more than looking up pages.
const MIN_MAPPED_BLOCK_BYTES: usize = 4096;

/// Number of bytes that the kernel copies in the time that it needs to look up another block.
const COPIED_BYTES_PER_LOOKUP: usize = 1024;

/// Returns the address of a piece in the short form, which has its distance from the first one.
fn near(base: u64, word: u64) -> u64 {
    base.wrapping_add_signed(i64::from((word >> 32) as i32))
}

/// Pieces whose offsets are absolute addresses. None is empty.
#[derive(Debug)]
pub struct Pieces(Vec<Piece>);

impl Pieces {
    /// Returns the pieces of bytes `from .. to` of a spot in a target whose memory begins at `base`.
    pub fn of(spot: &Spot<'_>, base: u64, from: usize, to: usize) -> Pieces {
        let begin = base.wrapping_add(spot.offset as u64) as isize;
        let mut pieces = Vec::new();
        spot.elements.walk(from, to, |mut piece| {
            if piece.stride == piece.block as isize {
                piece = Piece::one(piece.offset, piece.block * piece.count);
            }
            if piece.block != 0 {
                piece.offset = begin.wrapping_add(piece.offset);
                pieces.push(piece);
            }
        });
        Pieces(pieces)
    }

    /// Returns no pieces.
    pub const fn none() -> Pieces {
        Pieces(Vec::new())
    }

    /// Reads pieces from the words of a request, which are not trusted. Returns `None` if they are malformed, if
    /// `allows` (address and length) rejects a block, or if their total exceeds [`MAX_BYTES`].
    pub fn read(words: &[u64], allows: impl Fn(u64, u64) -> bool) -> Option<Pieces> {
        let Some((&base, mut left)) = words.split_first() else {
            return Some(Pieces::none());
        };
        let mut pieces = Vec::with_capacity(left.len());
        let mut total = 0u64;
        while let [word, others @ ..] = left {
            if *word != LONG_FORM_WORD && word & HAS_COUNT_BIT == 0 {
                // A single block, as most pieces of irregular datatypes are.
                let address = near(base, *word);
                let block = u64::from(*word as u32 >> 1);
                total += block;
                if block == 0 || total > MAX_BYTES as u64 || !allows(address, block) {
                    return None;
                }
                pieces.push(Piece::one(address as isize, block as usize));
                left = others;
                continue;
            }
            let (address, block, count, stride);
            (address, block, count, stride, left) = match (*word, others) {
                (LONG_FORM_WORD, [address, block, count, stride, others @ ..]) => {
                    (*address, *block, *count, *stride as i64, others)
                }
                (LONG_FORM_WORD, _) => return None,
                (word, [count, stride, others @ ..]) => {
                    let block = u64::from(word as u32 >> 1);
                    (near(base, word), block, *count, *stride as i64, others)
                }
                _ => return None,
            };
            let span = stride.checked_mul(i64::try_from(count.checked_sub(1)?).ok()?)?;
            let low = address.checked_add_signed(span.min(0))?;
            let high = address.checked_add_signed(span.max(0))?;
            total = total.checked_add(block.checked_mul(count)?)?;
            if block == 0 || total > MAX_BYTES as u64 {
                return None;
            }
            // Blocks may be in several regions that the program has attached.
            let apart = |index| allows(low + index * stride.unsigned_abs(), block);
            if !allows(low, (high - low) + block) && !(0..count).all(apart) {
                return None;
            }
            pieces.push(Piece {
                offset: address as isize,
                block: block as usize,
                count: count as usize,
                stride: stride as isize,
            });
        }
        Some(Pieces(pieces))
    }

    /// Appends the words of a request: the first address, then for each piece a word with its distance from there (high
    /// 32 bits), the block's length (31 bits) and [`HAS_COUNT_BIT`]. Count and stride follow if that bit is set. The
    /// long form is [`LONG_FORM_WORD`], address, length, count, stride.
    pub fn write(&self, words: &mut Vec<u64>) {
        let Some(first) = self.0.first() else { return };
        words.push(first.offset as u64);
        for it in &self.0 {
            let (count, stride) = (it.count as u64, it.stride as u64);
            let delta = i32::try_from(it.offset.wrapping_sub(first.offset));
            match (delta, it.block) {
                (Ok(delta), block @ ..SHORT_FORM_LIMIT_BYTES) => {
                    let many = u64::from(count != 1) * HAS_COUNT_BIT;
                    words.push((delta as u64) << 32 | (block as u64) << 1 | many);
                    if count != 1 {
                        words.extend([count, stride]);
                    }
                }
                _ => words.extend([
                    LONG_FORM_WORD,
                    it.offset as u64,
                    it.block as u64,
                    count,
                    stride,
                ]),
            }
        }
    }

    /// Returns the number of pieces.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of bytes.
    pub fn length(&self) -> usize {
        self.0.iter().map(|it| it.block * it.count).sum()
    }

    /// Returns address and length of the block if there is exactly one.
    pub fn only(&self) -> Option<(u64, usize)> {
        match self.0[..] {
            [
                Piece {
                    offset,
                    block,
                    count: 1,
                    ..
                },
            ] => Some((offset as u64, block)),
            _ => None,
        }
    }

    /// Returns whether they have more than `blocks` blocks, with a short average length.
    pub fn are_scattered(&self, blocks: usize) -> bool {
        let count: usize = self.0.iter().map(|it| it.count).sum();
        count > blocks && self.length() / count < MIN_MAPPED_BLOCK_BYTES
    }

    /// Returns address and length of the range that contains them, if copying that range takes less time than copying
    /// the blocks one by one.
    pub fn dense_range(&self) -> Option<(u64, usize)> {
        let count: usize = self.0.iter().map(|it| it.count).sum();
        let (mut low, mut high) = (u64::MAX, 0u64);
        for it in &self.0 {
            let first = it.offset as u64;
            let span = it.stride.checked_mul(it.count as isize - 1)? as i64;
            low = low.min(first.checked_add_signed(span.min(0))?);
            high = high.max(
                first
                    .checked_add_signed(span.max(0))?
                    .checked_add(it.block as u64)?,
            );
        }
        let length = usize::try_from(high.checked_sub(low)?).ok()?;
        (count > 1 && length / count <= COPIED_BYTES_PER_LOOKUP).then_some((low, length))
    }

    /// Copies their bytes to contiguous memory, from a copy of the range that begins at `low`.
    ///
    /// # Safety
    /// `copy` has the whole range, and `to` is valid for writes of as many bytes as the pieces have.
    pub unsafe fn gather_from(&self, copy: *const u8, low: u64, to: *mut u8) {
        let mut to = to;
        for it in &self.0 {
            let from = copy.wrapping_add((it.offset as u64).wrapping_sub(low) as usize);
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { copy_blocks(from, it.stride, to, it.block as isize, it.block, it.count) };
            to = to.wrapping_add(it.block * it.count);
        }
    }

    /// Returns address and length of each block, in order.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, usize)> {
        self.0.iter().flat_map(|it| {
            let places =
                (0..it.count as isize).map(|index| it.offset.wrapping_add(index * it.stride));
            places.map(|place| (place as u64, it.block))
        })
    }

    /// Copies their bytes to contiguous memory.
    ///
    /// # Safety
    /// The blocks are valid for reads, and `to` for writes of as many bytes.
    pub unsafe fn gather(&self, to: *mut u8) {
        let mut to = to;
        for it in &self.0 {
            let from = it.offset as *const u8;
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { copy_blocks(from, it.stride, to, it.block as isize, it.block, it.count) };
            to = to.wrapping_add(it.block * it.count);
        }
    }

    /// Copies contiguous bytes to the blocks.
    ///
    /// # Safety
    /// The blocks are valid for writes, and `from` for reads of as many bytes.
    pub unsafe fn scatter(&self, from: *const u8) {
        let mut from = from;
        for it in &self.0 {
            let to = it.offset as *mut u8;
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { copy_blocks(from, it.block as isize, to, it.stride, it.block, it.count) };
            from = from.wrapping_add(it.block * it.count);
        }
    }
}

/// Calls `act` with the range of each part of `length` bytes. A part consists of whole elements, and has at most
/// `limit` bytes or one element.
pub fn parts(
    length: usize,
    element: usize,
    limit: usize,
    mut act: impl FnMut(usize, usize) -> Result,
) -> Result {
    let step = (limit / element.max(1)).max(1) * element.max(1);
    let mut from = 0;
    while from < length {
        let to = length.min(from + step);
        act(from, to)?;
        from = to;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: u64 = 1 << 20;

    /// Allows the 1000 bytes from `MEMORY` on.
    fn allows(at: u64, length: u64) -> bool {
        at >= MEMORY && at - MEMORY <= 1000 && length <= 1000 - (at - MEMORY)
    }

    #[test]
    fn pieces_are_read_as_they_were_written() {
        let piece = |offset, block, count, stride| Piece {
            offset,
            block,
            count,
            stride,
        };
        let at = MEMORY as isize;
        let given = vec![
            piece(at, 7, 1, 0),
            piece(at + 8, 4, 5, 12),
            piece(at + 900, 8, 20, -40),
        ];
        let mut words = Vec::new();
        Pieces(given.clone()).write(&mut words);
        let read = Pieces::read(&words, allows).expect("right");
        assert_eq!(read.0, given);
        assert_eq!((read.length(), read.blocks().count()), (187, 26));
        assert!(read.are_scattered(25) && !read.are_scattered(26) && read.only().is_none());
        for count in [3, 4, 6, 7] {
            assert!(Pieces::read(&words[..count], allows).is_none(), "{count}");
        }
        let far = vec![piece(at, 1, 1, 0), piece(at + (1 << 40), 3, 2, -5)];
        let mut words = Vec::new();
        Pieces(far.clone()).write(&mut words);
        assert_eq!(
            Pieces::read(&words, |_, _| true).map(|read| read.0),
            Some(far)
        );
    }

    #[test]
    fn pieces_that_lie_are_refused() {
        let refused = |words: &[u64]| {
            let whole = [&[MEMORY], words].concat();
            assert!(Pieces::read(&whole, allows).is_none(), "{words:?}");
        };
        let (one, many) = (
            |block: u64| block << 1,
            |block: u64| block << 1 | HAS_COUNT_BIT,
        );
        refused(&[one(1001)]);
        refused(&[(u64::from(u32::MAX)) << 32 | one(1)]);
        refused(&[many(4), 0, 8]);
        refused(&[many(4), u64::MAX, 8]);
        refused(&[many(4), 2, i64::MIN as u64]);
        refused(&[many(4), 3, -8i64 as u64]);
        refused(&[many(4), 127, 8]);
        refused(&[many(4), 2]);
        refused(&[many(0), 2, 8]);
        refused(&[LONG_FORM_WORD]);
        refused(&[LONG_FORM_WORD, MEMORY, 8, 1]);
        refused(&[LONG_FORM_WORD, MEMORY - 1, 8, 1, 0]);
        refused(&[LONG_FORM_WORD, MEMORY, u64::MAX, 1, 0]);
        refused(&[LONG_FORM_WORD, u64::MAX, 2, 1, 0]);
        refused(&[LONG_FORM_WORD, MEMORY, 8, 0, 0]);
        // More bytes than a request may have, all of them in the window.
        refused(&[many(1000), MAX_BYTES as u64, 0]);
    }

    #[test]
    fn blocks_may_lie_in_several_parts_of_memory() {
        let parts = |at: u64, length: u64| at % 100 + length <= 10;
        let mut words = vec![1000, 10 << 1 | HAS_COUNT_BIT, 20, 100];
        assert!(Pieces::read(&words, parts).is_some());
        words[1] = 11 << 1 | HAS_COUNT_BIT;
        assert!(Pieces::read(&words, parts).is_none());
        let backward = [2900, 10 << 1 | HAS_COUNT_BIT, 20, -100i64 as u64];
        assert!(Pieces::read(&backward, parts).is_some());
    }

    #[test]
    fn blocks_that_lie_close_together_are_copied_from_their_range() {
        let piece = |offset, block, count, stride| Piece {
            offset,
            block,
            count,
            stride,
        };
        let memory: Vec<u8> = (0..200).collect();
        let pieces = Pieces(vec![piece(1100, 3, 5, -10), piece(1010, 2, 4, 7)]);
        let (low, length) = pieces.dense_range().expect("close together");
        assert_eq!((low, length), (1010, 93));
        let (mut got, mut expected) = (vec![0; pieces.length()], Vec::new());
        for (address, block) in pieces.blocks() {
            expected.extend(&memory[address as usize - 1000..][..block]);
        }
        // SAFETY: the copy begins at the lowest block and contains all of them.
        unsafe { pieces.gather_from(memory[10..].as_ptr(), low, got.as_mut_ptr()) };
        assert_eq!(got, expected);
        let far = Pieces(vec![piece(0, 8, 2, 1 << 20)]);
        assert_eq!(far.dense_range(), None);
        assert_eq!(Pieces(vec![piece(64, 8, 1, 0)]).dense_range(), None);
    }
}
