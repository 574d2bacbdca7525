//! Sends in all modes, blocking and nonblocking.

use std::ffi::{c_int, c_void};

use regatta_sys as rg;

use crate::abi::*;
use crate::communicator::{Route, route, routes};
use crate::datatype::transfer::{self, Apart};
use crate::datatype::{self, Block, Type};
use crate::error::{Error, Result, checked, not_null};
use crate::progress;
use crate::requests;
use crate::tools::performance;

/// Checks that a tag is not negative.
#[inline(always)]
pub(crate) fn check_tag(tag: c_int) -> Result {
    match tag {
        0.. => Ok(()),
        _ => Err(bad_tag(tag)),
    }
}

#[cold]
fn bad_tag(tag: c_int) -> Error {
    let text = format!("the tag is {tag}; tags are 0 to 2147483647 (MPI_ANY_TAG is for receives)");
    Error::new(ERR_TAG, text)
}

/// A send mode: the engine's functions for it.
struct Mode {
    send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, rg::Group) -> c_int,
    start: unsafe extern "C" fn(
        *const c_void,
        usize,
        c_int,
        c_int,
        rg::Group,
        *mut rg::Request,
    ) -> c_int,
    /// Whether noncontiguous elements can be sent as views. The engine has no synchronous sends of views.
    has_views: bool,
}

const STANDARD: Mode = Mode {
    send: rg::rg_send,
    start: rg::rg_isend,
    has_views: true,
};

const SYNCHRONOUS: Mode = Mode {
    send: rg::rg_ssend,
    start: rg::rg_issend,
    has_views: false,
};

/// Ready mode. Views are sent in standard mode, which the standard allows.
const READY: Mode = Mode {
    send: rg::rg_rsend,
    start: rg::rg_irsend,
    has_views: true,
};

/// Sends, and waits until the buffer may be reused.
#[inline(always)]
unsafe fn blocking(
    mode: Mode,
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
    let (offset, length) = match datatype::block(datatype, count)? {
        Block::Plain { offset, length } => (offset, length),
        // SAFETY: the caller upholds the safety contract of this function.
        Block::Layout(of) => return unsafe { apart(mode, &of, buf, count, (to, tag), route) },
    };
    performance::sent(length);
    let buf = datatype::address(buf, offset, length)?;
    // SAFETY: the caller guarantees that the buffer has these bytes.
    unsafe { of_block(&mode, buf, length, (to, tag), route) }
}

/// Sends contiguous bytes to this destination with this tag.
#[inline(always)]
unsafe fn of_block(
    mode: &Mode,
    buf: *const c_void,
    length: usize,
    (to, tag): (c_int, c_int),
    route: &Route,
) -> Result {
    if progress::is_idle() {
        // SAFETY: the caller upholds the safety contract of this function.
        return checked(unsafe { (mode.send)(buf, length, to, tag, route.group()) });
    }
    let mut request = rg::REQUEST_NULL;
    // SAFETY: the caller upholds the safety contract of this function, until the send is complete, which is awaited
    // here.
    checked(unsafe { (mode.start)(buf, length, to, tag, route.group(), &mut request) })?;
    checked(progress::wait(request, &mut rg::Status::default()))
}

/// Sends noncontiguous elements.
#[inline(never)]
unsafe fn apart(
    mode: Mode,
    of: &Type,
    buf: *const c_void,
    count: i64,
    (to, tag): (c_int, c_int),
    route: &Route,
) -> Result {
    let length = of.packed_size(count)?;
    performance::sent(length);
    if to == rg::NONE {
        of.check_buffer(buf, length)?;
        // SAFETY: the length is 0.
        return unsafe { of_block(&mode, buf, 0, (to, tag), route) };
    }
    let few = match mode.has_views {
        true => transfer::views(of, buf, count)?,
        false => None,
    };
    let Some(views) = few else {
        // SAFETY: the caller upholds the safety contract of this function; the bytes stay until they are sent.
        return unsafe {
            let (bytes, length) = transfer::packed(of, buf, count)?;
            of_block(&mode, bytes.as_ptr().cast(), length, (to, tag), route)
        };
    };
    let (first, n) = (views.as_ptr(), views.len() as c_int);
    if progress::is_idle() {
        // SAFETY: the caller upholds the safety contract of this function.
        return checked(unsafe { rg::rg_sendv(first, n, to, tag, route.group()) });
    }
    let mut request = rg::REQUEST_NULL;
    // SAFETY: the caller upholds the safety contract of this function, until the send is complete, which is awaited
    // here.
    checked(unsafe { rg::rg_isendv(first, n, to, tag, route.group(), &mut request) })?;
    checked(progress::wait(request, &mut rg::Status::default()))
}

/// Begins a send.
#[inline(always)]
unsafe fn started(
    mode: Mode,
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
    request: *mut Request,
) -> Result {
    let route: &Route = route(comm)?;
    let to = route.destination(dest)?;
    check_tag(tag)?;
    not_null(request, "request")?;
    let (offset, length) = match datatype::block(datatype, count)? {
        Block::Plain { offset, length } => (offset, length),
        Block::Layout(of) => {
            // SAFETY: the caller upholds the safety contract of this function.
            let begun = unsafe { begin_apart(mode, &of, buf, count, (to, tag), route, comm)? };
            // SAFETY: the caller guarantees that the pointer is valid.
            unsafe { *request = begun };
            return Ok(());
        }
    };
    performance::sent(length);
    let buf = datatype::address(buf, offset, length)?;
    let mut begun = rg::REQUEST_NULL;
    // SAFETY: the caller guarantees that the buffer has these bytes until the request is complete.
    checked(unsafe { (mode.start)(buf, length, to, tag, route.group(), &mut begun) })?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *request = requests::plain(begun, comm)? };
    Ok(())
}

/// Begins a send of noncontiguous elements.
#[inline(never)]
unsafe fn begin_apart(
    mode: Mode,
    of: &Type,
    buf: *const c_void,
    count: i64,
    (to, tag): (c_int, c_int),
    route: &Route,
    comm: Comm,
) -> Result<Request> {
    let length = of.packed_size(count)?;
    performance::sent(length);
    let group = route.group();
    if to == rg::NONE {
        of.check_buffer(buf, length)?;
        let mut begun = rg::REQUEST_NULL;
        // SAFETY: the length is 0.
        checked(unsafe { (mode.start)(buf, 0, to, tag, group, &mut begun) })?;
        return requests::plain(begun, comm);
    }
    if mode.has_views
        && let Some(views) = transfer::views(of, buf, count)?
    {
        let (first, n) = (views.as_ptr(), views.len() as c_int);
        let mut begun = rg::REQUEST_NULL;
        // SAFETY: the caller guarantees that the elements stay until the request is complete.
        checked(unsafe { rg::rg_isendv(first, n, to, tag, group, &mut begun) })?;
        return requests::plain(begun, comm);
    }
    // SAFETY: the caller guarantees that the elements may be read.
    let packed = unsafe { transfer::packed(of, buf, count)? };
    Apart::send(packed, comm, |bytes, length, begun| {
        // SAFETY: the bytes stay until the request is complete.
        unsafe { (mode.start)(bytes, length, to, tag, group, begun) }
    })
}

/// Most sends have a type of the standard's and an argument that is right each, and their message goes at once. For these nothing is kept over the call of
/// the engine but the place of the request: what a send stores of its own stands in the processor's queue behind lines of the ring that
/// come from another core, so a dozen stores more are half a message more.
#[inline(always)]
pub unsafe fn isend(
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
    request: *mut Request,
) -> Result {
    if let Some(length) = datatype::block_now(datatype, count)
        && let Some((to, group)) = routes::peer_now(comm, dest)
        && tag >= 0
        && !buf.is_null()
        && !request.is_null()
        && !performance::is_counting()
    {
        // SAFETY: the caller guarantees that the buffer has these bytes until the request is complete; a request of the
        // engine's fits where one of MPI's does.
        unsafe {
            let code = rg::rg_isend(buf, length, to, tag, group, request.cast());
            if code == rg::OK && *request.cast::<rg::Request>() == rg::REQUEST_COMPLETE {
                *request = requests::COMPLETE;
                return Ok(());
            }
            return requests::begun(code, comm, request);
        }
    }
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { isend_otherwise(buf, count, datatype, dest, tag, comm, request) }
}

#[inline(never)]
unsafe fn isend_otherwise(
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
    request: *mut Request,
) -> Result {
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { started(STANDARD, buf, count, datatype, dest, tag, comm, request) }
}

alike! {
    pub unsafe fn send, ssend, rsend(
        buf: *const c_void,
        count: i64,
        datatype: Datatype,
        dest: c_int,
        tag: c_int,
        comm: Comm,
    )
        = |mode| blocking(mode, buf, count, datatype, dest, tag, comm),
        of STANDARD, SYNCHRONOUS, READY;

    pub unsafe fn issend, irsend(
        buf: *const c_void,
        count: i64,
        datatype: Datatype,
        dest: c_int,
        tag: c_int,
        comm: Comm,
        request: *mut Request,
    )
        = |mode| started(mode, buf, count, datatype, dest, tag, comm, request),
        of SYNCHRONOUS, READY;
}
