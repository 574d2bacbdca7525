//! User memory: the blocks a message is gathered from or scattered to.
//!
//! A [`Views`] is one contiguous block (the common case, no allocation) or a list of strided
//! views. Copies go straight between user memory and shared memory, starting anywhere in the
//! message; there is no pack buffer in between.

use std::alloc::{Layout, alloc_zeroed};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::combine::{Combination, Element, Operator};
use crate::copy::{copy, copy_non_temporal};
use crate::held::{self, Held};
use crate::strided_copy::copy_blocks;

/// `count` blocks of `block` bytes; block `k` starts at `base + k * stride`.
#[derive(Clone, Copy, Debug)]
pub struct View {
    base: *mut u8,
    block: usize,
    count: usize,
    stride: isize,
}

impl View {
    /// Describe user memory.
    ///
    /// # Safety
    /// Every block must stay valid (readable for a send, writable and otherwise untouched for a
    /// receive) until the operation the view is given to has completed.
    pub unsafe fn new(base: *mut u8, block: usize, count: usize, stride: isize) -> View {
        View {
            base,
            block,
            count,
            stride,
        }
    }

    /// Bytes in all blocks together, or `None` if that number does not exist.
    pub fn len(&self) -> Option<usize> {
        self.block.checked_mul(self.count)
    }

    /// Does the view hold no byte?
    pub fn is_empty(&self) -> bool {
        self.block == 0 || self.count == 0
    }
}

/// The user memory of one message.
#[derive(Clone, Debug)]
pub enum Views {
    /// One block.
    Block(*mut u8, usize),
    /// Several, or strided; with the total length.
    Strided(Box<[View]>, usize),
    /// Part of a [`Scratch`], which it keeps alive: from, length.
    Scratch(Scratch, usize, usize),
    /// Results: elements that come are combined with others on their way here.
    /// (Behind an `Arc`, whose last owner's work is out of line: so the end of a view is a few instructions on all paths.)
    Combined(Arc<Combination>),
}

/// Memory of this task's own that views can share: intermediate results of collectives.
#[derive(Clone, Debug)]
pub struct Scratch(Arc<Shared>);

/// Not `Arc<[..]>`: that cannot be made without the chance of an abort.
#[derive(Debug)]
struct Shared(Box<[UnsafeCell<u8>]>);

/// The system has no memory for this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub usize);

// SAFETY: plain bytes, only reached through views; whoever runs a schedule orders their use.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Scratch {
    /// `len` zero bytes.
    pub fn new(len: usize) -> Result<Scratch, Refused> {
        Ok(Scratch(Arc::new(Shared(zeros(len).ok_or(Refused(len))?))))
    }

    /// Bytes `from .. from + len` as memory of a message; cut off at the end.
    pub fn part(&self, from: usize, len: usize) -> Views {
        let from = from.min(self.0.0.len());
        Views::Scratch(self.clone(), from, len.min(self.0.0.len() - from))
    }
}

/// Memory that the allocator has cleared, which costs nothing where it is new. `None`: there is none.
fn zeros(len: usize) -> Option<Box<[UnsafeCell<u8>]>> {
    if len == 0 {
        return Some(Box::default());
    }
    let layout = Layout::array::<UnsafeCell<u8>>(len).ok()?;
    // SAFETY: the layout is not empty.
    let bytes = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    let bytes = NonNull::slice_from_raw_parts(bytes.cast::<UnsafeCell<u8>>(), len);
    // SAFETY: just allocated with the layout of this slice, and zero bytes are values of it.
    Some(unsafe { Box::from_raw(bytes.as_ptr()) })
}

// SAFETY: views are only pointers; whoever made them promised validity until completion, from
// whichever thread makes the progress.
unsafe impl Send for Views {}

impl Views {
    /// One contiguous block.
    ///
    /// # Safety
    /// As for [`View::new`].
    #[inline(always)]
    pub unsafe fn block(base: *mut u8, len: usize) -> Views {
        Views::Block(base, len)
    }

    /// No memory: empty messages.
    pub fn none() -> Views {
        Views::Block(std::ptr::NonNull::dangling().as_ptr(), 0)
    }

    /// Several views; `None` when their total length overflows.
    pub fn strided(views: Vec<View>) -> Option<Views> {
        if let [one] = views[..] {
            let dense = one.count <= 1 || one.stride == one.block as isize;
            if dense {
                return Some(Views::Block(one.base, one.len()?));
            }
        }
        let mut total = 0usize;
        for view in &views {
            total = total.checked_add(view.len()?)?;
        }
        Some(Views::Strided(views.into_boxed_slice(), total))
    }

    /// Memory of `output` for elements that are each combined with its like of `own` as they come. `None`: not with this operator, or
    /// not in this memory, which must be two blocks of whole elements that do not overlap.
    pub fn combined(
        own: &Views,
        output: &Views,
        operator: Operator,
        element: Element,
    ) -> Option<Views> {
        let same = own.len() == output.len();
        // SAFETY: their makers promised that they are valid.
        let made = unsafe { Combination::new(own, output, operator, element) };
        made.filter(|_| same)
            .map(|made| Views::Combined(Arc::new(made)))
    }

    /// Total bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match self {
            Views::Block(_, len) | Views::Strided(_, len) | Views::Scratch(_, _, len) => *len,
            Views::Combined(combination) => combination.len(),
        }
    }

    /// Is there nothing to copy?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address of the memory if it is one block.
    pub fn contiguous(&self) -> Option<*mut u8> {
        match self {
            Views::Block(base, _) => Some(*base),
            Views::Scratch(scratch, from, _) => {
                Some(UnsafeCell::raw_get(scratch.0.0.as_ptr()).wrapping_add(*from))
            }
            Views::Strided(..) | Views::Combined(..) => None,
        }
    }

    /// Bytes `offset .. offset + len` of memory that is one block; cut off at its end. Strided
    /// memory has no parts and gives none.
    pub fn part(&self, offset: usize, len: usize) -> Views {
        let offset = offset.min(self.len());
        let len = len.min(self.len() - offset);
        match self {
            Views::Block(base, _) => Views::Block(base.wrapping_add(offset), len),
            Views::Scratch(scratch, from, _) => scratch.part(from + offset, len),
            Views::Strided(..) | Views::Combined(..) => Views::none(),
        }
    }

    /// `count` pieces of `len` bytes each, `stride` apart, the first at `offset`; for memory that
    /// is one block and holds them all. Otherwise nothing.
    pub fn pieces(&self, offset: usize, len: usize, stride: usize, count: usize) -> Views {
        let last = count.saturating_sub(1).saturating_mul(stride);
        let fits = offset.saturating_add(last).saturating_add(len) <= self.len();
        let Some(base) = self.contiguous().filter(|_| fits) else {
            return Views::none();
        };
        let view = View {
            base: base.wrapping_add(offset),
            block: len,
            count,
            stride: stride as isize,
        };
        Views::strided(vec![view]).unwrap_or_else(Views::none)
    }

    /// Copy `len` bytes of the message, from byte `offset` on, to `to`.
    ///
    /// # Safety
    /// `to` must be writable for `len` bytes and outside the views; `offset + len <= self.len()`.
    #[inline(always)]
    pub unsafe fn gather(&self, offset: usize, to: *mut u8, len: usize) {
        debug_assert!(offset + len <= self.len());
        match self {
            // SAFETY: inside the block, whose validity `block` promised.
            Views::Block(base, _) => unsafe { copy(base.add(offset), to, len) },
            Views::Scratch(scratch, start, _) => {
                let base = UnsafeCell::raw_get(scratch.0.0.as_ptr());
                // SAFETY: inside the scratch (`part` cut it), which `self` keeps alive.
                unsafe { copy(base.add(start + offset), to, len) }
            }
            Views::Strided(views, _) => {
                let mut done = 0;
                runs(views, offset, len, |run| {
                    let (block, count) = (run.block, run.count);
                    // SAFETY: `runs` yields ranges inside the views, together `len` bytes.
                    unsafe {
                        let to = to.add(done);
                        copy_blocks(run.base, run.stride, to, block as isize, block, count);
                    }
                    done += block * count;
                });
            }
            // SAFETY: inside the results, as the caller promises.
            Views::Combined(combination) => unsafe {
                copy(combination.results().add(offset), to, len)
            },
        }
    }

    /// As [`Views::gather`], past the caches of this core where the message is one block.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn gather_non_temporal(&self, offset: usize, to: *mut u8, len: usize) {
        match self {
            // SAFETY: inside the block, whose validity `block` promised.
            Views::Block(base, _) => unsafe { copy_non_temporal(base.add(offset), to, len) },
            // SAFETY: as this function's.
            _ => unsafe { self.gather(offset, to, len) },
        }
    }

    /// Copy `len` bytes from `from` into the message's memory at byte `offset`.
    ///
    /// # Safety
    /// `from` must be readable for `len` bytes and outside the views; `offset + len <= self.len()`.
    #[inline(always)]
    pub unsafe fn scatter(&self, offset: usize, from: *const u8, len: usize) {
        debug_assert!(offset + len <= self.len());
        match self {
            // SAFETY: inside the block, whose validity `block` promised.
            Views::Block(base, _) => unsafe { copy(from, base.add(offset), len) },
            Views::Scratch(scratch, start, _) => {
                let base = UnsafeCell::raw_get(scratch.0.0.as_ptr());
                // SAFETY: inside the scratch (`part` cut it), which `self` keeps alive.
                unsafe { copy(from, base.add(start + offset), len) }
            }
            Views::Strided(views, _) => {
                let mut done = 0;
                runs(views, offset, len, |run| {
                    let (block, count) = (run.block, run.count);
                    // SAFETY: `runs` yields ranges inside the views, together `len` bytes.
                    unsafe {
                        let from = from.add(done);
                        copy_blocks(from, block as isize, run.base, run.stride, block, count);
                    }
                    done += block * count;
                });
            }
            // SAFETY: as this function's.
            Views::Combined(combination) => unsafe { combination.take(offset, from, len) },
        }
    }

    /// Copy bytes held by this task into the memory, starting at the front, as far as both go.
    pub fn fill(&self, bytes: &[u8]) -> usize {
        self.fill_from(0, bytes)
    }

    /// Copy bytes held by this task into the memory, from byte `offset` of the memory on.
    pub fn fill_from(&self, offset: usize, bytes: &[u8]) -> usize {
        let offset = offset.min(self.len());
        let n = bytes.len().min(self.len() - offset);
        // SAFETY: `n` is within both; a slice of ours cannot lie inside user memory lent to us.
        unsafe { self.scatter(offset, bytes.as_ptr(), n) };
        n
    }

    /// The whole message as bytes held by this task.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        // SAFETY: the capacity was just reserved, and `gather` writes all of it.
        unsafe {
            self.gather(0, bytes.as_mut_ptr(), self.len());
            bytes.set_len(self.len());
        }
        bytes
    }

    /// The whole message as bytes held by this task, if there is memory for them.
    pub fn try_to_vec(&self) -> Result<Vec<u8>, Refused> {
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(self.len());
        reserved.map_err(|_| Refused(self.len()))?;
        // SAFETY: the capacity was just reserved, and `gather` writes all of it.
        unsafe {
            self.gather(0, bytes.as_mut_ptr(), self.len());
            bytes.set_len(self.len());
        }
        Ok(bytes)
    }

    /// The whole message as bytes held by this task; few of them without an allocation.
    pub fn to_held(&self) -> Result<Held, Refused> {
        if self.len() > held::INLINE_BYTES {
            return Ok(self.try_to_vec()?.into());
        }
        let mut bytes = Held::zeros(self.len());
        // SAFETY: `bytes` is ours and as long as the message.
        unsafe { self.gather(0, bytes.as_mut_ptr(), self.len()) };
        Ok(bytes)
    }

    /// Copy the front of the message into other user memory, as far as both go.
    pub fn copy_to(&self, to: &Views) -> usize {
        let n = self.len().min(to.len());
        match (self.contiguous(), to.contiguous()) {
            // `memmove`: a task may send to itself from overlapping memory.
            // SAFETY: `n` is within both blocks.
            (Some(from), Some(into)) => unsafe { std::ptr::copy(from, into, n) },
            _ => match self.try_to_vec() {
                Ok(bytes) => {
                    to.fill(&bytes[..n]);
                }
                Err(_) => self.copy_by_pieces(to, n),
            },
        }
        n
    }

    /// As `copy_to`, through a little memory at a time.
    #[cold]
    fn copy_by_pieces(&self, to: &Views, n: usize) {
        let mut bytes = [0u8; 4096];
        for at in (0..n).step_by(bytes.len()) {
            let piece = bytes.len().min(n - at);
            // SAFETY: `at + piece` is within both messages and `piece` within our own bytes.
            unsafe {
                self.gather(at, bytes.as_mut_ptr(), piece);
                to.scatter(at, bytes.as_ptr(), piece);
            }
        }
    }
}

/// Visit the runs of equal blocks of strided memory that make up bytes `offset .. offset + len` of a message: of each view the rest of
/// a block, whole blocks, and the front of one, as far as there are any.
fn runs(views: &[View], mut offset: usize, mut len: usize, mut visit: impl FnMut(View)) {
    for view in views {
        if len == 0 {
            return;
        }
        let total = view.block * view.count;
        if offset >= total {
            offset -= total;
            continue;
        }
        let mut left = len.min(total - offset);
        len -= left;
        let (mut index, inside) = (offset / view.block, offset % view.block);
        offset = 0;
        let mut run = |index: usize, inside: usize, block: usize, count: usize| {
            let start = view.base.wrapping_offset(index as isize * view.stride);
            visit(View {
                base: start.wrapping_add(inside),
                block,
                count,
                stride: view.stride,
            });
        };
        if inside > 0 {
            let rest = (view.block - inside).min(left);
            run(index, inside, rest, 1);
            index += 1;
            left -= rest;
        }
        let whole = left / view.block;
        if whole > 0 {
            run(index, 0, view.block, whole);
            index += whole;
            left -= whole * view.block;
        }
        if left > 0 {
            run(index, 0, left, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Oracle: the message a list of (block, count, gap) views over `memory` stands for.
    fn plain(memory: &[u8], shape: &[(usize, usize, usize)]) -> Vec<u8> {
        let (mut at, mut out) = (0, vec![]);
        for &(block, count, gap) in shape {
            for _ in 0..count {
                out.extend_from_slice(&memory[at..at + block]);
                at += block + gap;
            }
        }
        out
    }

    fn views(memory: &mut [u8], shape: &[(usize, usize, usize)]) -> Views {
        let (mut at, mut list) = (0, vec![]);
        for &(block, count, gap) in shape {
            let stride = (block + gap) as isize;
            // SAFETY: the shapes stay inside `memory`, which outlives the views in these tests.
            list.push(unsafe { View::new(memory.as_mut_ptr().add(at), block, count, stride) });
            at += (block + gap) * count;
        }
        Views::strided(list).expect("no overflow")
    }

    proptest! {
        #[test]
        fn any_piece_of_any_layout_round_trips(
            shape in prop::collection::vec((1usize..9, 0usize..5, 0usize..4), 0..5),
            cut in any::<(u16, u16)>(),
        ) {
            let mut memory: Vec<u8> = (0..400).map(|i| i as u8).collect();
            let expected = plain(&memory, &shape);
            let from = views(&mut memory, &shape);
            prop_assert_eq!(from.len(), expected.len());
            prop_assert_eq!(from.to_vec(), expected.clone());
            let offset = cut.0 as usize % (expected.len() + 1);
            let len = cut.1 as usize % (expected.len() - offset + 1);
            let mut piece = vec![0; len];
            // SAFETY: `piece` holds `len` bytes and the cut lies inside the message.
            unsafe { from.gather(offset, piece.as_mut_ptr(), len) };
            prop_assert_eq!(&piece[..], &expected[offset..offset + len]);

            let mut other = vec![0u8; 400];
            let into = views(&mut other, &shape);
            into.fill(&expected);
            // SAFETY: as above.
            unsafe { into.scatter(offset, piece.as_ptr(), len) };
            prop_assert_eq!(plain(&other, &shape), expected);
        }
    }

    #[test]
    fn absurd_totals_are_refused() {
        let base = std::ptr::NonNull::<u8>::dangling().as_ptr();
        // SAFETY: the view is never copied from.
        let view = unsafe { View::new(base, usize::MAX, 2, 8) };
        assert!(Views::strided(vec![view, view]).is_none());
    }
}
