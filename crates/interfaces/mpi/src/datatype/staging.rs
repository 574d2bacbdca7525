//! Contiguous memory for the elements of a buffer, whatever their datatype.

use std::ffi::c_void;
use std::sync::Arc;

use super::{Block, Type, address, block, memory};
use crate::abi::*;
use crate::error::Result;

/// The elements of a buffer in contiguous form: the buffer itself if it is contiguous, otherwise separate memory.
pub struct Staging {
    address: *mut c_void,
    length: usize,
    apart: Option<Apart>,
}

struct Apart {
    of: Arc<Type>,
    buffer: *mut c_void,
    bytes: Vec<u8>,
}

// SAFETY: it has the caller's buffer and memory of its own, and nothing that is bound to a thread.
unsafe impl Send for Staging {}

impl Staging {
    /// Stages elements to be read.
    ///
    /// # Safety
    /// The elements may be read. If they are contiguous, they stay valid as long as this object.
    pub unsafe fn input(buffer: *const c_void, count: i64, datatype: Datatype) -> Result<Staging> {
        let mut staging = Staging::output(buffer.cast_mut(), count, datatype)?;
        if let Some(apart) = &mut staging.apart {
            let length = staging.length;
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { (apart.of).pack(buffer, 0, length, apart.bytes.as_mut_ptr()) };
        }
        Ok(staging)
    }

    /// Stages elements to be written. Afterwards [`Staging::finish`] copies them to the buffer.
    pub fn output(buffer: *mut c_void, count: i64, datatype: Datatype) -> Result<Staging> {
        match block(datatype, count)? {
            Block::Plain { offset, length } => Ok(Staging {
                address: address(buffer, offset, length)?,
                length,
                apart: None,
            }),
            Block::Layout(of) => {
                let length = of.packed_size(count)?;
                of.check_buffer(buffer, length)?;
                let mut bytes = memory(length)?;
                Ok(Staging {
                    address: bytes.as_mut_ptr().cast(),
                    length,
                    apart: Some(Apart { of, buffer, bytes }),
                })
            }
        }
    }

    /// Returns the address of the bytes.
    pub fn address(&self) -> *mut c_void {
        self.address
    }

    /// Returns the number of bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns whether the bytes are those of the buffer itself.
    pub fn is_in_place(&self) -> bool {
        self.apart.is_none()
    }

    /// Copies the first `bytes` bytes to the elements, unless they are there already.
    ///
    /// # Safety
    /// The elements may be written.
    pub unsafe fn finish(&self, bytes: usize) {
        if let Some(apart) = &self.apart {
            let bytes = bytes.min(self.length);
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { (apart.of).unpack(apart.bytes.as_ptr(), 0, bytes, apart.buffer) };
        }
    }
}
