//! The one file of this crate with unsafe code: where Rust's borrows become the engine's memory.
//!
//! The engine keeps addresses and trusts whoever gave them. This module owes it that the memory
//! stays valid, and untouched by others where it is written, until the operation is over. It keeps
//! that promise by privacy: views of memory ([`Gives`], [`Takes`]) carry the borrow they were made
//! from, and can be opened only by the submodules here, which see to it that the operation ends
//! before the borrow does:
//!
//! | submodule | memory | the operation is over |
//! |---|---|---|
//! | `blocking` | borrowed | when the call returns, also with an error |
//! | `scoped` | borrowed for a scope | when the scope is left, however it is left |
//! | `owned` | owned, handed to the operation | before the memory is given back or freed |
//!
//! The second thing unsafe here: a user's operator runs inside the engine, which must not be
//! entered again. [`outside`] is asked at every entry.

pub(crate) mod blocking;
pub(crate) mod owned;
pub(crate) mod scoped;

use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::NonNull;

use regatta_process::{self as process, Operator, View as Piece, Views};

use crate::Task;
use crate::error::{Error, Result};
use crate::memory::{Data, Elements, ScatterMemory, Shape};

/// Memory the engine may read while `'a` lasts.
#[derive(Debug)]
pub struct Gives<'a> {
    views: Views,
    borrow: PhantomData<&'a [u8]>,
}

/// Memory the engine may write (and read) while `'a` lasts.
#[derive(Debug)]
pub struct Takes<'a> {
    views: Views,
    borrow: PhantomData<&'a mut [u8]>,
}

impl<'a> Gives<'a> {
    #[inline(always)]
    pub(crate) fn slice<T: Data>(elements: &'a [T]) -> Gives<'a> {
        const { assert!(size_of::<T>() > 0, "elements have a size") };
        let base = elements.as_ptr().cast_mut().cast();
        // SAFETY: valid while `'a` lasts, which this struct carries; only read (see the module).
        let views = unsafe { Views::block(base, size_of_val(elements)) };
        Gives {
            views,
            borrow: PhantomData,
        }
    }

    /// The shaped parts of slices, one after the other.
    pub(crate) fn strided<T: Data>(
        parts: impl Iterator<Item = (Elements<'a, T>, Shape)>,
    ) -> Result<Gives<'a>> {
        let pieces = parts.map(|(all, shape)| match all {
            Elements::Shared(all) => piece(all.as_ptr().cast_mut(), all.len(), shape),
            Elements::Split(all) => piece(all.as_ptr() as *mut T, all.len(), shape),
        });
        Ok(Gives {
            views: joined(pieces.collect())?,
            borrow: PhantomData,
        })
    }
}

impl<'a> Takes<'a> {
    #[inline(always)]
    pub(crate) fn slice<T: Data>(elements: &'a mut [T]) -> Takes<'a> {
        const { assert!(size_of::<T>() > 0, "elements have a size") };
        let (base, len) = (elements.as_mut_ptr().cast(), size_of_val(elements));
        // SAFETY: valid and ours alone while `'a` lasts; any bytes are a `T`.
        let views = unsafe { Views::block(base, len) };
        Takes {
            views,
            borrow: PhantomData,
        }
    }

    /// The shaped parts of slices. Cells, because several views may share one slice.
    pub(crate) fn strided<T: Data>(
        parts: impl Iterator<Item = (&'a [Cell<T>], Shape)>,
    ) -> Result<Takes<'a>> {
        let pieces = parts.map(|(all, shape)| piece(all.as_ptr() as *mut T, all.len(), shape));
        Ok(Takes {
            views: joined(pieces.collect())?,
            borrow: PhantomData,
        })
    }
}

fn piece<T: Data>(base: *mut T, len: usize, shape: Shape) -> Piece {
    const { assert!(size_of::<T>() > 0, "elements have a size") };
    assert!(shape.fits(len), "views are checked when they are made");
    let width = size_of::<T>();
    let start = base.wrapping_add(shape.start).cast();
    // SAFETY: every block lies in the slice of `len` elements at `base`, whose borrow the callers
    // keep. The products are at most the slice's size where there is more than one block.
    unsafe {
        Piece::new(
            start,
            shape.block * width,
            shape.count,
            shape.stride.wrapping_mul(width) as isize,
        )
    }
}

fn joined(pieces: Vec<Piece>) -> Result<Views> {
    Views::strided(pieces)
        .ok_or_else(|| Error::argument("the views together are longer than memory"))
}

/// An exclusive borrow set aside while the engine uses its memory: no reference to the memory
/// exists meanwhile.
pub(crate) struct Parked<'a, M: ?Sized> {
    place: NonNull<M>,
    borrow: PhantomData<&'a mut M>,
}

impl<'a, M: ?Sized> Parked<'a, M> {
    pub(crate) fn new(memory: &'a mut M) -> Parked<'a, M> {
        Parked {
            place: NonNull::from(memory),
            borrow: PhantomData,
        }
    }

    /// The memory as the engine sees it.
    fn takes(&mut self) -> Result<Takes<'a>>
    where
        M: ScatterMemory,
    {
        // SAFETY: made from an exclusive borrow for `'a`; the reference ends here, and until
        // `back` only the engine uses the memory.
        let memory: &'a mut M = unsafe { self.place.as_mut() };
        memory.takes()
    }

    /// The borrow again. Only when the operation is over.
    fn back(mut self) -> &'a mut M {
        // SAFETY: made from this borrow, and nothing else uses the memory any more.
        unsafe { self.place.as_mut() }
    }
}

thread_local! {
    /// Is this thread inside a user's operator, and so inside the engine?
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// An error inside an operator, where the engine must not be entered.
#[inline(always)]
pub(crate) fn outside() -> Result<()> {
    if INSIDE.get() {
        return Err(Error::inside_operator());
    }
    Ok(())
}

/// A user's function as an operator, for as long as the function is borrowed.
pub(crate) fn user_operator<T: Data, F>(function: &F, commutative: bool) -> Operator
where
    F: Fn(&T, &T) -> T + Sync,
{
    const { assert!(size_of::<T>() > 0, "elements have a size") };
    let argument = (&raw const *function).cast_mut().cast();
    // SAFETY: `F` is `Sync`, so any thread may call it; the reductions that use the operator end
    // while `function` is borrowed or owned by them (see the module).
    unsafe { Operator::user(apply::<T, F>, argument, commutative) }
}

/// The function that the engine calls. A panic in the user's function ends the process: it cannot unwind
/// through the engine.
extern "C" fn apply<T: Data, F: Fn(&T, &T) -> T>(
    from: *const c_void,
    inout: *mut c_void,
    count: usize,
    function: *mut c_void,
) {
    // SAFETY: `user_operator` made the argument of a borrowed `F`.
    let function = unsafe { &*function.cast_const().cast::<F>() };
    let (from, inout) = (from.cast::<T>(), inout.cast::<T>());
    INSIDE.set(true);
    for index in 0..count {
        // SAFETY: the engine's promise to operators: `count` elements in each, at any alignment.
        unsafe {
            let (low, high) = (from.add(index), inout.add(index));
            let both = function(&low.read_unaligned(), &high.read_unaligned());
            high.write_unaligned(both);
        }
    }
    INSIDE.set(false);
}

/// A block of memory shared with other tasks that is this task's until it is handed over. As it
/// has a `drop` of its own, the compiler sees to it that it is dropped while the task is joined.
pub(crate) struct Block<'t> {
    start: NonNull<u8>,
    len: usize,
    joined: PhantomData<&'t Task>,
}

// SAFETY: the block is owned, as a `Box<[u8]>` is.
unsafe impl Send for Block<'_> {}
// SAFETY: as above.
unsafe impl Sync for Block<'_> {}

impl<'t> Block<'t> {
    /// The memory of a loan; the views are of one block and nobody else's.
    fn of(views: &Views, joined: PhantomData<&'t Task>) -> Block<'t> {
        let start = views.contiguous().and_then(NonNull::new);
        Block {
            start: start.unwrap_or(NonNull::dangling()),
            len: start.map_or(0, |_| views.len()),
            joined,
        }
    }

    fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }

    pub(crate) fn shorten(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Deref for Block<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the engine lent this block to this task, and the job's memory stays mapped while
        // the task is joined, which is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Block<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`; borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        // Inside an operator it is lost until the job ends; elsewhere giving back cannot fail.
        if outside().is_ok() {
            let _ = process::free_loan(self.address());
        }
    }
}

/// The engine's descriptor, for as long as the task is joined.
pub(crate) fn borrowed<'t>(fd: RawFd, _joined: PhantomData<&'t Task>) -> BorrowedFd<'t> {
    // SAFETY: the engine closes it when the task leaves, not before.
    unsafe { BorrowedFd::borrow_raw(fd) }
}
