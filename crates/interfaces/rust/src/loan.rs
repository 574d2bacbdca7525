//! Loans: messages that are written, sent, and read without a copy.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::error::{Error, Result};
use crate::memory::Data;
use crate::raw::{self, Block};
use crate::select::tag_number;
use crate::{Group, Source, Status, TagMatch, To};

/// A block of shared memory that holds a message in place: written by the sender and read by the receiver without a copy.
///
/// [`Task::loan`](crate::Task::loan) makes a new loan, with unspecified contents. [`Group::send_loan`] hands it over to the
/// receiver, and [`Group::recv_loan`] receives one. Dropping a loan gives its memory back.
///
/// ```
/// let task = regatta::init()?;
/// let world = task.world();
/// let mut loan = task.loan(3 * size_of::<f64>())?;
/// loan.elements_mut::<f64>()?.copy_from_slice(&[1.0, 2.0, 3.0]);
/// world.send_loan(loan, 0, 1)?; // to itself, in a world of one
/// let (loan, status) = world.recv_loan(0, 1)?;
/// assert_eq!(loan.elements::<f64>()?, [1.0, 2.0, 3.0]);
/// assert_eq!(status.count::<f64>(), 3);
/// # Ok::<(), regatta::Error>(())
/// ```
pub struct Loan<'t> {
    block: Block<'t>,
}

impl<'t> Loan<'t> {
    pub(crate) fn of(block: Block<'t>) -> Loan<'t> {
        Loan { block }
    }

    /// Shortens the message to the first `len` bytes. Has no effect if it is not longer.
    pub fn truncate(&mut self, len: usize) {
        self.block.shorten(len);
    }

    /// Returns the bytes as elements. Fails if their number is not a multiple of the element size, or if they are not aligned
    /// for `T`.
    pub fn elements<T: Data>(&self) -> Result<&[T]> {
        bytemuck::try_cast_slice(self).map_err(|error| self.unsuitable::<T>(error))
    }

    /// Returns the bytes as mutable elements. Fails like [`elements`](Loan::elements).
    pub fn elements_mut<T: Data>(&mut self) -> Result<&mut [T]> {
        let len = self.len();
        bytemuck::try_cast_slice_mut(self).map_err(|error| unsuitable::<T>(len, error))
    }

    fn unsuitable<T>(&self, error: bytemuck::PodCastError) -> Error {
        unsuitable::<T>(self.len(), error)
    }
}

fn unsuitable<T>(len: usize, error: bytemuck::PodCastError) -> Error {
    Error::argument(format!(
        "a loan of {len} bytes is not a number of elements of {} bytes: {error}",
        size_of::<T>()
    ))
}

impl Deref for Loan<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.block
    }
}

impl DerefMut for Loan<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.block
    }
}

impl fmt::Debug for Loan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loan({} bytes)", self.len())
    }
}

impl<'t> Group<'t> {
    /// Sends a loan as a message and hands its memory over to the receiver. Does not block. After an error the memory has
    /// been given back.
    pub fn send_loan(&self, loan: Loan<'_>, to: impl Into<To>, tag: u32) -> Result<()> {
        let to = to.into().number();
        raw::blocking::send_block(loan.block, to, tag_number(tag)?, self.id())
    }

    /// Receives a message in place. Blocks until one arrives. Any message can be received this way; a message that was sent
    /// as a loan on the same host is not copied.
    pub fn recv_loan(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagMatch>,
    ) -> Result<(Loan<'t>, Status)> {
        let (from, tag) = (from.into().number(), tag.into().select()?);
        let (block, status) = raw::blocking::receive_block(self.task, from, tag, self.id())?;
        Ok((Loan::of(block), status))
    }
}
