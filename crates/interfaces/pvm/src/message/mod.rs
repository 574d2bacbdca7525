//! PVM's messages: numbered buffers into which items are packed one after the other.
//!
//! This module does everything except transferring messages. It knows neither tasks nor the engine, so it can be tested
//! on its own. (Only the functions for programs report their calls to a tracer.) A sender gets a message's bytes with
//! [`outgoing`]; a receiver inserts a message with [`spare`], [`accept`] and [`set_received`].
//!
//! PVM allows only one thread at a time in the library. The state is therefore plain memory without a lock, and no
//! reference into it may be held while a function of the program runs.

mod buffer;
mod calls;
pub mod codes;
mod dump;
pub mod error;
mod format;
mod in_place;
mod kind;
mod nested;
mod pack;
mod storage;
mod table;
#[cfg(test)]
mod tests;
mod uncached_copy;
mod xdr;
mod xdr_body;
mod xdr_read;

use std::cell::UnsafeCell;

pub use buffer::Info;
pub use calls::{pvm_freebuf, pvm_setrbuf, pvm_setsbuf};
pub use in_place::Piece;
pub use kind::Kind;
pub use storage::{Blocks, HEAD, STANDARD, Storage, set_blocks};
pub use table::Outgoing;
pub use xdr_body::Body;
pub use xdr_read::Reader;

use table::Buffers;

struct State(UnsafeCell<Buffers>);

// SAFETY: PVM allows a program only one thread at a time in the library.
unsafe impl Sync for State {}

static STATE: State = State(UnsafeCell::new(Buffers::new()));

/// Returns the buffers of this process. The reference must not outlive the call that takes it.
#[inline(always)]
fn state<'a>() -> &'a mut Buffers {
    // SAFETY: only one thread is in the library, and every user drops the reference before it calls other functions.
    unsafe { &mut *STATE.0.get() }
}

/// Returns a block to receive into, with room for at least `capacity` bytes of body.
#[inline(always)]
pub fn spare(capacity: usize) -> Result<Storage, i32> {
    state().shelf.take(capacity)
}

/// Returns an unused block.
#[inline(always)]
pub fn give_back(storage: Storage) {
    state().shelf.put(storage);
}

/// Makes a new buffer of a received message, and returns its number.
#[inline(always)]
pub fn accept(storage: Storage, body: usize, info: Info) -> Result<i32, i32> {
    assert!(body <= storage.capacity());
    state().accept(storage, body, info)
}

/// Makes a buffer the current receive buffer, and frees the previous one.
#[inline(always)]
pub fn set_received(id: i32) {
    state().set_received(id);
}

/// Returns whether the memory of the current receive buffer belongs to another task.
#[inline(always)]
pub fn received_is_foreign() -> bool {
    state().received_is_foreign()
}

/// Copies all messages in shared memory into private memory: the shared memory is about to be unmapped.
pub fn keep_to_oneself() {
    state().keep_to_oneself();
    set_blocks(None);
}

/// Returns a buffer (0: the current send buffer) for sending. The pointers are valid until the buffer changes.
#[inline(always)]
pub fn outgoing(id: i32) -> Result<Outgoing, i32> {
    state().outgoing(id)
}

/// Records in a buffer (0: the current send buffer) where it has been sent.
#[inline(always)]
pub fn sent(id: i32, dst: i32, tag: i32, ctx: i32) {
    state().sent(id, dst, tag, ctx);
}

/// Returns the metadata of a message.
pub fn info(id: i32) -> Option<Info> {
    state().buffer(id).ok().map(|buffer| buffer.info)
}

/// Returns the length of a message as programs see it, or -1 if there is no such buffer.
pub fn length(id: i32) -> i32 {
    let buffer = state().buffer(id);
    buffer.map_or(-1, |buffer| calls::length(buffer.reported_length()))
}

/// Sets the metadata of a message, except its encoding. Returns `false` if there is no such buffer.
pub fn set_info(id: i32, info: Info) -> bool {
    let Ok(buffer) = state().buffer(id) else {
        return false;
    };
    buffer.info = Info {
        encoding: buffer.info.encoding,
        ..info
    };
    true
}

/// Returns the bytes of a message, which are valid until the buffer changes. An in-place message has none.
pub fn body(id: i32) -> Option<&'static [u8]> {
    state().buffer(id).ok().map(|buffer| buffer.body())
}

/// Makes a new buffer with the same message.
pub fn copy(id: i32) -> Result<i32, i32> {
    state().copy(id)
}

/// Makes a new buffer with this message.
pub fn from_body(body: &[u8], info: Info) -> Result<i32, i32> {
    state().put(body, info)
}

/// Frees a buffer, if it exists.
pub fn free(id: i32) {
    let _ = state().free(id);
}

/// Returns the numbers of the current send and receive buffers; 0 means none.
pub fn current() -> (i32, i32) {
    state().current()
}

/// Sets both, and returns the previous ones.
pub fn swap_current(send: i32, receive: i32) -> (i32, i32) {
    let state = state();
    let before = state.current();
    let _ = state.set_send(send);
    let _ = state.set_receive(receive);
    before
}

/// Ends the trace event in the current send buffer.
pub fn end_event() -> Result<(), i32> {
    let (buffer, shelf) = state().sending()?;
    buffer.pack_trace_end(shelf)
}

/// Returns the size of an item of `pvm_psend`, `pvm_precv` and `pvm_reduce` in bytes, or `None` for a string, which has
/// no fixed size, and for unknown types.
pub fn datatype_size(datatype: i32) -> Option<usize> {
    let kind = match datatype {
        codes::datatype::BYTE => Kind::Byte,
        codes::datatype::SHORT => Kind::Short,
        codes::datatype::INT => Kind::Int,
        codes::datatype::FLOAT => Kind::Float,
        codes::datatype::CPLX => Kind::Complex,
        codes::datatype::DOUBLE => Kind::Double,
        codes::datatype::DCPLX => Kind::DoubleComplex,
        codes::datatype::LONG => Kind::Long,
        codes::datatype::USHORT => Kind::UShort,
        codes::datatype::UINT => Kind::UInt,
        codes::datatype::ULONG => Kind::ULong,
        _ => return None,
    };
    Some(kind.width())
}
