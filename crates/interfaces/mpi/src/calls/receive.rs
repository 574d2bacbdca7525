//! Receives, blocking and nonblocking.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use regatta_sys as rg;

use crate::abi::*;
use crate::communicator::{Route, route, routes};
use crate::datatype::transfer::{self, Apart};
use crate::datatype::{self, Block, Type};
use crate::error::{Error, Result, checked, not_null};
use crate::progress;
use crate::requests;
use crate::tools::performance;

/// Returns the engine's tag for the tag of a receive.
#[inline(always)]
pub(crate) fn wanted_tag(tag: c_int) -> Result<c_int> {
    match tag {
        0.. => Ok(tag),
        ANY_TAG => Ok(rg::ANY),
        _ => Err(bad_tag(tag)),
    }
}

#[cold]
fn bad_tag(tag: c_int) -> Error {
    let text = format!("the tag is {tag}; tags are 0 to 2147483647, or MPI_ANY_TAG");
    Error::new(ERR_TAG, text)
}

pub unsafe fn recv(
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    status: *mut Status,
) -> Result {
    let route = route(comm)?;
    let from = route.source(source)?;
    let tag = wanted_tag(tag)?;
    performance::receives();
    let (offset, length) = match datatype::block(datatype, count)? {
        Block::Plain { offset, length } => (offset, length),
        Block::Layout(of) => {
            // SAFETY: the caller upholds the safety contract of this function.
            return unsafe { apart(&of, buf, count, (from, tag), route, status) };
        }
    };
    let buf = datatype::address(buf, offset, length)?;
    let mut got = rg::Status::default();
    // SAFETY: the caller guarantees that the buffer has room for this many bytes.
    let code = unsafe { into_block(buf, length, (from, tag), route, &mut got) };
    if code == rg::OK || code == rg::ERR_TRUNCATED {
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { route.status(&got).store(status) };
    }
    checked(code)
}

/// Receives into contiguous memory, from this source with this tag.
#[inline(always)]
unsafe fn into_block(
    buf: *mut c_void,
    length: usize,
    (from, tag): (c_int, c_int),
    route: &Route,
    got: &mut rg::Status,
) -> c_int {
    if progress::is_idle() {
        // SAFETY: the caller upholds the safety contract of this function.
        return unsafe { rg::rg_recv(buf, length, from, tag, route.group(), got) };
    }
    let mut request = rg::REQUEST_NULL;
    // SAFETY: the caller upholds the safety contract of this function, until the receive is complete, which is awaited
    // here.
    match unsafe { rg::rg_irecv(buf, length, from, tag, route.group(), &mut request) } {
        rg::OK => progress::wait(request, got),
        code => code,
    }
}

/// Receives noncontiguous elements.
#[inline(never)]
unsafe fn apart(
    of: &Type,
    buf: *mut c_void,
    count: i64,
    (from, tag): (c_int, c_int),
    route: &Route,
    status: *mut Status,
) -> Result {
    let mut got = rg::Status::default();
    let code = match transfer::views(of, buf, count)? {
        // SAFETY: the caller upholds the safety contract of this function.
        Some(views) => unsafe { into_views(&views, (from, tag), route, &mut got) },
        // SAFETY: the caller upholds the safety contract of this function; the memory has this many received bytes.
        None => unsafe {
            let length = of.packed_size(count)?;
            let mut bytes = datatype::memory(length)?;
            let place = bytes.as_mut_ptr().cast();
            let code = into_block(place, length, (from, tag), route, &mut got);
            if code == rg::OK || code == rg::ERR_TRUNCATED {
                of.unpack(bytes.as_ptr(), 0, length.min(got.length), buf);
            }
            code
        },
    };
    if code == rg::OK || code == rg::ERR_TRUNCATED {
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { route.status(&got).store(status) };
    }
    checked(code)
}

unsafe fn into_views(
    views: &[rg::View],
    (from, tag): (c_int, c_int),
    route: &Route,
    got: &mut rg::Status,
) -> c_int {
    let (first, n) = (views.as_ptr(), views.len() as c_int);
    if progress::is_idle() {
        // SAFETY: the caller upholds the safety contract of this function.
        return unsafe { rg::rg_recvv(first, n, from, tag, route.group(), got) };
    }
    let mut request = rg::REQUEST_NULL;
    // SAFETY: the caller upholds the safety contract of this function, until the receive is complete, which is awaited
    // here.
    match unsafe { rg::rg_irecvv(first, n, from, tag, route.group(), &mut request) } {
        rg::OK => progress::wait(request, got),
        code => code,
    }
}

/// Begins a receive. Fast path: predefined datatype, one source and one tag, as in most receives.
#[inline(always)]
pub unsafe fn irecv(
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    request: *mut Request,
) -> Result {
    if let Some(length) = datatype::block_now(datatype, count)
        && let Some((from, group)) = routes::peer_now(comm, source)
        && tag >= 0
        && !buf.is_null()
        && !request.is_null()
        && !performance::is_counting()
    {
        // SAFETY: the caller guarantees that the buffer has room for this many bytes until the request is complete; a
        // request of the engine's fits where one of MPI's does.
        unsafe {
            let code = rg::rg_irecv(buf, length, from, tag, group, request.cast());
            return requests::begun(code, comm, request);
        }
    }
    // SAFETY: the caller upholds the safety contract of this function.
    unsafe { irecv_otherwise(buf, count, datatype, source, tag, comm, request) }
}

#[inline(never)]
unsafe fn irecv_otherwise(
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    comm: Comm,
    request: *mut Request,
) -> Result {
    let route = route(comm)?;
    let from = route.source(source)?;
    let tag = wanted_tag(tag)?;
    not_null(request, "request")?;
    performance::receives();
    let (offset, length) = match datatype::block(datatype, count)? {
        Block::Plain { offset, length } => (offset, length),
        Block::Layout(of) => {
            // SAFETY: the caller upholds the safety contract of this function.
            let begun = unsafe { begin_apart(of, buf, count, (from, tag), route, comm)? };
            // SAFETY: the caller guarantees that the pointer is valid.
            unsafe { *request = begun };
            return Ok(());
        }
    };
    let buf = datatype::address(buf, offset, length)?;
    let mut begun = rg::REQUEST_NULL;
    // SAFETY: the caller guarantees that the buffer has room for this many bytes until the request is complete.
    checked(unsafe { rg::rg_irecv(buf, length, from, tag, route.group(), &mut begun) })?;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *request = requests::plain(begun, comm)? };
    Ok(())
}

/// Begins to receive noncontiguous elements.
#[inline(never)]
unsafe fn begin_apart(
    of: Arc<Type>,
    buf: *mut c_void,
    count: i64,
    (from, tag): (c_int, c_int),
    route: &Route,
    comm: Comm,
) -> Result<Request> {
    let group = route.group();
    if let Some(views) = transfer::views(&of, buf, count)? {
        let (first, n) = (views.as_ptr(), views.len() as c_int);
        let mut begun = rg::REQUEST_NULL;
        // SAFETY: the caller guarantees that the elements may be written until the request is complete.
        checked(unsafe { rg::rg_irecvv(first, n, from, tag, group, &mut begun) })?;
        return requests::plain(begun, comm);
    }
    // SAFETY: the caller guarantees that the elements may be written until the request is complete; the memory stays as
    // long.
    unsafe {
        Apart::receive(of, buf, count, comm, |place, length, begun| {
            rg::rg_irecv(place, length, from, tag, group, begun)
        })
    }
}
