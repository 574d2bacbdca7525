//! Buffered sends.
//!
//! The engine itself keeps messages that cannot be sent at once, so it never writes to the program's buffers. Their
//! sizes count only as the standard requires: a message that would not fit into the empty buffer is refused. Detaching
//! a buffer returns at once.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use regatta_sys as rg;

use super::send::check_tag;
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::{Communicator, route};
use crate::datatype::Staging;
use crate::error::{Error, Result, checked};
use crate::process;
use crate::requests::{self, Single};
use crate::session;

/// The owner of a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BufferOwner {
    Process,
    Comm(Comm),
    /// Which session a communicator was made from is not recorded, so a session's buffer serves every communicator for
    /// which no other buffer is attached.
    Session(Session),
}

/// A buffer that the program has attached.
#[derive(Clone, Copy)]
struct Attached {
    owner: BufferOwner,
    address: usize,
    length: i64,
}

static ATTACHED: Mutex<Vec<Attached>> = Mutex::new(Vec::new());

fn attached() -> std::sync::MutexGuard<'static, Vec<Attached>> {
    ATTACHED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn attach(owner: BufferOwner, buffer: *mut c_void, length: i64) -> Result {
    process::require()?;
    if length < 0 {
        let text = format!("the size is {length}; it must be 0 or more");
        return Err(Error::new(ERR_ARG, text));
    }
    let mut attached = attached();
    if attached.iter().any(|it| it.owner == owner) {
        return Err(Error::new(
            ERR_BUFFER,
            "a buffer is already attached: detach it first",
        ));
    }
    attached.push(Attached {
        owner,
        address: buffer as usize,
        length,
    });
    Ok(())
}

unsafe fn detach(owner: BufferOwner, buffer_addr: *mut c_void, size: OutCount) -> Result {
    process::require()?;
    let mut attached = attached();
    let Some(index) = attached.iter().position(|it| it.owner == owner) else {
        return Err(Error::new(ERR_BUFFER, "no buffer is attached"));
    };
    let found = attached.swap_remove(index);
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe {
        if !buffer_addr.is_null() {
            *buffer_addr.cast::<usize>() = found.address;
        }
        if !size.is_null() {
            size.set(found.length);
        }
    }
    Ok(())
}

/// Bytes that are counted for a message in addition to its own. Programs add the MPI_BSEND_OVERHEAD of their ABI, which
/// is at least this in all of them.
const OVERHEAD: i64 = 64;

/// Checks that a message with this many bytes fits into the attached buffer.
fn check_room(comm: Comm, bytes: usize) -> Result {
    let attached = attached();
    let own = attached
        .iter()
        .find(|it| it.owner == BufferOwner::Comm(comm));
    let process = || attached.iter().find(|it| it.owner == BufferOwner::Process);
    let session = || {
        attached
            .iter()
            .find(|it| matches!(it.owner, BufferOwner::Session(_)))
    };
    let found = own.or_else(process).or_else(session);
    let Some(found) = found else {
        let text = "no buffer is attached (call MPI_Buffer_attach first)";
        return Err(Error::new(ERR_BUFFER, text));
    };
    let wanted = bytes as i64 + OVERHEAD;
    if found.address != BUFFER_AUTOMATIC && found.length < wanted {
        let length = found.length;
        let text = format!(
            "the attached buffer has {length} bytes, and the message needs {wanted}, including MPI_BSEND_OVERHEAD ({OVERHEAD})"
        );
        return Err(Error::new(ERR_BUFFER, text));
    }
    Ok(())
}

pub unsafe fn bsend(
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
) -> Result {
    let route = route(comm)?;
    let to = route.destination(dest)?;
    check_tag(tag)?;
    if dest == PROC_NULL {
        // Arguments are checked, but the buffer is not read.
        return Staging::output(buf.cast_mut(), count, datatype).map(drop);
    }
    // SAFETY: the caller guarantees that the buffer is valid for its elements.
    let from = unsafe { Staging::input(buf, count, datatype)? };
    check_room(comm, from.length())?;
    // SAFETY: the memory has this many bytes.
    checked(unsafe { rg::rg_bsend(from.address(), from.length(), to, tag, route.group()) })
}

pub unsafe fn ibsend(
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller upholds the safety contract of this function.
    let request = unsafe { Out::at(request, "request")? };
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { bsend(buf, count, datatype, dest, tag, comm)? };
    complete(comm, request)
}

/// Returns a completed request to the caller.
fn complete(comm: Comm, request: Out<Request>) -> Result {
    let done = Single::complete(Status::empty(ANY_SOURCE));
    request.put(requests::of_operation(Box::new(done), comm)?);
    Ok(())
}

pub unsafe fn buffer_attach(buffer: *mut c_void, size: i64) -> Result {
    attach(BufferOwner::Process, buffer, size)
}

pub unsafe fn buffer_detach(buffer_addr: *mut c_void, size: OutCount) -> Result {
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe { detach(BufferOwner::Process, buffer_addr, size) }
}

pub unsafe fn buffer_flush() -> Result {
    process::require()
}

pub fn buffer_iflush(request: Out<Request>) -> Result {
    process::require()?;
    complete(COMM_SELF, request)
}

pub fn comm_attach_buffer(comm: Arc<Communicator>, buffer: *mut c_void, size: i64) -> Result {
    attach(BufferOwner::Comm(comm.handle), buffer, size)
}

pub unsafe fn comm_detach_buffer(
    comm: Arc<Communicator>,
    buffer_addr: *mut c_void,
    size: OutCount,
) -> Result {
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe { detach(BufferOwner::Comm(comm.handle), buffer_addr, size) }
}

pub fn comm_flush_buffer(_comm: Arc<Communicator>) -> Result {
    Ok(())
}

pub fn comm_iflush_buffer(comm: Arc<Communicator>, request: Out<Request>) -> Result {
    complete(comm.handle, request)
}

pub unsafe fn session_attach_buffer(session: Session, buffer: *mut c_void, size: i64) -> Result {
    session::get(session)?;
    attach(BufferOwner::Session(session), buffer, size)
}

pub unsafe fn session_detach_buffer(
    session: Session,
    buffer_addr: *mut c_void,
    size: OutCount,
) -> Result {
    session::get(session)?;
    // SAFETY: the caller guarantees that the pointers are valid.
    unsafe { detach(BufferOwner::Session(session), buffer_addr, size) }
}

pub unsafe fn session_flush_buffer(session: Session) -> Result {
    session::get(session).map(drop)
}

pub fn session_iflush_buffer(_session: Arc<session::Object>, request: Out<Request>) -> Result {
    complete(COMM_SELF, request)
}
