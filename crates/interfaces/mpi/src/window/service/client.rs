//! The client of services: requests to the thread of a target, and the replies to them.

use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::time::Duration;

use regatta_sys as rg;

use super::super::Window;
use super::super::accumulate::Update;
use super::super::targets::Spot;
use super::{
    BUSY, FETCH, FLUSH, GET, HEAD, LOCK_ALONE, LOCK_TOGETHER, PUT, REQUEST, STOP, SWAP,
    UNLOCK_ALONE, UNLOCK_TOGETHER, UPDATE,
};
use crate::abi::*;
use crate::error::{Error, PROC_FAILED, Result, checked};
use crate::progress;

/// Replies have tags from the first one on.
const REPLIES: u32 = 1 << 28;
const FIRST_REPLY: u32 = 16;
/// Bytes of data in a request, and in a reply.
const PART: usize = 1 << 20;
/// Bytes that are sent to a target before it is waited for.
const UNFLUSHED: usize = 32 << 20;

/// A request to a service.
struct Request<'a> {
    what: u64,
    datatype: Datatype,
    op: Op,
    pieces: &'a [(u64, u64)],
    data: &'a [u8],
}

impl Request<'_> {
    fn simple(what: u64) -> Request<'static> {
        Request {
            what,
            datatype: DATATYPE_NULL,
            op: OP_NULL,
            pieces: &[],
            data: &[],
        }
    }

    fn send(&self, window: &Window, rank: c_int, reply: c_int) -> Result {
        let head = [
            self.what,
            reply as u64,
            self.datatype.0 as u64,
            self.op.0 as u64,
            self.pieces.len() as u64,
            self.data.len() as u64,
        ];
        let mut bytes = Vec::with_capacity(8 * HEAD + 16 * self.pieces.len() + self.data.len());
        let numbers = self.pieces.iter().flat_map(|it| [it.0, it.1]);
        for word in head.into_iter().chain(numbers) {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.extend_from_slice(self.data);
        let (address, length) = (bytes.as_ptr().cast(), bytes.len());
        let group = window.comm.hidden;
        // SAFETY: the bytes are read before the call returns.
        checked(unsafe { rg::rg_bsend(address, length, rank, REQUEST, group) })
    }

    /// Sends it, and waits for the reply: a word, and data of at most this length.
    fn ask(&self, window: &Window, rank: c_int, length: usize) -> Result<(u64, Vec<u8>)> {
        let number = window.replies.fetch_add(1, Ordering::Relaxed) % REPLIES;
        let tag = (FIRST_REPLY + number) as c_int;
        let mut bytes = vec![0u8; 8 + length];
        let (address, room) = (bytes.as_mut_ptr().cast(), bytes.len());
        let (group, mut reply) = (window.comm.hidden, rg::REQUEST_NULL);
        // SAFETY: the bytes stay until the request is complete.
        checked(unsafe { rg::rg_irecv(address, room, rank, tag, group, &mut reply) })?;
        if let Err(error) = self.send(window, rank, tag) {
            let mut cancelled = 0;
            // SAFETY: the request of above; the number is written. Then it is complete at once.
            unsafe { rg::rg_cancel(reply, &mut cancelled) };
            progress::wait(reply, &mut rg::Status::default());
            return Err(error);
        }
        checked(progress::wait(reply, &mut rg::Status::default()))?;
        let data = bytes.split_off(8);
        let word = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        match word {
            0 | BUSY => Ok((word, data)),
            class => Err(refused(rank, class as c_int)),
        }
    }
}

#[cold]
fn refused(rank: c_int, class: c_int) -> Error {
    let text = match class {
        ERR_RMA_RANGE => format!("process {rank} has attached no memory at this address"),
        PROC_FAILED => {
            format!("a process has ended while it held a lock of process {rank}; free the window")
        }
        _ => format!("process {rank} could not do it (error {class})"),
    };
    Error::new(class, text)
}

/// Calls for each part of a spot's bytes that one request has, of whole elements of this size.
fn parts(length: usize, element: usize, mut act: impl FnMut(usize, usize) -> Result) -> Result {
    let step = (PART / element.max(1)).max(1) * element.max(1);
    let mut from = 0;
    while from < length {
        let to = length.min(from + step);
        act(from, to)?;
        from = to;
    }
    Ok(())
}

/// Packed bytes go to a target.
///
/// # Safety
/// As many bytes as the spot has may be read.
pub unsafe fn put(window: &Window, spot: &Spot<'_>, bytes: *const u8) -> Result {
    parts(spot.elements.length(), 1, |from, to| {
        let request = Request {
            pieces: &spot.pieces(from, to),
            // SAFETY: the caller's promise.
            data: unsafe { std::slice::from_raw_parts(bytes.add(from), to - from) },
            ..Request::simple(PUT)
        };
        leave(window, spot, &request)
    })
}

/// The bytes of a target, packed.
///
/// # Safety
/// As many bytes as the spot has may be written.
pub unsafe fn get(window: &Window, spot: &Spot<'_>, bytes: *mut u8) -> Result {
    parts(spot.elements.length(), 1, |from, to| {
        let request = Request {
            pieces: &spot.pieces(from, to),
            ..Request::simple(GET)
        };
        let (_, data) = request.ask(window, spot.target.rank, to - from)?;
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), bytes.add(from), to - from) };
        Ok(())
    })
}

/// Updates elements of a target.
///
/// # Safety
/// `input` has as many bytes as the spot, unless the operator needs none; `old`, if it is not null, room for them.
pub unsafe fn update(
    window: &Window,
    spot: &Spot<'_>,
    update: &Update,
    input: *const u8,
    old: *mut u8,
) -> Result {
    let rank = spot.target.rank;
    parts(spot.elements.length(), update.size, |from, to| {
        let data = match update.op {
            NO_OP => &[],
            // SAFETY: the caller's promise.
            _ => unsafe { std::slice::from_raw_parts(input.add(from), to - from) },
        };
        let request = Request {
            what: if old.is_null() { UPDATE } else { FETCH },
            datatype: update.datatype,
            op: update.op,
            pieces: &spot.pieces(from, to),
            data,
        };
        if old.is_null() {
            return leave(window, spot, &request);
        }
        let (_, data) = request.ask(window, rank, to - from)?;
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), old.add(from), to - from) };
        Ok(())
    })
}

/// Replaces an element of a target's if it has a value.
///
/// # Safety
/// All three have as many bytes as the spot.
pub unsafe fn swap(
    window: &Window,
    spot: &Spot<'_>,
    given: *const u8,
    compared: *const u8,
    old: *mut u8,
) -> Result {
    let size = spot.elements.length();
    // SAFETY: the caller's promise.
    let data = unsafe {
        let given = std::slice::from_raw_parts(given, size);
        [given, std::slice::from_raw_parts(compared, size)].concat()
    };
    let request = Request {
        pieces: &spot.pieces(0, size),
        data: &data,
        ..Request::simple(SWAP)
    };
    let (_, before) = request.ask(window, spot.target.rank, size)?;
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(before.as_ptr(), old, size) };
    Ok(())
}

/// Sends a request without a reply. Now and then the target is waited for: what it has not served yet lies in memory.
fn leave(window: &Window, spot: &Spot<'_>, request: &Request<'_>) -> Result {
    let target = spot.target;
    request.send(window, target.rank, 0)?;
    target.sent.fetch_add(1, Ordering::AcqRel);
    let length = request.data.len();
    match target.bytes.fetch_add(length, Ordering::Relaxed) + length > UNFLUSHED {
        true => flush(window, target.rank),
        false => Ok(()),
    }
}

/// Waits until all that was sent to a target has happened there.
pub fn flush(window: &Window, rank: c_int) -> Result {
    let target = &window.targets[rank as usize];
    let sent = target.sent.load(Ordering::Acquire);
    if target.flushed.load(Ordering::Acquire) >= sent {
        return Ok(());
    }
    target.bytes.store(0, Ordering::Relaxed);
    let flushed = Request::simple(FLUSH).ask(window, rank, 0);
    // Requests that have failed are not waited for again.
    target.flushed.fetch_max(sent, Ordering::AcqRel);
    flushed.map(drop)
}

/// Takes the lock of a target on another host.
pub fn lock(window: &Window, rank: c_int, exclusive: bool) -> Result {
    let what = if exclusive { LOCK_ALONE } else { LOCK_TOGETHER };
    let mut pause = Duration::from_micros(20);
    while Request::simple(what).ask(window, rank, 0)?.0 == BUSY {
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(2));
    }
    Ok(())
}

/// Gives it back.
pub fn unlock(window: &Window, rank: c_int, exclusive: bool) -> Result {
    let what = if exclusive {
        UNLOCK_ALONE
    } else {
        UNLOCK_TOGETHER
    };
    Request::simple(what).send(window, rank, 0)
}

/// Ends this process' own service.
pub fn stop(window: &Window) {
    // If the engine refuses, it has ended, and so has the service.
    let _ = Request::simple(STOP).send(window, window.comm.rank, 0);
}
