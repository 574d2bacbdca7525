//! Checks of arguments that descriptions of collectives share. All arguments are checked before anything is sent.
//!
//! Safety of all of them: buffers and arrays are valid as the standard requires.
#![allow(clippy::missing_safety_doc)]

use std::cmp::Ordering;
use std::ffi::c_void;

use super::memory::{Buffer, Element, Memory, Part, even};
use super::{LocalData, Reduction};
use crate::abi::*;
use crate::error::{Error, Result};

/// Returns the elements that a process contributes if it also receives. What it contributes for itself must be as long
/// as what it receives from itself.
pub unsafe fn given(send: &Buffer, parts: usize, takes: &Memory, own: usize) -> Result<LocalData> {
    if send.is_in_place() {
        return Ok(LocalData::InPlace);
    }
    // SAFETY: the caller upholds the safety contract of this function.
    let gives = unsafe { send.memory("sendbuf", parts)? };
    distinct(&gives, takes)?;
    let (gave, got) = (
        gives.part(if parts == 1 { 0 } else { own }),
        takes.part(own),
    );
    fits(gave, got)?;
    if parts == 1 {
        elsewhere((&gives, gave), (takes, got))?;
    }
    Ok(LocalData::Memory(gives))
}

/// Checks that a process receives from itself as many bytes as it contributes for itself.
pub fn fits(gave: Part, got: Part) -> Result {
    let class = match gave.bytes.cmp(&got.bytes) {
        Ordering::Equal => return Ok(()),
        Ordering::Greater => ERR_TRUNCATE,
        Ordering::Less => ERR_COUNT,
    };
    let text = format!(
        "this process sends {} bytes to itself but receives {}; both lengths must be equal",
        gave.bytes, got.bytes
    );
    Err(Error::new(class, text))
}

/// Checks that the two buffers of a call are distinct.
pub fn distinct(gives: &Memory, takes: &Memory) -> Result {
    match gives.address == takes.address && gives.bytes() > 0 && takes.bytes() > 0 {
        false => Ok(()),
        true => Err(Error::new(
            ERR_BUFFER,
            "sendbuf and recvbuf are the same (use MPI_IN_PLACE as sendbuf for that)",
        )),
    }
}

/// Checks that a process's part is not already its own part of the buffer of all processes.
pub fn elsewhere((one, part): (&Memory, Part), (all, own): (&Memory, Part)) -> Result {
    let place = |memory: &Memory, part: Part| {
        let address = memory.address.wrapping_byte_offset(part.offset as isize);
        address as usize
    };
    match part.bytes > 0 && place(one, part) == place(all, own) {
        false => Ok(()),
        true => Err(Error::new(
            ERR_BUFFER,
            "one buffer is this process' own part of the other (use MPI_IN_PLACE for that)",
        )),
    }
}

/// The buffer of MPI_Alltoallw: each part has its own datatype, and a displacement in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Typed {
    /// The start of the buffer, or MPI_IN_PLACE.
    pub address: *mut c_void,
    /// Number of elements of each part.
    pub counts: Ints,
    /// Displacement of each part in bytes.
    pub displs: Ints,
    /// Datatype of each part.
    pub types: *const Datatype,
}

/// Returns the buffer with these arrays.
pub fn typed(address: *const c_void, counts: Ints, displs: Ints, types: *const Datatype) -> Typed {
    let address = address.cast_mut();
    Typed {
        address,
        counts,
        displs,
        types,
    }
}

impl Typed {
    /// Returns the memory of each part.
    pub unsafe fn memories(&self, name: &str, parts: usize) -> Result<Vec<Memory>> {
        if self.address as usize == IN_PLACE {
            let text = format!("{name} may not be MPI_IN_PLACE here");
            return Err(Error::new(ERR_BUFFER, text));
        }
        if parts > 0 && (self.counts.is_null() || self.displs.is_null() || self.types.is_null()) {
            let text = format!("an array of {name} is a null pointer");
            return Err(Error::new(ERR_ARG, text));
        }
        let part = |at| {
            // SAFETY: the caller upholds the safety contract of this function.
            let (count, displacement, datatype) = unsafe {
                (
                    self.counts.get(at),
                    self.displs.get(at),
                    *self.types.add(at),
                )
            };
            let address = self.address.wrapping_byte_offset(displacement as isize);
            // SAFETY: an even buffer has no arrays.
            unsafe { even(address, count, datatype).memory(name, 1) }
        };
        (0..parts).map(part).collect()
    }
}

/// The arguments of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Reduced {
    /// The operands, or MPI_IN_PLACE.
    pub send: *const c_void,
    /// The result.
    pub recv: *mut c_void,
    /// Number of elements.
    pub count: i64,
    /// Datatype of the elements.
    pub datatype: Datatype,
    /// The operator that combines them.
    pub op: Op,
}

impl Reduced {
    /// Returns the memory of the result, with `count` elements.
    pub unsafe fn takes(&self, count: i64) -> Result<Memory> {
        let recv = even(self.recv, count, self.datatype);
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { recv.memory("recvbuf", 1) }
    }

    /// Returns the memory of the operands.
    pub unsafe fn gives(&self) -> Result<Memory> {
        let send = even(self.send, self.count, self.datatype);
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { send.memory("sendbuf", 1) }
    }

    /// Returns the operator, with the elements that it combines.
    pub fn reduction(&self) -> Result<Reduction> {
        let element = Element::of(self.datatype)?;
        element.bytes(self.count)?;
        Reduction::new(self.op, self.datatype, element, self.count as usize)
    }

    /// Returns whether the operands are in the buffer of the result.
    pub fn is_in_place(&self) -> bool {
        self.send as usize == IN_PLACE
    }

    /// Returns operands and result of a process that has both. In place, all operands are in the buffer of the result.
    pub unsafe fn both(&self, count: i64) -> Result<(LocalData, LocalData)> {
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe {
            if self.is_in_place() {
                return Ok((
                    LocalData::InPlace,
                    LocalData::Memory(self.takes(self.count)?),
                ));
            }
            let (gives, takes) = (self.gives()?, self.takes(count)?);
            distinct(&gives, &takes)?;
            Ok((LocalData::Memory(gives), LocalData::Memory(takes)))
        }
    }
}

/// Returns these arguments as [`Reduced`].
#[inline(always)]
pub fn reduced(
    send: *const c_void,
    recv: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
) -> Reduced {
    Reduced {
        send,
        recv,
        count,
        datatype,
        op,
    }
}
