//! Messages of a collective in the hidden group.

use std::ffi::{c_int, c_void};

use regatta_sys as rg;

use super::memory::{Flat, Memory};

/// A message of a collective.
pub struct Message {
    /// The rank in the hidden group of the process that it goes to or comes from.
    pub peer: c_int,
    /// Its tag.
    pub tag: c_int,
    /// Its content.
    pub content: Content,
}

/// The bytes of a message.
pub enum Content {
    /// These elements.
    Memory(Memory),
    /// A copy of these elements, which change meanwhile.
    Copied(Memory),
    /// The reduction's result, of this length in bytes; not computed yet.
    Result(usize),
    /// Of `(memory, skip, length)`: what follows the first `skip` bytes of the elements, `length` bytes.
    Slice(Memory, usize, usize),
    /// Why there is no result. It comes after a message that is empty in place of a result.
    Verdict,
}

impl Content {
    /// Bytes of a message that is received, at most.
    pub fn length(&self) -> usize {
        match self {
            Content::Memory(memory) | Content::Copied(memory) => memory.bytes(),
            Content::Result(whole) | Content::Slice(_, _, whole) => *whole,
            Content::Verdict => VERDICT,
        }
    }
}

/// Most bytes of a verdict.
pub const VERDICT: usize = 512;

/// Begins a send of this many bytes at this address.
///
/// # Safety
/// They stay until it is complete.
pub unsafe fn send(
    address: *const c_void,
    length: usize,
    message: &Message,
    hidden: rg::Group,
    request: &mut rg::Request,
) -> c_int {
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { rg::rg_isend(address, length, message.peer, message.tag, hidden, request) }
}

/// Begins a receive of the parts of `flat`.
///
/// # Safety
/// It stays until the receive is complete.
pub unsafe fn receive(
    flat: &Flat,
    length: usize,
    message: &Message,
    hidden: rg::Group,
    request: &mut rg::Request,
) -> c_int {
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe {
        rg::rg_irecv(
            flat.address,
            length,
            message.peer,
            message.tag,
            hidden,
            request,
        )
    }
}
