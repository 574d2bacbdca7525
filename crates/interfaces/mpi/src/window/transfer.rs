//! Puts and gets.

use std::ffi::c_void;

use super::copying::{self, CopyDirection};
use super::quick::Aim;
use super::targets::{Elements, Spot};
use super::{Reach, Window, service};
use crate::abi::*;
use crate::datatype::memory;
use crate::error::{Error, Result};

/// A buffer of the caller's.
pub struct Buffer {
    /// Where it is.
    pub address: *mut c_void,
    /// Its elements.
    pub elements: Elements,
}

impl Buffer {
    /// Of a call's arguments.
    pub fn new(address: *const c_void, count: i64, datatype: Datatype) -> Result<Buffer> {
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

    /// The bytes where they lie, if they are one piece.
    fn plain(&self) -> Option<*mut u8> {
        match self.elements {
            Elements::Plain(offset, _) => Some(self.address.cast::<u8>().wrapping_offset(offset)),
            Elements::Layout(..) => None,
        }
    }

    /// Acts with the bytes, packed.
    ///
    /// # Safety
    /// The elements may be read.
    pub unsafe fn with_packed<T>(&self, act: impl FnOnce(*const u8) -> Result<T>) -> Result<T> {
        if let Some(bytes) = self.plain() {
            return act(bytes);
        }
        let mut packed = memory(self.elements.length())?;
        // SAFETY: the caller's promise; there is so much memory.
        unsafe { self.elements.pack(self.address.cast(), packed.as_mut_ptr()) };
        act(packed.as_ptr())
    }

    /// Acts with memory for the bytes, which then go to their places.
    ///
    /// # Safety
    /// The elements may be written.
    pub unsafe fn fill(&self, act: impl FnOnce(*mut u8) -> Result) -> Result {
        if let Some(bytes) = self.plain() {
            return act(bytes);
        }
        let mut packed = memory(self.elements.length())?;
        act(packed.as_mut_ptr())?;
        // SAFETY: as above.
        unsafe { self.elements.unpack(packed.as_ptr(), self.address.cast()) };
        Ok(())
    }
}

/// The two sides have as many bytes.
pub fn check_lengths(own: usize, theirs: usize) -> Result {
    match own == theirs {
        true => Ok(()),
        false => Err(Error::new(
            ERR_TRUNCATE,
            format!("here the elements have {own} bytes, and at the target {theirs}"),
        )),
    }
}

/// The elements that a call names in the memory of a target, which may be reached now; nothing of MPI_PROC_NULL.
pub fn spot(window: &Window, aim: Aim) -> Result<Option<Spot<'_>>> {
    let Some(target) = window.target(aim.rank)? else {
        return Ok(None);
    };
    let elements = Elements::new(aim.datatype, aim.count)?;
    let spot = Spot::new(target, aim.displacement, elements)?;
    window.check_access(aim.rank)?;
    Ok(Some(spot))
}

/// Packed bytes go to a target.
///
/// # Safety
/// So many bytes may be read, and the program lets others write the target's elements.
pub unsafe fn write(window: &Window, spot: &Spot<'_>, bytes: *const u8) -> Result {
    let length = spot.elements.length();
    match spot.target.reach {
        Reach::Mapped(base) => {
            let at = base.wrapping_add(spot.offset as usize) as *mut u8;
            // SAFETY: the caller's promise; `spot` lies within the target's memory.
            unsafe { spot.elements.unpack(bytes, at) };
            Ok(())
        }
        // SAFETY: the caller's promise.
        Reach::Copied(process) => unsafe {
            copying::copy(
                process,
                &spot.pieces(0, length),
                bytes.cast_mut(),
                CopyDirection::ToTarget,
            )
        },
        // SAFETY: the caller's promise.
        Reach::Asked => unsafe { service::put(window, spot, bytes) },
    }
}

/// The bytes of a target, packed.
///
/// # Safety
/// So many bytes may be written, and the program lets others read the target's elements.
pub unsafe fn read(window: &Window, spot: &Spot<'_>, bytes: *mut u8) -> Result {
    let length = spot.elements.length();
    match spot.target.reach {
        Reach::Mapped(base) => {
            let at = base.wrapping_add(spot.offset as usize) as *const u8;
            // SAFETY: the caller's promise; `spot` lies within the target's memory.
            unsafe { spot.elements.pack(at, bytes) };
            Ok(())
        }
        // SAFETY: the caller's promise.
        Reach::Copied(process) => unsafe {
            copying::copy(
                process,
                &spot.pieces(0, length),
                bytes,
                CopyDirection::FromTarget,
            )
        },
        // SAFETY: the caller's promise.
        Reach::Asked => unsafe { service::get(window, spot, bytes) },
    }
}
