//! Combined sends and receives.

use std::ffi::{c_int, c_void};

use regatta_sys as rg;

use super::completion::wait_for;
use super::receive::{irecv, wanted_tag};
use super::send::{check_tag, isend};
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::{Route, route};
use crate::datatype::{self, Block, Staging};
use crate::error::{Result, checked};
use crate::progress;
use crate::requests::{self, Pair, dissolve};

pub unsafe fn sendrecv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    source: c_int,
    recvtag: c_int,
    comm: Comm,
    status: *mut Status,
) -> Result {
    let route = route(comm)?;
    let (to, from) = (route.destination(dest)?, route.source(source)?);
    check_tag(sendtag)?;
    let tag = wanted_tag(recvtag)?;
    if let (Block::Plain { offset, length }, true) =
        (datatype::block(sendtype, sendcount)?, progress::is_idle())
        && let Block::Plain {
            offset: at,
            length: room,
        } = datatype::block(recvtype, recvcount)?
    {
        let out = datatype::address(sendbuf, offset, length)?;
        let into = datatype::address(recvbuf, at, room)?;
        let sent = (out.cast_const(), length, to, sendtag);
        // SAFETY: the caller guarantees that the buffers and the pointer are valid.
        return unsafe { plain(route, sent, (into, room, from, tag), status) };
    }
    let mut request = REQUEST_NULL;
    // SAFETY: the caller guarantees that the buffers are valid for their elements.
    unsafe {
        isendrecv(
            sendbuf,
            sendcount,
            sendtype,
            dest,
            sendtag,
            recvbuf,
            recvcount,
            recvtype,
            source,
            recvtag,
            comm,
            (&mut request).into(),
        )?;
        let (found, result) = wait_for(&mut request)?;
        found.store(status);
        result
    }
}

/// Sends and receives at once. Both blocks are contiguous; each is given by address, length, peer and tag.
#[inline(always)]
unsafe fn plain(
    route: &Route,
    (out, length, to, sendtag): (*const c_void, usize, c_int, c_int),
    (into, room, from, tag): (*mut c_void, usize, c_int, c_int),
    status: *mut Status,
) -> Result {
    let (group, mut got) = (route.group(), rg::Status::default());
    // SAFETY: the caller guarantees that the buffers are valid; the call may write `got`.
    let code = unsafe {
        rg::rg_sendrecv(
            out, length, to, sendtag, into, room, from, tag, group, &mut got,
        )
    };
    if code == rg::OK || code == rg::ERR_TRUNCATED {
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { route.status(&got).store(status) };
    }
    checked(code)
}

pub unsafe fn isendrecv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    source: c_int,
    recvtag: c_int,
    comm: Comm,
    request: Out<Request>,
) -> Result {
    // All arguments of both halves are checked before either begins.
    route(comm)?.destination(dest)?;
    check_tag(sendtag)?;
    datatype::block(sendtype, sendcount)?;
    let (mut receive, mut send) = (REQUEST_NULL, REQUEST_NULL);
    // SAFETY: the caller guarantees that the buffers are valid for their elements.
    unsafe {
        irecv(
            recvbuf,
            recvcount,
            recvtype,
            source,
            recvtag,
            comm,
            &mut receive,
        )?;
        isend(sendbuf, sendcount, sendtype, dest, sendtag, comm, &mut send)?;
    }
    let pair = Pair::new([dissolve(send)?, dissolve(receive)?], None);
    request.put(requests::of_operation(Box::new(pair), comm)?);
    Ok(())
}

pub unsafe fn sendrecv_replace(
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: Comm,
    status: *mut Status,
) -> Result {
    let mut request = REQUEST_NULL;
    // SAFETY: the caller guarantees that the buffer is valid for its elements.
    unsafe {
        isendrecv_replace(
            buf,
            count,
            datatype,
            dest,
            sendtag,
            source,
            recvtag,
            comm,
            (&mut request).into(),
        )?;
        let (found, result) = wait_for(&mut request)?;
        found.store(status);
        result
    }
}

pub unsafe fn isendrecv_replace(
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: Comm,
    request: Out<Request>,
) -> Result {
    route(comm)?.destination(dest)?;
    check_tag(sendtag)?;
    // SAFETY: the caller guarantees that the buffer is valid, whose bytes are copied here.
    let copy: Vec<u8> = unsafe {
        let from = match dest {
            PROC_NULL => Staging::output(buf, count, datatype)?,
            _ => Staging::input(buf, count, datatype)?,
        };
        match from.length() {
            0 => Vec::new(),
            _ if dest == PROC_NULL => Vec::new(),
            length => std::slice::from_raw_parts(from.address().cast::<u8>(), length).to_vec(),
        }
    };
    let (mut receive, mut send) = (REQUEST_NULL, REQUEST_NULL);
    // SAFETY: the caller guarantees that the buffer is valid; the copy lives until both are complete.
    unsafe {
        irecv(buf, count, datatype, source, recvtag, comm, &mut receive)?;
        let (address, length) = (copy.as_ptr().cast(), copy.len() as i64);
        isend(address, length, BYTE, dest, sendtag, comm, &mut send)?;
    }
    let after = Box::new(move || drop(copy));
    let pair = Pair::new([dissolve(send)?, dissolve(receive)?], Some(after));
    request.put(requests::of_operation(Box::new(pair), comm)?);
    Ok(())
}
