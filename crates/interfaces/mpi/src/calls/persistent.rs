//! Persistent sends and receives, and freeing and cancelling requests.

use std::ffi::{c_int, c_void};

use super::buffered::ibsend;
use super::completion::array;
use super::receive::{irecv, wanted_tag};
use super::send::{check_tag, irsend, isend, issend};
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::route;
use crate::datatype::{self, Kept, builtin};
use crate::error::{Error, Object, Result, not_null};
use crate::progress;
use crate::requests::{self, Persistent, State, find};

/// The arguments of a message.
#[derive(Clone, Copy)]
struct Arguments {
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    peer: c_int,
    tag: c_int,
    comm: Comm,
}

// SAFETY: the caller guarantees that the buffer may be used by any thread that starts the message.
unsafe impl Send for Arguments {}

/// The function that begins a message, such as `isend`.
type Begin = unsafe fn(*const c_void, i64, Datatype, c_int, c_int, Comm, *mut Request) -> Result;

/// Makes a persistent request for a message whose arguments have been checked.
unsafe fn keep(arguments: Arguments, begin: Begin, request: *mut Request) -> Result {
    not_null(request, "request")?;
    datatype::block(arguments.datatype, arguments.count)?;
    // The program may free a derived datatype before it starts the message, so the request keeps it.
    let held = match builtin::is_predefined(arguments.datatype) {
        true => None,
        false => Some(Kept::new(
            arguments.datatype,
            datatype::get(arguments.datatype)?,
        )),
    };
    let again = move || {
        let it = arguments;
        let datatype = held.as_ref().map_or(it.datatype, Kept::handle);
        let mut begun = REQUEST_NULL;
        // SAFETY: the caller guarantees that the buffer is valid from each start until completion.
        unsafe {
            begin(
                it.buf, it.count, datatype, it.peer, it.tag, it.comm, &mut begun,
            )?;
        }
        Ok(begun)
    };
    let kept = requests::of_operation(Box::new(Persistent::new(again)), arguments.comm)?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *request = kept };
    Ok(())
}

alike! {
    pub unsafe fn send_init, ssend_init, rsend_init, bsend_init(
        buf: *const c_void,
        count: i64,
        datatype: Datatype,
        dest: c_int,
        tag: c_int,
        comm: Comm,
        request: *mut Request,
    )
        = |begin| {
            route(comm)?.destination(dest)?;
            check_tag(tag)?;
            let buf = buf.cast_mut();
            keep(Arguments { buf, count, datatype, peer: dest, tag, comm }, begin, request)
        },
        of isend, issend, irsend, ibsend;
}

/// Begins a receive. It has the type of [`Begin`], but writes to the buffer.
unsafe fn begin_irecv(
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { irecv(buf.cast_mut(), count, datatype, source, tag, comm, request) }
}

pub unsafe fn recv_init(
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    request: *mut Request,
) -> Result {
    route(comm)?.source(source)?;
    wanted_tag(tag)?;
    let arguments = Arguments {
        buf,
        count,
        datatype,
        peer: source,
        tag,
        comm,
    };
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { keep(arguments, begin_irecv, request) }
}

pub fn start(request: Out<Request>) -> Result {
    start_one(request.get())
}

fn start_one(request: Request) -> Result {
    let found = find(request)?;
    let mut operation = found.operation();
    let started = match operation.as_mut() {
        Some(inner) => inner.start(),
        None => Err(Error::new(ERR_REQUEST, "the request is not persistent")),
    };
    started.map_err(|error| error.on(Object::Comm(found.comm())))?;
    let staged = operation.as_ref().is_some_and(|inner| inner.has_stages());
    drop(operation);
    if staged {
        progress::add(request);
    }
    Ok(())
}

pub unsafe fn startall(count: c_int, array_of_requests: *mut Request) -> Result {
    // SAFETY: the caller guarantees that the array has this many elements.
    let all = unsafe { array(count, array_of_requests)? };
    all.iter().try_for_each(|&request| start_one(request))
}

pub fn request_free(place: &mut Request) -> Result {
    let found = find(*place)?;
    match found.plain() {
        Some(plain) => {
            requests::detach(plain);
            requests::release(*place, found);
        }
        None => {
            let mut operation = found.operation();
            // The operation may be complete although no call has checked it yet.
            let state = operation.as_mut().map(|inner| {
                progress::advance_one(inner.as_mut());
                inner.state()
            });
            match state {
                // A pending message goes on and is freed on completion.
                Some(State::Pending) => {
                    drop(operation);
                    progress::orphan(*place);
                }
                _ => requests::release_held(*place, operation),
            }
        }
    }
    *place = REQUEST_NULL;
    Ok(())
}

pub fn cancel(request: Out<Request>) -> Result {
    let found = find(request.get())?;
    match found.plain() {
        Some(plain) => requests::cancel(plain),
        None => found
            .operation()
            .as_mut()
            .map_or(Ok(()), |inner| inner.cancel()),
    }
}
