//! Datatypes: the bytes of memory that a count of elements refers to.
//!
//! A [`Type`] is a type map: a [`layout`] of its bytes, [`bounds`], and a [`signature`] of basic elements. For
//! contiguous data, [`block`] returns offset and length without looking up the object; otherwise it returns the object.

pub mod bounds;
pub mod builtin;
pub mod construct;
mod copying;
pub mod external;
pub mod fortran;
pub mod layout;
pub mod map;
mod object;
mod registry;
pub mod signature;
mod staging;
pub mod transfer;

#[cfg(test)]
mod tests;

use std::ffi::c_void;
use std::sync::Arc;

pub use copying::copy_blocks;
pub use object::{Made, Type, Types, memory};
pub use registry::{Kept, commit, committed, duplicate, free, get, insert, insert_with};
pub use staging::Staging;

use crate::abi::*;
use crate::error::{Error, Result};

/// The memory of a call's buffer.
#[derive(Clone, Debug)]
pub enum Block {
    /// Contiguous bytes.
    Plain {
        /// Offset from the buffer's address in bytes.
        offset: isize,
        /// Length in bytes.
        length: usize,
    },
    /// Noncontiguous elements of this datatype. Their count is not negative, and their size in bytes does not overflow.
    Layout(Arc<Type>),
}

/// Returns the memory of `count` elements of a datatype, for a call that transfers them.
#[inline(always)]
pub fn block(datatype: Datatype, count: i64) -> Result<Block> {
    match block_now(datatype, count) {
        Some(length) => Ok(Block::Plain { offset: 0, length }),
        None => other_block(datatype, count),
    }
}

/// Returns the length of `count` elements in bytes if their datatype is predefined and contiguous. Returns `None`
/// otherwise, or if the count is invalid; [`block`] then returns the result or the error.
#[inline(always)]
pub fn block_now(datatype: Datatype, count: i64) -> Option<usize> {
    let size = builtin::size(datatype)?;
    size.checked_mul(usize::try_from(count).ok()?)
}

#[inline(never)]
fn other_block(datatype: Datatype, count: i64) -> Result<Block> {
    // Programs for other MPI libraries pass MPI_DATATYPE_NULL with a count of 0.
    if datatype == DATATYPE_NULL && count == 0 {
        let (offset, length) = (0, 0);
        return Ok(Block::Plain { offset, length });
    }
    if count >= 0
        && let Some((offset, length)) = registry::one_piece(datatype, count as usize)
    {
        return Ok(Block::Plain { offset, length });
    }
    let found = committed(datatype)?;
    found.packed_size(count)?;
    match found.one_piece(count) {
        Some((offset, length)) => Ok(Block::Plain { offset, length }),
        None => Ok(Block::Layout(found)),
    }
}

/// Returns the error for an invalid datatype.
#[cold]
pub fn no_type(datatype: Datatype) -> Error {
    let text = match datatype {
        DATATYPE_NULL => "the datatype is MPI_DATATYPE_NULL".to_owned(),
        Datatype(value) if builtin::is_predefined(datatype) => {
            format!("there is no datatype with the number {value:#x} on this machine")
        }
        Datatype(value) => format!("{value:#x} is not a valid datatype; it may have been freed"),
    };
    Error::new(ERR_TYPE, text)
}

/// Returns the address of a block in a buffer. Fails if the buffer is null, unless the block is empty.
#[inline(always)]
pub fn address(buffer: *const c_void, offset: isize, length: usize) -> Result<*mut c_void> {
    if length != 0 && buffer.is_null() && offset == 0 {
        return Err(Error::new(
            ERR_BUFFER,
            "the buffer is a null pointer, but the message is not empty",
        ));
    }
    Ok(buffer.cast_mut().wrapping_byte_offset(offset))
}
