//! Messages of a collective in the hidden group.

use std::ffi::{c_int, c_void};

use regatta_sys as rg;

use super::memory::{Flat, Memory};

/// A message of a collective.
pub struct Message {
    /// The peer's rank in the hidden group.
    pub peer: c_int,
    /// Its tag.
    pub tag: c_int,
    /// Its content.
    pub content: Content,
}

/// The content of a message.
pub enum Content {
    /// These elements.
    Memory(Memory),
    /// A copy of these elements, for elements that change during the collective.
    Copied(Memory),
    /// The reduction's result, which is computed later. Its length in bytes.
    Result(usize),
    /// `(memory, skip, length)`: of a message with `length` bytes, those after the first `skip` are received into the
    /// elements.
    Slice(Memory, usize, usize),
    /// The reason why there is no result. It follows a message that is empty because of that.
    Verdict,
}

impl Content {
    /// Returns the maximum length of the message when received, in bytes.
    pub fn length(&self) -> usize {
        match self {
            Content::Memory(memory) | Content::Copied(memory) => memory.bytes(),
            Content::Result(whole) | Content::Slice(_, _, whole) => *whole,
            Content::Verdict => VERDICT,
        }
    }
}

/// Maximum length of a verdict in bytes.
pub const VERDICT: usize = 512;

/// Begins a send of this many bytes at this address.
///
/// # Safety
/// The bytes stay valid until the send is complete.
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

/// Begins a receive into `flat`.
///
/// # Safety
/// `flat` stays valid until the receive is complete.
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
