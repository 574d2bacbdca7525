//! The only file of this crate with unsafe code. It passes borrowed memory to the engine, which keeps plain addresses.
//!
//! The engine requires that memory stays valid until the operation is over, and that memory which it writes is not used by
//! others. This module guarantees both by privacy. Views of memory ([`Gives`], [`Takes`]) carry the borrow that they were
//! made from. Only the submodules here can access their contents, and these ensure that the operation ends before the borrow:
//!
//! | submodule | memory | the operation is over |
//! |---|---|---|
//! | `blocking` | borrowed | when the call returns, even with an error |
//! | `scoped` | borrowed for a scope | when the scope ends, also by a panic |
//! | `owned` | owned by the operation | before the memory is returned or freed |
//!
//! A user's operator runs inside the engine, which must not be entered again meanwhile. Every function that enters the engine
//! first calls [`outside`], which fails inside an operator.

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

/// Memory that the engine may read during `'a`.
#[derive(Debug)]
pub struct Gives<'a> {
    views: Views,
    borrow: PhantomData<&'a [u8]>,
}

/// Memory that the engine may read and write during `'a`.
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
        // SAFETY: the memory is borrowed for `'a`, which this struct carries, and is only read (see the module).
        let views = unsafe { Views::block(base, size_of_val(elements)) };
        Gives {
            views,
            borrow: PhantomData,
        }
    }

    /// Concatenates the elements of these shapes. Fails if their total length overflows.
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
        // SAFETY: the memory is borrowed exclusively for `'a`, and any bytes are a valid `T`.
        let views = unsafe { Views::block(base, len) };
        Takes {
            views,
            borrow: PhantomData,
        }
    }

    /// Concatenates the elements of these shapes. Fails if their total length overflows. The slices consist of cells, because
    /// several views may share one slice.
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
    // SAFETY: every block lies in the slice of `len` elements at `base`, whose borrow the callers keep. If there is more than
    // one block, the products do not exceed the size of the slice.
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
        .ok_or_else(|| Error::argument("the views together exceed the address space"))
}

/// An exclusive borrow kept as a pointer while the engine uses its memory, so that no reference to the memory exists.
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

    /// Returns the memory for the engine.
    fn takes(&mut self) -> Result<Takes<'a>>
    where
        M: ScatterMemory,
    {
        // SAFETY: `place` was made from an exclusive borrow for `'a`. The reference ends in this function, and until `back` only
        // the engine uses the memory.
        let memory: &'a mut M = unsafe { self.place.as_mut() };
        memory.takes()
    }

    /// Returns the borrow. Must be called only when the operation is over.
    fn back(mut self) -> &'a mut M {
        // SAFETY: `place` was made from this borrow, and the engine no longer uses the memory.
        unsafe { self.place.as_mut() }
    }
}

thread_local! {
    /// Whether this thread runs a user's operator, and so is inside the engine.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Fails inside a user's operator, where the engine must not be entered.
#[inline(always)]
pub(crate) fn outside() -> Result<()> {
    if INSIDE.get() {
        return Err(Error::inside_operator());
    }
    Ok(())
}

/// Makes an operator of a user's function. It must not be used after the function is dropped.
pub(crate) fn user_operator<T: Data, F>(function: &F, commutative: bool) -> Operator
where
    F: Fn(&T, &T) -> T + Sync,
{
    const { assert!(size_of::<T>() > 0, "elements have a size") };
    let argument = (&raw const *function).cast_mut().cast();
    // SAFETY: `F` is `Sync`, so any thread may call it. The reductions that use the operator borrow or own `function`, and end
    // before it is dropped (see the module).
    unsafe { Operator::user(apply::<T, F>, argument, commutative) }
}

/// Applies the user's function to `count` pairs of elements. Called by the engine. A panic in the user's function aborts the
/// process, because it cannot unwind through the engine.
extern "C" fn apply<T: Data, F: Fn(&T, &T) -> T>(
    from: *const c_void,
    inout: *mut c_void,
    count: usize,
    function: *mut c_void,
) {
    // SAFETY: `user_operator` made the argument from a reference to an `F`.
    let function = unsafe { &*function.cast_const().cast::<F>() };
    let (from, inout) = (from.cast::<T>(), inout.cast::<T>());
    INSIDE.set(true);
    for index in 0..count {
        // SAFETY: the engine guarantees `count` elements, of any alignment, at both addresses.
        unsafe {
            let (low, high) = (from.add(index), inout.add(index));
            let both = function(&low.read_unaligned(), &high.read_unaligned());
            high.write_unaligned(both);
        }
    }
    INSIDE.set(false);
}

/// A block of memory of the shared segment that this task owns until it hands the block over. Since the type implements
/// `Drop`, the compiler ensures that a block is dropped while the task is joined.
pub(crate) struct Block<'t> {
    start: NonNull<u8>,
    len: usize,
    joined: PhantomData<&'t Task>,
}

// SAFETY: the block owns its memory, as a `Box<[u8]>` does.
unsafe impl Send for Block<'_> {}
// SAFETY: the block owns its memory, as a `Box<[u8]>` does.
unsafe impl Sync for Block<'_> {}

impl<'t> Block<'t> {
    /// Makes a block of the memory of a loan. The views must be one contiguous block that this task owns.
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
        // SAFETY: the engine lent this block to this task. The job's memory stays mapped while the task is joined, which the
        // borrow of the task guarantees.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Block<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the memory is valid as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        // Inside an operator the block cannot be freed, and is lost until the job ends. Elsewhere freeing cannot fail.
        if outside().is_ok() {
            let _ = process::free_loan(self.address());
        }
    }
}

/// Borrows the engine's descriptor while the task is joined.
pub(crate) fn borrowed<'t>(fd: RawFd, _joined: PhantomData<&'t Task>) -> BorrowedFd<'t> {
    // SAFETY: the engine keeps the descriptor open until the task leaves.
    unsafe { BorrowedFd::borrow_raw(fd) }
}
