//! Long messages that the receiver reads where the sender packed them.
//!
//! The body is in a block of the memory that the tasks of a host share, and the message carries only the block's name.
//! The sender's buffer stays valid, to be read or sent again, but is not written again while a receiver may be reading
//! it. The receiver's buffer is the same memory.

use std::ffi::c_int;
use std::ptr::{NonNull, null, null_mut};

use crate::arrival::{Select, info};
use crate::head::Head;
use crate::message::{self, Blocks, Outgoing, Storage, codes};
use crate::rg;
use crate::send::{Destination, send_bytes};

/// Starts packing long messages into shared memory.
pub fn begin() {
    message::set_blocks(Some(Blocks { take, give, close }));
}

fn take(bytes: usize) -> Option<NonNull<u8>> {
    let mut block = null_mut();
    // SAFETY: the result points to a local variable.
    match unsafe { rg::rg_loan(bytes, &mut block) } {
        rg::OK => NonNull::new(block.cast()),
        // The items are packed into private memory instead.
        _ => None,
    }
}

fn give(block: NonNull<u8>) {
    // SAFETY: the block came from `take`.
    unsafe { rg::rg_loan_free(block.as_ptr().cast()) };
}

fn close(name: u64) {
    // SAFETY: the call takes a plain number.
    unsafe { rg::rg_loan_close(name) };
}

/// Sends a message by the name of its block, and returns Regatta's code. Returns `None` if the block cannot be shared:
/// the caller then sends the bytes.
#[cold]
pub fn send(out: &Outgoing, head: Head, to: Destination) -> Option<c_int> {
    let mut name = 0;
    // SAFETY: the block belongs to the buffer that is sent, and `name` can be written.
    let code = unsafe { rg::rg_loan_share(out.block.cast(), to.task, to.group, &mut name) };
    if code != rg::OK {
        return None;
    }
    let bytes = head.shared(name, out.total);
    let code = send_bytes(&bytes, to);
    if code != rg::OK {
        close(name);
    }
    Some(code)
}

/// Makes a buffer of a message that was sent by name. Returns `None` if these bytes are no such message.
#[cold]
pub fn accept(bytes: &[u8], status: &rg::Status, select: Select) -> Option<Result<c_int, i32>> {
    let (head, name, body) = Head::read_shared(bytes)?;
    let mut block = null();
    let reach = Storage::reach(body).unwrap_or(usize::MAX);
    // SAFETY: `block` can be written.
    let code = unsafe { rg::rg_loan_open(name, reach, &mut block) };
    let Some(block) = NonNull::new(block.cast_mut().cast()).filter(|_| code == rg::OK) else {
        return Some(Err(codes::SYS_ERR));
    };
    // SAFETY: Regatta has mapped this many bytes, until the name is closed.
    let storage = unsafe { Storage::foreign(block, body, name) };
    Some(message::accept(storage, body, info(status, select, head)))
}
