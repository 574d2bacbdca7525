//! Long messages that are read where they were packed.
//!
//! The body lies in a block of the memory that the tasks of a host share; what is sent is its name. The
//! sender's buffer stays as it is, to be read or sent again, and is not written again while anybody may read
//! it; the receiver's buffer is the same memory.

use std::ffi::c_int;
use std::ptr::{NonNull, null, null_mut};

use crate::arrival::{Select, info};
use crate::head::Head;
use crate::message::{self, Blocks, Outgoing, Storage, codes};
use crate::rg;
use crate::send::{Destination, send_bytes};

/// From now on there is such memory.
pub fn begin() {
    message::set_blocks(Some(Blocks { take, give, close }));
}

fn take(bytes: usize) -> Option<NonNull<u8>> {
    let mut block = null_mut();
    // SAFETY: a place for an address.
    match unsafe { rg::rg_loan(bytes, &mut block) } {
        rg::OK => NonNull::new(block.cast()),
        // Packed items go to memory of our own.
        _ => None,
    }
}

fn give(block: NonNull<u8>) {
    // SAFETY: it came from `take`.
    unsafe { rg::rg_loan_free(block.as_ptr().cast()) };
}

fn close(name: u64) {
    // SAFETY: a plain request.
    unsafe { rg::rg_loan_close(name) };
}

/// Send a message by its name: what Regatta says of it. `None`: it must go by itself.
#[cold]
pub fn send(out: &Outgoing, head: Head, to: Destination) -> Option<c_int> {
    let mut name = 0;
    // SAFETY: the block is of the buffer that goes out; a place for a number.
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

/// The buffer of a message that came by its name. `None`: these bytes are none.
#[cold]
pub fn accept(bytes: &[u8], status: &rg::Status, select: Select) -> Option<Result<c_int, i32>> {
    let (head, name, body) = Head::read_shared(bytes)?;
    let mut block = null();
    let reach = Storage::reach(body).unwrap_or(usize::MAX);
    // SAFETY: a place for an address.
    let code = unsafe { rg::rg_loan_open(name, reach, &mut block) };
    let Some(block) = NonNull::new(block.cast_mut().cast()).filter(|_| code == rg::OK) else {
        return Some(Err(codes::SYS_ERR));
    };
    // SAFETY: so much can be read, until the name is closed.
    let storage = unsafe { Storage::foreign(block, body, name) };
    Some(message::accept(storage, body, info(status, select, head)))
}
