//! The memory that a message is gathered from and scattered to: values, slices, and strided views of them.

use std::cell::Cell;
use std::fmt;

use bytemuck::Pod;

use crate::error::{Error, Result};
use crate::raw::{Gives, Takes};

/// Elements of messages: plain data for which every bit pattern is a valid value. These are all integers and floats, arrays
/// of them, and your own structs that implement [`bytemuck::Pod`] (which has a derive macro).
pub trait Data: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> Data for T {}

mod sealed {
    use super::{Gives, Result, Takes};

    pub trait Gather {
        fn gives(&self) -> Result<Gives<'_>>;
    }

    pub trait Scatter {
        fn takes(&mut self) -> Result<Takes<'_>>;
    }
}

pub(crate) use sealed::Scatter as ScatterMemory;

/// Memory that a message can be sent from: numbers, arrays, slices and vectors of [`Data`], a [`View`] or [`ViewMut`], or a
/// slice of views (the message is then their concatenation).
pub trait Gather: sealed::Gather {}

/// Memory that a message can be received into: mutable memory of the same kinds as for [`Gather`], except [`View`].
pub trait Scatter: sealed::Scatter {}

impl<M: sealed::Gather + ?Sized> Gather for M {}
impl<M: sealed::Scatter + ?Sized> Scatter for M {}

/// The elements of a slice that a view selects: `count` blocks of `block` elements each. Block `k` starts at element
/// `start + k * stride`.
///
/// ```
/// use regatta::Shape;
/// // In a grid of 10 rows of 8, row by row:
/// let third_row = Shape::row(3 * 8, 8);
/// let last_column = Shape::column(7, 10, 8);
/// assert_eq!((third_row.len(), last_column.len()), (8, 10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Index of the first element.
    pub start: usize,
    /// Number of elements in a block.
    pub block: usize,
    /// Number of blocks.
    pub count: usize,
    /// Distance from the start of a block to the start of the next, in elements.
    pub stride: usize,
}

impl Shape {
    /// Returns the shape of `len` consecutive elements.
    pub const fn row(start: usize, len: usize) -> Shape {
        Shape {
            start,
            block: len,
            count: 1,
            stride: len,
        }
    }

    /// Returns the shape of `count` single elements, `stride` apart.
    pub const fn column(start: usize, count: usize, stride: usize) -> Shape {
        Shape {
            start,
            block: 1,
            count,
            stride,
        }
    }

    /// Returns the number of elements in all blocks together, or `usize::MAX` if it overflows.
    pub const fn len(&self) -> usize {
        self.block.saturating_mul(self.count)
    }

    /// Returns whether the shape has no elements.
    pub const fn is_empty(&self) -> bool {
        self.block == 0 || self.count == 0
    }

    /// Returns whether all blocks lie within `len` elements.
    pub(crate) fn fits(&self, len: usize) -> bool {
        if self.is_empty() {
            return self.start <= len;
        }
        let last = self.stride.checked_mul(self.count - 1);
        let end = last.and_then(|last| last.checked_add(self.start)?.checked_add(self.block));
        // With a stride of 0 blocks repeat, so that the number of elements may overflow even if all blocks fit.
        end.is_some_and(|end| end <= len) && self.block.checked_mul(self.count).is_some()
    }

    /// Returns whether no element is in two blocks.
    fn is_simple(&self) -> bool {
        self.is_empty() || self.count == 1 || self.stride >= self.block
    }

    /// Returns whether this simple shape ([`is_simple`](Shape::is_simple)) and another have an element in common. Both must
    /// fit ([`fits`](Shape::fits)) the same slice.
    fn meets(&self, other: &Shape) -> bool {
        if self.is_empty() || other.is_empty() {
            return false;
        }
        (0..other.count).any(|k| {
            let start = other.start + k * other.stride;
            let end = start + other.block;
            // Finds our last block that starts before `end`: no earlier block ends later.
            let Some(before) = (end - 1).checked_sub(self.start) else {
                return false;
            };
            let last = before.checked_div(self.stride).unwrap_or(0);
            let last = last.min(self.count - 1);
            self.start + last * self.stride + self.block > start
        })
    }
}

fn check(shape: &Shape, len: usize) -> Result<()> {
    if shape.fits(len) {
        return Ok(());
    }
    Err(Error::argument(format!(
        "the view {shape:?} exceeds its {len} elements"
    )))
}

/// The slice that a view is made of.
pub(crate) enum Elements<'a, T> {
    Shared(&'a [T]),
    /// Borrowed exclusively by several views together. It cannot be read as a slice, because some of the views change
    /// elements.
    Split(&'a [Cell<T>]),
}

impl<T> Clone for Elements<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Elements<'_, T> {}

/// Strided elements of a slice, to send from.
pub struct View<'a, T> {
    all: Elements<'a, T>,
    shape: Shape,
}

impl<T> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({:?})", self.shape)
    }
}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<'_, T> {}

impl<'a, T: Data> View<'a, T> {
    /// Makes a view of the elements of this shape. Fails if some lie outside `all`.
    pub fn new(all: &'a [T], shape: Shape) -> Result<View<'a, T>> {
        check(&shape, all.len())?;
        let all = Elements::Shared(all);
        Ok(View { all, shape })
    }

    /// Returns the shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

fn check_apart(shape: &Shape, others: &[Shape]) -> Result<()> {
    match others.iter().find(|other| other.meets(shape)) {
        None => Ok(()),
        Some(other) => Err(Error::argument(format!(
            "the views {other:?} and {shape:?} have elements in common"
        ))),
    }
}

/// Strided elements of a slice, to receive into or to send from.
pub struct ViewMut<'a, T> {
    all: &'a [Cell<T>],
    shape: Shape,
}

impl<T> fmt::Debug for ViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ViewMut({:?})", self.shape)
    }
}

impl<'a, T: Data> ViewMut<'a, T> {
    /// Makes a view of the elements of this shape. Fails if some lie outside `all`, or in two blocks.
    pub fn new(all: &'a mut [T], shape: Shape) -> Result<ViewMut<'a, T>> {
        let [view] = ViewMut::split(all, [shape])?;
        Ok(view)
    }

    /// Makes several views of one slice that have no element in common. Fails if two views have one, or if [`new`](ViewMut::new)
    /// would fail for a shape. Takes time proportional to the number of blocks, for each pair of views.
    ///
    /// ```
    /// use regatta::{Shape, ViewMut};
    /// let mut grid = [0.0; 6 * 4];
    /// let (left, right) = (Shape::column(0, 6, 4), Shape::column(3, 6, 4));
    /// let [left, right] = ViewMut::split(&mut grid, [left, right])?;
    /// # let _ = (left, right);
    /// assert!(ViewMut::split(&mut grid, [Shape::row(4, 4), Shape::column(0, 6, 4)]).is_err());
    /// # Ok::<(), regatta::Error>(())
    /// ```
    pub fn split<const N: usize>(
        all: &'a mut [T],
        takes: [Shape; N],
    ) -> Result<[ViewMut<'a, T>; N]> {
        ViewMut::split_with(all, takes, []).map(|(views, [])| views)
    }

    /// Like [`split`](ViewMut::split), but also makes views to send from, as a halo exchange needs. Views to send from may
    /// have elements in common with each other, but not with views to receive into.
    #[expect(clippy::type_complexity, reason = "two lists of views")]
    pub fn split_with<const N: usize, const M: usize>(
        all: &'a mut [T],
        takes: [Shape; N],
        gives: [Shape; M],
    ) -> Result<([ViewMut<'a, T>; N], [View<'a, T>; M])> {
        for (index, shape) in takes.iter().enumerate() {
            check(shape, all.len())?;
            if !shape.is_simple() {
                return Err(Error::argument(format!(
                    "the blocks of the view {shape:?} overlap, so it cannot be received into"
                )));
            }
            check_apart(shape, &takes[..index])?;
        }
        for shape in &gives {
            check(shape, all.len())?;
            check_apart(shape, &takes)?;
        }
        let all = Cell::from_mut(all).as_slice_of_cells();
        let give = |shape| View {
            all: Elements::Split(all),
            shape,
        };
        Ok((takes.map(|shape| ViewMut { all, shape }), gives.map(give)))
    }

    /// Returns the shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

impl<T: Data> sealed::Gather for [T] {
    #[inline(always)]
    fn gives(&self) -> Result<Gives<'_>> {
        Ok(Gives::slice(self))
    }
}

impl<T: Data> sealed::Scatter for [T] {
    #[inline(always)]
    fn takes(&mut self) -> Result<Takes<'_>> {
        Ok(Takes::slice(self))
    }
}

impl<T: Data, const N: usize> sealed::Gather for [T; N] {
    #[inline(always)]
    fn gives(&self) -> Result<Gives<'_>> {
        Ok(Gives::slice(self))
    }
}

impl<T: Data, const N: usize> sealed::Scatter for [T; N] {
    #[inline(always)]
    fn takes(&mut self) -> Result<Takes<'_>> {
        Ok(Takes::slice(self))
    }
}

impl<T: Data> sealed::Gather for Vec<T> {
    #[inline(always)]
    fn gives(&self) -> Result<Gives<'_>> {
        Ok(Gives::slice(self))
    }
}

impl<T: Data> sealed::Scatter for Vec<T> {
    #[inline(always)]
    fn takes(&mut self) -> Result<Takes<'_>> {
        Ok(Takes::slice(self))
    }
}

impl<T: Data> sealed::Gather for View<'_, T> {
    fn gives(&self) -> Result<Gives<'_>> {
        Gives::strided(std::iter::once((self.all, self.shape)))
    }
}

impl<T: Data> sealed::Gather for [View<'_, T>] {
    fn gives(&self) -> Result<Gives<'_>> {
        Gives::strided(self.iter().map(|view| (view.all, view.shape)))
    }
}

impl<T: Data> sealed::Gather for ViewMut<'_, T> {
    fn gives(&self) -> Result<Gives<'_>> {
        let all = Elements::Split(self.all);
        Gives::strided(std::iter::once((all, self.shape)))
    }
}

impl<T: Data> sealed::Scatter for ViewMut<'_, T> {
    fn takes(&mut self) -> Result<Takes<'_>> {
        Takes::strided(std::iter::once((self.all, self.shape)))
    }
}

impl<T: Data> sealed::Scatter for [ViewMut<'_, T>] {
    fn takes(&mut self) -> Result<Takes<'_>> {
        Takes::strided(self.iter().map(|view| (view.all, view.shape)))
    }
}

macro_rules! values {
    ($($number:ty)*) => {$(
        impl sealed::Gather for $number {
            #[inline(always)]
            fn gives(&self) -> Result<Gives<'_>> {
                Ok(Gives::slice(std::slice::from_ref(self)))
            }
        }

        impl sealed::Scatter for $number {
            #[inline(always)]
            fn takes(&mut self) -> Result<Takes<'_>> {
                Ok(Takes::slice(std::slice::from_mut(self)))
            }
        }
    )*};
}

values!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(shape: &Shape) -> Vec<usize> {
        let blocks = 0..shape.count;
        let block = |k| (0..shape.block).map(move |i| shape.start + k * shape.stride + i);
        blocks.flat_map(block).collect()
    }

    #[test]
    fn shapes_meet_exactly_when_they_share_an_element() {
        let mut shapes = vec![];
        for start in 0..5 {
            for block in 0..4 {
                for count in 0..4 {
                    for stride in block..6 {
                        shapes.push(Shape {
                            start,
                            block,
                            count,
                            stride,
                        });
                    }
                }
            }
        }
        for one in &shapes {
            let mine = elements(one);
            assert!(one.fits(mine.last().map_or(one.start, |last| last + 1)));
            assert!(mine.last().is_none_or(|&last| !one.fits(last)));
            for other in &shapes {
                let shared = elements(other).iter().any(|at| mine.contains(at));
                assert_eq!(one.meets(other), shared, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn absurd_shapes_are_refused() {
        let huge = Shape {
            start: 1,
            block: 2,
            count: usize::MAX,
            stride: usize::MAX,
        };
        assert!(View::new(&[0u8; 4], huge).is_err());
        let repeated = Shape { stride: 0, ..huge };
        assert!(View::new(&[0u8; 4], repeated).is_err());
        let repeated = Shape {
            count: 3,
            ..repeated
        };
        assert!(View::new(&[0u8; 4], repeated).is_ok());
        assert!(ViewMut::new(&mut [0u8; 4], repeated).is_err());
    }
}
