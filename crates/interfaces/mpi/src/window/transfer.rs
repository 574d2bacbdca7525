//! Puts and gets.

use std::ffi::{c_int, c_void};

use super::copying::{self, CopyDirection};
use super::quick::Aim;
use super::targets::{Elements, Spot};
use super::{Reach, Window, service};
use crate::abi::*;
use crate::datatype::memory;
use crate::error::{Error, Result};

/// Maximum length in bytes of a range that is read for the sake of the elements in it.
const MAX_RANGE_BYTES: usize = 1 << 20;

/// Elements in the caller's memory, as passed to a call.
#[derive(Clone, Copy)]
pub struct Given {
    address: *const c_void,
    count: i64,
    datatype: Datatype,
}

impl Given {
    /// Returns the elements for the arguments of a call.
    #[inline(always)]
    pub fn new(address: *const c_void, count: i64, datatype: Datatype) -> Given {
        Given {
            address,
            count,
            datatype,
        }
    }
}

/// A buffer of the caller.
pub struct Buffer {
    /// Its address.
    pub address: *mut c_void,
    /// Its elements.
    pub elements: Elements,
}

impl Buffer {
    /// Returns the buffer. Fails if its arguments are invalid.
    pub fn new(given: Given) -> Result<Buffer> {
        let Given {
            address,
            count,
            datatype,
        } = given;
        let elements = Elements::new(datatype, count)?;
        match &elements {
            Elements::Plain(offset, length) => {
                crate::datatype::address(address, *offset, *length)?;
            }
            Elements::Layout(of, length, _) => of.check_buffer(address, *length)?,
        }
        Ok(Buffer {
            address: address.cast_mut(),
            elements,
        })
    }

    /// Returns the address of the bytes if they are contiguous.
    fn plain(&self) -> Option<*mut u8> {
        match self.elements {
            Elements::Plain(offset, _) => Some(self.address.cast::<u8>().wrapping_offset(offset)),
            Elements::Layout(..) => None,
        }
    }

    /// Calls `act` with the bytes, packed.
    ///
    /// # Safety
    /// The elements are valid for reads.
    pub unsafe fn with_packed<T>(&self, act: impl FnOnce(*const u8) -> Result<T>) -> Result<T> {
        if let Some(bytes) = self.plain() {
            return act(bytes);
        }
        let mut packed = memory(self.elements.length())?;
        // SAFETY: the caller upholds the safety contract of this function; there is this much memory.
        unsafe { self.elements.pack(self.address.cast(), packed.as_mut_ptr()) };
        act(packed.as_ptr())
    }

    /// Calls `act` with memory for the packed bytes, and then copies these to the elements.
    ///
    /// # Safety
    /// The elements are valid for writes.
    pub unsafe fn fill(&self, act: impl FnOnce(*mut u8) -> Result) -> Result {
        if let Some(bytes) = self.plain() {
            return act(bytes);
        }
        let mut packed = memory(self.elements.length())?;
        act(packed.as_mut_ptr())?;
        // SAFETY: the caller upholds the safety contract of this function; `act` has filled the memory.
        unsafe { self.elements.unpack(packed.as_ptr(), self.address.cast()) };
        Ok(())
    }
}

/// Fails unless both sides have the same number of bytes.
pub fn check_lengths(own: usize, theirs: usize) -> Result {
    match own == theirs {
        true => Ok(()),
        false => Err(Error::new(
            ERR_TRUNCATE,
            format!("the elements have {own} bytes here, but {theirs} bytes at the target"),
        )),
    }
}

/// Returns the elements that a call accesses in a target; `None` for MPI_PROC_NULL. Fails if the arguments are invalid,
/// or no epoch allows access.
pub fn spot(window: &Window, aim: Aim) -> Result<Option<Spot<'_>>> {
    service::serve_own();
    let Some(target) = window.target(aim.rank)? else {
        return Ok(None);
    };
    let elements = Elements::new(aim.datatype, aim.count)?;
    let spot = Spot::new(target, aim.displacement, elements)?;
    window.check_access(aim.rank)?;
    Ok(Some(spot))
}

/// Writes packed bytes to a target.
///
/// # Safety
/// `bytes` is valid for reads of this many bytes, and the program allows others to write the target's elements.
pub unsafe fn write(window: &Window, spot: &Spot<'_>, bytes: *const u8) -> Result {
    // SAFETY: the caller upholds the safety contract of this function, also below; `spot` lies within the target's
    // memory.
    unsafe {
        match spot.target.reach {
            Reach::Mapped(base) => {
                let at = base.wrapping_add(spot.offset as usize) as *mut u8;
                spot.elements.unpack(bytes, at);
                Ok(())
            }
            Reach::Copied(process) => service::by_either(
                spot,
                process,
                |pieces, needed| service::put(window, spot, (pieces, needed), bytes),
                |pieces| {
                    let bytes = bytes.cast_mut();
                    copying::copy(process, pieces.blocks(), bytes, CopyDirection::ToTarget)
                },
            ),
            Reach::Asked => service::put(window, spot, (&spot.all(), true), bytes).map(drop),
        }
    }
}

/// Reads the range that contains the elements of a target with one copy, and gathers their bytes from it, packed.
/// Returns false if that is not worthwhile, or has failed.
///
/// # Safety
/// The conditions of [`read`].
unsafe fn read_range(spot: &Spot<'_>, process: c_int, bytes: *mut u8) -> bool {
    if matches!(spot.elements, Elements::Plain(..)) {
        return false;
    }
    let pieces = spot.all();
    let Some((low, length)) = pieces.dense_range().filter(|it| it.1 <= MAX_RANGE_BYTES) else {
        return false;
    };
    let Ok(mut range) = memory(length) else {
        return false;
    };
    let to = range.as_mut_ptr();
    // SAFETY: the caller upholds the safety contract of this function; the memory has this length. If a part between
    // attached regions does not exist, the copy fails and nothing is gathered.
    unsafe {
        let copied = copying::copy(process, [(low, length)], to, CopyDirection::FromTarget);
        if copied.is_ok() {
            pieces.gather_from(to, low, bytes);
        }
        copied.is_ok()
    }
}

/// Reads bytes of a target, packed.
///
/// # Safety
/// `bytes` is valid for writes of this many bytes, and the program allows others to read the target's elements.
pub unsafe fn read(window: &Window, spot: &Spot<'_>, bytes: *mut u8) -> Result {
    // SAFETY: the caller upholds the safety contract of this function, also below; `spot` lies within the target's
    // memory.
    unsafe {
        match spot.target.reach {
            Reach::Mapped(base) => {
                let at = base.wrapping_add(spot.offset as usize) as *const u8;
                spot.elements.pack(at, bytes);
                Ok(())
            }
            Reach::Copied(process) if read_range(spot, process, bytes) => Ok(()),
            Reach::Copied(process) => service::by_either(
                spot,
                process,
                |pieces, needed| service::get(window, spot, (pieces, needed), bytes),
                |pieces| copying::copy(process, pieces.blocks(), bytes, CopyDirection::FromTarget),
            ),
            Reach::Asked => service::get(window, spot, (&spot.all(), true), bytes).map(drop),
        }
    }
}
