//! Messages as PVM has them: buffers with numbers, into which items are packed one after the other.
//!
//! Here is everything about them but their way to another task: this module knows neither tasks nor
//! the engine, and can be tried by itself. (Only its functions for programs tell a tracer that they are called.) A sender takes a message as it goes out
//! ([`outgoing`]); a receiver brings one in ([`spare`], [`accept`], [`set_received`]).
//!
//! PVM's rule holds: one thread at a time is in the library. So the state is plain memory, without
//! a lock, and nobody may hold a reference into it while a function of the user runs.

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

// SAFETY: PVM's rule: programs have one thread at a time in the library.
unsafe impl Sync for State {}

static STATE: State = State(UnsafeCell::new(Buffers::new()));

/// The buffers of this process. The reference must not live longer than the call that takes it.
#[inline(always)]
fn state<'a>() -> &'a mut Buffers {
    // SAFETY: one thread at a time, and each user of this lets go before it calls anybody.
    unsafe { &mut *STATE.0.get() }
}

/// A block of memory to receive into, for `capacity` bytes of body or more.
#[inline(always)]
pub fn spare(capacity: usize) -> Result<Storage, i32> {
    state().shelf.take(capacity)
}

/// A block that was not needed.
#[inline(always)]
pub fn give_back(storage: Storage) {
    state().shelf.put(storage);
}

/// A message that has come, as a new buffer: its number.
#[inline(always)]
pub fn accept(storage: Storage, body: usize, info: Info) -> Result<i32, i32> {
    assert!(body <= storage.capacity());
    state().accept(storage, body, info)
}

/// Make a buffer the current receive buffer, and free the one before.
#[inline(always)]
pub fn set_received(id: i32) {
    state().set_received(id);
}

/// Is the memory of the current receive buffer somebody else's?
#[inline(always)]
pub fn received_is_foreign() -> bool {
    state().received_is_foreign()
}

/// All memory that others know is about to vanish: keep what is in it.
pub fn keep_to_oneself() {
    state().keep_to_oneself();
    set_blocks(None);
}

/// A buffer as it goes out; 0 is the current send buffer. The pointers hold until the buffer changes.
#[inline(always)]
pub fn outgoing(id: i32) -> Result<Outgoing, i32> {
    state().outgoing(id)
}

/// A buffer (0: the current send buffer) has been sent: it says so from now on.
#[inline(always)]
pub fn sent(id: i32, dst: i32, tag: i32, ctx: i32) {
    state().sent(id, dst, tag, ctx);
}

/// The information that goes with a message.
pub fn info(id: i32) -> Option<Info> {
    state().buffer(id).ok().map(|buffer| buffer.info)
}

/// How long a message is told to be; -1: there is none.
pub fn length(id: i32) -> i32 {
    let buffer = state().buffer(id);
    buffer.map_or(-1, |buffer| calls::length(buffer.reported_length()))
}

/// Change what goes with a message, but for its encoding.
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

/// The bytes of a message, which hold until the buffer changes. Of one in place there are none.
pub fn body(id: i32) -> Option<&'static [u8]> {
    state().buffer(id).ok().map(|buffer| buffer.body())
}

/// A new buffer with the same message.
pub fn copy(id: i32) -> Result<i32, i32> {
    state().copy(id)
}

/// A new buffer with this message.
pub fn from_body(body: &[u8], info: Info) -> Result<i32, i32> {
    state().put(body, info)
}

/// Free a buffer, if there is such a one.
pub fn free(id: i32) {
    let _ = state().free(id);
}

/// The numbers of the current send and receive buffers, 0 for none.
pub fn current() -> (i32, i32) {
    state().current()
}

/// Change both; returns which they were.
pub fn swap_current(send: i32, receive: i32) -> (i32, i32) {
    let state = state();
    let before = state.current();
    let _ = state.set_send(send);
    let _ = state.set_receive(receive);
    before
}

/// End the event of a tracer that the current send buffer holds.
pub fn end_event() -> Result<(), i32> {
    let (buffer, shelf) = state().sending()?;
    buffer.pack_trace_end(shelf)
}

/// Bytes of an item of `pvm_psend`, `pvm_precv` and `pvm_reduce`; a string has no fixed size.
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
