//! User memory: the blocks a message is gathered from or scattered to.
//!
//! A [`Views`] is one contiguous block (the common case, without an allocation) or a list of strided views. Copies go
//! directly between user memory and shared memory, starting anywhere in the message; there is no intermediate pack
//! buffer.

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
    /// Describes user memory.
    ///
    /// # Safety
    /// Every block must stay valid (readable for a send, writable and otherwise untouched for a receive) until the
    /// operation to which the view is given has completed.
    pub unsafe fn new(base: *mut u8, block: usize, count: usize, stride: isize) -> View {
        View {
            base,
            block,
            count,
            stride,
        }
    }

    /// Returns the total size of all blocks in bytes, or `None` if it overflows.
    pub fn len(&self) -> Option<usize> {
        self.block.checked_mul(self.count)
    }

    /// Returns whether the view contains no bytes.
    pub fn is_empty(&self) -> bool {
        self.block == 0 || self.count == 0
    }
}

/// The user memory of one message.
#[derive(Clone, Debug)]
pub enum Views {
    /// One block: address and length.
    Block(*mut u8, usize),
    /// Several views, or a strided one, with the total length.
    Strided(Box<[View]>, usize),
    /// A part of a [`Scratch`], which it keeps alive: offset and length.
    Scratch(Scratch, usize, usize),
    /// Results of a reduction: received elements are combined with others as they are stored. (Behind an `Arc`, whose
    /// last drop is out of line, so that dropping a `Views` takes a few instructions on all paths.)
    Combined(Arc<Combination>),
}

/// Memory of this task that views can share, for intermediate results of collectives.
#[derive(Clone, Debug)]
pub struct Scratch(Arc<Shared>);

/// Not `Arc<[..]>`, which cannot be allocated without the possibility of an abort.
#[derive(Debug)]
struct Shared(Box<[UnsafeCell<u8>]>);

/// The error if the system has no memory for this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub usize);

// SAFETY: plain bytes that are only reached through views; the executor of a schedule orders their use.
unsafe impl Send for Shared {}
// SAFETY: plain bytes that are only reached through views; the executor of a schedule orders their use.
unsafe impl Sync for Shared {}

impl Scratch {
    /// Allocates `len` zero bytes.
    pub fn new(len: usize) -> Result<Scratch, Refused> {
        Ok(Scratch(Arc::new(Shared(zeros(len).ok_or(Refused(len))?))))
    }

    /// Returns bytes `from .. from + len` as memory of a message, limited to the end.
    pub fn part(&self, from: usize, len: usize) -> Views {
        let from = from.min(self.0.0.len());
        Views::Scratch(self.clone(), from, len.min(self.0.0.len() - from))
    }
}

/// Allocates zeroed memory, which costs nothing where the allocator has new pages. Returns `None` if there is none.
fn zeros(len: usize) -> Option<Box<[UnsafeCell<u8>]>> {
    if len == 0 {
        return Some(Box::default());
    }
    let layout = Layout::array::<UnsafeCell<u8>>(len).ok()?;
    // SAFETY: the layout is not empty.
    let bytes = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    let bytes = NonNull::slice_from_raw_parts(bytes.cast::<UnsafeCell<u8>>(), len);
    // SAFETY: the memory was just allocated with the layout of this slice, and zero bytes are valid values.
    Some(unsafe { Box::from_raw(bytes.as_ptr()) })
}

// SAFETY: views are only pointers; their makers guarantee that they are valid until completion, from whichever thread
// makes progress.
unsafe impl Send for Views {}

impl Views {
    /// Describes one contiguous block.
    ///
    /// # Safety
    /// As for [`View::new`].
    #[inline(always)]
    pub unsafe fn block(base: *mut u8, len: usize) -> Views {
        Views::Block(base, len)
    }

    /// Describes no memory, for empty messages.
    pub fn none() -> Views {
        Views::Block(std::ptr::NonNull::dangling().as_ptr(), 0)
    }

    /// Describes several views. Returns `None` if their total length overflows.
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

    /// Describes memory `output`, in which received elements are stored after combining each with the corresponding
    /// element of `own`. Returns `None` unless the operator supports this and both memories are contiguous, of the same
    /// length, hold whole elements, and do not overlap.
    pub fn combined(
        own: &Views,
        output: &Views,
        operator: Operator,
        element: Element,
    ) -> Option<Views> {
        let same = own.len() == output.len();
        // SAFETY: the makers of both views guarantee that they are valid.
        let made = unsafe { Combination::new(own, output, operator, element) };
        made.filter(|_| same)
            .map(|made| Views::Combined(Arc::new(made)))
    }

    /// Returns the total length in bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match self {
            Views::Block(_, len) | Views::Strided(_, len) | Views::Scratch(_, _, len) => *len,
            Views::Combined(combination) => combination.len(),
        }
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the address of the memory if it is contiguous.
    pub fn contiguous(&self) -> Option<*mut u8> {
        match self {
            Views::Block(base, _) => Some(*base),
            Views::Scratch(scratch, from, _) => {
                Some(UnsafeCell::raw_get(scratch.0.0.as_ptr()).wrapping_add(*from))
            }
            Views::Strided(..) | Views::Combined(..) => None,
        }
    }

    /// Returns bytes `offset .. offset + len` of contiguous memory, limited to its end. For strided memory it returns
    /// an empty view.
    pub fn part(&self, offset: usize, len: usize) -> Views {
        let offset = offset.min(self.len());
        let len = len.min(self.len() - offset);
        match self {
            Views::Block(base, _) => Views::Block(base.wrapping_add(offset), len),
            Views::Scratch(scratch, from, _) => scratch.part(from + offset, len),
            Views::Strided(..) | Views::Combined(..) => Views::none(),
        }
    }

    /// Returns `count` pieces of `len` bytes each, `stride` apart, the first at `offset`. Returns an empty view unless
    /// the memory is contiguous and contains all pieces.
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

    /// Copies `len` bytes of the message, from byte `offset` on, to `to`.
    ///
    /// # Safety
    /// `to` must be writable for `len` bytes and outside the views; `offset + len <= self.len()`.
    #[inline(always)]
    pub unsafe fn gather(&self, offset: usize, to: *mut u8, len: usize) {
        debug_assert!(offset + len <= self.len());
        match self {
            // SAFETY: the bytes are inside the block, which the caller of `block` guarantees to be valid.
            Views::Block(base, _) => unsafe { copy(base.add(offset), to, len) },
            Views::Scratch(scratch, start, _) => {
                let base = UnsafeCell::raw_get(scratch.0.0.as_ptr());
                // SAFETY: the bytes are inside the scratch (`part` limits them), which `self` keeps alive.
                unsafe { copy(base.add(start + offset), to, len) }
            }
            Views::Strided(views, _) => {
                let mut done = 0;
                runs(views, offset, len, |run| {
                    let (block, count) = (run.block, run.count);
                    // SAFETY: `runs` yields ranges inside the views, `len` bytes in all.
                    unsafe {
                        let to = to.add(done);
                        copy_blocks(run.base, run.stride, to, block as isize, block, count);
                    }
                    done += block * count;
                });
            }
            // SAFETY: the caller guarantees that the bytes are inside the results.
            Views::Combined(combination) => unsafe {
                copy(combination.results().add(offset), to, len)
            },
        }
    }

    /// Does what [`Views::gather`] does, bypassing this core's caches if the message is contiguous.
    ///
    /// # Safety
    /// As for [`Views::gather`].
    pub unsafe fn gather_non_temporal(&self, offset: usize, to: *mut u8, len: usize) {
        match self {
            // SAFETY: the bytes are inside the block, which the caller of `block` guarantees to be valid.
            Views::Block(base, _) => unsafe { copy_non_temporal(base.add(offset), to, len) },
            // SAFETY: the caller guarantees what `gather` requires.
            _ => unsafe { self.gather(offset, to, len) },
        }
    }

    /// Copies `len` bytes from `from` into the message's memory at byte `offset`.
    ///
    /// # Safety
    /// `from` must be readable for `len` bytes and outside the views; `offset + len <= self.len()`.
    #[inline(always)]
    pub unsafe fn scatter(&self, offset: usize, from: *const u8, len: usize) {
        debug_assert!(offset + len <= self.len());
        match self {
            // SAFETY: the bytes are inside the block, which the caller of `block` guarantees to be valid.
            Views::Block(base, _) => unsafe { copy(from, base.add(offset), len) },
            Views::Scratch(scratch, start, _) => {
                let base = UnsafeCell::raw_get(scratch.0.0.as_ptr());
                // SAFETY: the bytes are inside the scratch (`part` limits them), which `self` keeps alive.
                unsafe { copy(from, base.add(start + offset), len) }
            }
            Views::Strided(views, _) => {
                let mut done = 0;
                runs(views, offset, len, |run| {
                    let (block, count) = (run.block, run.count);
                    // SAFETY: `runs` yields ranges inside the views, `len` bytes in all.
                    unsafe {
                        let from = from.add(done);
                        copy_blocks(from, block as isize, run.base, run.stride, block, count);
                    }
                    done += block * count;
                });
            }
            // SAFETY: the caller guarantees what `take` requires.
            Views::Combined(combination) => unsafe { combination.take(offset, from, len) },
        }
    }

    /// Copies bytes that this task owns to the beginning of the memory. Returns how many fit.
    pub fn fill(&self, bytes: &[u8]) -> usize {
        self.fill_from(0, bytes)
    }

    /// Copies bytes that this task owns into the memory, from byte `offset` of the memory on. Returns how many fit.
    pub fn fill_from(&self, offset: usize, bytes: &[u8]) -> usize {
        let offset = offset.min(self.len());
        let n = bytes.len().min(self.len() - offset);
        // SAFETY: `n` is within both; a slice of this task cannot lie inside user memory that was lent.
        unsafe { self.scatter(offset, bytes.as_ptr(), n) };
        n
    }

    /// Returns a copy of the whole message.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        // SAFETY: the capacity was just reserved, and `gather` writes all of it.
        unsafe {
            self.gather(0, bytes.as_mut_ptr(), self.len());
            bytes.set_len(self.len());
        }
        bytes
    }

    /// Returns a copy of the whole message. Fails if there is no memory for it.
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

    /// Returns a copy of the whole message, without an allocation if it is short.
    pub fn to_held(&self) -> Result<Held, Refused> {
        if self.len() > held::INLINE_BYTES {
            return Ok(self.try_to_vec()?.into());
        }
        let mut bytes = Held::zeros(self.len());
        // SAFETY: `bytes` is owned and as long as the message.
        unsafe { self.gather(0, bytes.as_mut_ptr(), self.len()) };
        Ok(bytes)
    }

    /// Copies the beginning of the message into other user memory. Returns how many bytes fit.
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

    /// Does what `copy_to` does, through a small buffer.
    #[cold]
    fn copy_by_pieces(&self, to: &Views, n: usize) {
        let mut bytes = [0u8; 4096];
        for at in (0..n).step_by(bytes.len()) {
            let piece = bytes.len().min(n - at);
            // SAFETY: `at + piece` is within both messages, and `piece` within the buffer.
            unsafe {
                self.gather(at, bytes.as_mut_ptr(), piece);
                to.scatter(at, bytes.as_ptr(), piece);
            }
        }
    }
}

/// Visits the runs of equal blocks of strided memory that make up bytes `offset .. offset + len` of a message: for each
/// view the rest of a block, whole blocks, and the beginning of a block, if there are any.
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

    /// The reference: returns the message that a list of (block, count, gap) views over `memory` describes.
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
            // SAFETY: `piece` holds `len` bytes and the range lies inside the message.
            unsafe { from.gather(offset, piece.as_mut_ptr(), len) };
            prop_assert_eq!(&piece[..], &expected[offset..offset + len]);

            let mut other = vec![0u8; 400];
            let into = views(&mut other, &shape);
            into.fill(&expected);
            // SAFETY: `piece` holds `len` bytes and the range lies inside the message.
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
