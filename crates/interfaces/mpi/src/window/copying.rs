//! Memory of another process on this host, which the kernel copies.
//!
//! For the kernel, the number of a process refers to its first thread. When that thread has ended (`pthread_exit`)
//! while others go on, it no longer has memory or files; both are then accessed through another thread.

use std::ffi::c_int;

use crate::abi::*;
use crate::error::{Error, PROC_FAILED, Result};
use crate::segment::other_threads;

/// Maximum number of blocks in one system call.
const AT_ONCE: usize = 512;

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyDirection {
    /// From the other process to this one.
    FromTarget,
    /// From this process to the other one.
    ToTarget,
}

/// Copies bytes between `own` and these blocks of a process, given by address and length.
///
/// # Safety
/// `own` is valid for reads or writes of this many bytes, depending on the direction.
pub unsafe fn copy(
    process: c_int,
    blocks: impl IntoIterator<Item = (u64, usize)>,
    own: *mut u8,
    direction: CopyDirection,
) -> Result {
    let mut own = own;
    let mut blocks = blocks.into_iter();
    let mut there: Vec<libc::iovec> = Vec::new();
    loop {
        let part = blocks.by_ref().take(AT_ONCE);
        there.extend(part.map(|(address, length)| libc::iovec {
            iov_base: address as *mut _,
            iov_len: length,
        }));
        if there.is_empty() {
            return Ok(());
        }
        let length: usize = there.iter().map(|it| it.iov_len).sum();
        let mut done = 0;
        while done < length {
            // SAFETY: the caller guarantees that `own` is valid; the kernel checks the addresses of the other process.
            let moved = unsafe { once(process, &there, own.add(done), length - done, direction)? };
            done += moved;
            skip(&mut there, moved);
        }
        own = own.wrapping_add(length);
        there.clear();
    }
}

/// Makes one system call. Returns the number of bytes copied, which is never 0.
unsafe fn once(
    process: c_int,
    there: &[libc::iovec],
    own: *mut u8,
    length: usize,
    direction: CopyDirection,
) -> Result<usize> {
    // SAFETY: the caller upholds the safety contract of this function, also below.
    let mut moved = unsafe { by_thread(process, there, own, length, direction) };
    if moved < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH) {
        let mut others = other_threads(process)
            // SAFETY: the caller upholds the safety contract of this function, also below.
            .map(|thread| unsafe { by_thread(thread, there, own, length, direction) });
        moved = others.find(|&moved| moved > 0).unwrap_or(moved);
    }
    match usize::try_from(moved) {
        Ok(moved) if moved != 0 => Ok(moved),
        _ => Err(failed(process)),
    }
}

/// Returns the result of the system call for a thread of the process.
unsafe fn by_thread(
    thread: c_int,
    there: &[libc::iovec],
    own: *mut u8,
    length: usize,
    direction: CopyDirection,
) -> isize {
    let here = libc::iovec {
        iov_base: own.cast(),
        iov_len: length,
    };
    let count = there.len() as libc::c_ulong;
    // SAFETY: the caller upholds the safety contract of `copy`; both arrays have the lengths that are passed.
    unsafe {
        match direction {
            CopyDirection::FromTarget => {
                libc::process_vm_readv(thread, &here, 1, there.as_ptr(), count, 0)
            }
            CopyDirection::ToTarget => {
                libc::process_vm_writev(thread, &here, 1, there.as_ptr(), count, 0)
            }
        }
    }
}

/// Removes `moved` bytes from the front of the blocks.
fn skip(blocks: &mut Vec<libc::iovec>, moved: usize) {
    let mut left = moved;
    let whole = blocks.iter().take_while(|it| {
        let is_whole = left >= it.iov_len;
        left -= if is_whole { it.iov_len } else { 0 };
        is_whole
    });
    let whole = whole.count();
    blocks.drain(..whole);
    if let Some(first) = blocks.first_mut() {
        first.iov_base = first.iov_base.wrapping_byte_add(left);
        first.iov_len -= left;
    }
}

#[cold]
fn failed(process: c_int) -> Error {
    let why = std::io::Error::last_os_error();
    match why.raw_os_error() {
        Some(libc::ESRCH) => Error::new(
            PROC_FAILED,
            format!("the target (process {process} of its host) has ended"),
        ),
        Some(libc::EFAULT) => Error::new(
            ERR_RMA_RANGE,
            "the target has no accessible memory at this address",
        ),
        _ => Error::new(
            ERR_OTHER,
            format!("memory of process {process} cannot be copied: {why}"),
        ),
    }
}

/// Returns whether memory of a process can be copied: checks that the word at this address has a known value.
pub fn is_possible(process: c_int, address: u64, value: u64) -> bool {
    let mut got = 0u64;
    let word = [(address, size_of::<u64>())];
    // SAFETY: the call writes a word of this process.
    let result = unsafe {
        copy(
            process,
            word,
            (&raw mut got).cast(),
            CopyDirection::FromTarget,
        )
    };
    result.is_ok() && got == value
}
