//! The service of a window: a thread of each process that acts on its memory for processes that cannot reach it.
//!
//! Requests are messages in the window's hidden group. A target serves those of one process in their order: a reply to a
//! flush tells that all before it has happened, and the first error of it. A lock that somebody has is refused, and asked for again:
//! the service waits for nobody.

use std::collections::HashMap;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use regatta_sys as rg;

use super::Window;
use super::accumulate::{Update, swap_here};
use super::targets::Spot;
use crate::abi::*;
use crate::error::{Error, PROC_FAILED, Result, checked};
use crate::progress;

/// Requests have this tag; replies have those from the next one on.
const REQUEST: c_int = 1;
const REPLIES: u32 = 1 << 28;
const FIRST_REPLY: u32 = 16;
/// Bytes of data in a request, and in a reply.
const PART: usize = 1 << 20;
/// Bytes that are sent to a target before it is waited for.
const UNFLUSHED: usize = 32 << 20;

/// Words of a request's head: what, the reply's tag, datatype, operator, pieces, bytes of data.
const HEAD: usize = 6;

const PUT: u64 = 1;
const GET: u64 = 2;
const UPDATE: u64 = 3;
const FETCH: u64 = 4;
const SWAP: u64 = 5;
const FLUSH: u64 = 6;
const LOCK_ALONE: u64 = 7;
const LOCK_TOGETHER: u64 = 8;
const UNLOCK_ALONE: u64 = 9;
const UNLOCK_TOGETHER: u64 = 10;
const STOP: u64 = 11;

/// The answer to a lock that somebody has.
const BUSY: u64 = u64::MAX;

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

/// Begins to serve this process' memory.
pub fn start(window: Arc<Window>) -> Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("window".to_owned());
    thread.spawn(move || serve(&window)).map_err(|why| {
        let text = format!("the thread that serves a window cannot be started: {why}");
        Error::new(ERR_OTHER, text)
    })
}

/// Ends that.
pub fn stop(window: &Window) {
    // If the engine refuses, it has ended, and so has the service.
    let _ = Request::simple(STOP).send(window, window.comm.rank, 0);
}

/// The state of a service.
#[derive(Default)]
struct Served {
    /// The first error of requests of each process that have no reply.
    errors: HashMap<c_int, c_int>,
    /// Refused locks: holders are looked at now and then.
    refused: u32,
}

fn serve(window: &Window) {
    let mut served = Served::default();
    loop {
        match receive(window) {
            Ok((source, words, data)) => {
                if words[0] == STOP {
                    return;
                }
                let (answer, reply) = served.act(window, source, &words, &data);
                if words[1] != 0 {
                    let mut bytes = answer.to_ne_bytes().to_vec();
                    bytes.extend_from_slice(&reply);
                    let (address, length) = (bytes.as_ptr().cast(), bytes.len());
                    let (tag, group) = (words[1] as c_int, window.comm.hidden);
                    // SAFETY: the bytes are read before the call returns. Who has died meanwhile needs no reply.
                    unsafe { rg::rg_bsend(address, length, source, tag, group) };
                }
            }
            // A process has left without freeing the window, which MPI forbids: the others are served still.
            Err(rg::ERR_LEFT) => std::thread::sleep(Duration::from_millis(1)),
            Err(rg::ERR_DEAD) => {
                let mut dead = 0;
                // SAFETY: the number is written.
                if unsafe { rg::rg_acknowledge_dead(window.comm.hidden, &mut dead) } < 0 {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

/// The next request: who sent it, its words, its data.
fn receive(window: &Window) -> std::result::Result<(c_int, Vec<u64>, Vec<u8>), c_int> {
    let (mut message, mut status) = (rg::MESSAGE_NULL, rg::Status::default());
    let group = window.comm.hidden;
    // SAFETY: both are written.
    let code = unsafe { rg::rg_mprobe(rg::ANY, REQUEST, group, &mut message, &mut status) };
    if code < 0 {
        return Err(code);
    }
    let mut bytes = vec![0u8; status.length];
    // SAFETY: there is so much memory.
    let code = unsafe {
        rg::rg_mrecv(
            &mut message,
            bytes.as_mut_ptr().cast(),
            bytes.len(),
            &mut status,
        )
    };
    if code < 0 {
        return Err(code);
    }
    let word = |index: usize| {
        let bytes = bytes.get(8 * index..8 * index + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    let pieces = word(4).unwrap_or(0) as usize;
    let count = (HEAD + 2 * pieces).min(bytes.len() / 8);
    let words: Vec<u64> = (0..count).filter_map(word).collect();
    let data = bytes[8 * count..].to_vec();
    match count < HEAD {
        true => Err(rg::ERR_TRUNCATED),
        false => Ok((status.source, words, data)),
    }
}

impl Served {
    /// Does what is asked: the first word of the reply, and its data.
    fn act(
        &mut self,
        window: &Window,
        source: c_int,
        words: &[u64],
        data: &[u8],
    ) -> (u64, Vec<u8>) {
        match self.try_act(window, source, words, data) {
            Ok(done) => done,
            Err(error) => {
                if words[1] == 0 {
                    self.errors.entry(source).or_insert(error.class());
                }
                (error.class() as u64, Vec::new())
            }
        }
    }

    /// A flush, or a lock: the word of the reply.
    fn control(&mut self, window: &Window, source: c_int, what: u64) -> Result<u64> {
        let locks = window.locks();
        let place = locks.place(window.comm.rank).unwrap_or(0);
        match what {
            FLUSH => Ok(self.errors.remove(&source).unwrap_or(SUCCESS) as u64),
            LOCK_ALONE | LOCK_TOGETHER => {
                if locks.try_lock(place, source, what == LOCK_ALONE) {
                    return Ok(0);
                }
                self.refused = self.refused.wrapping_add(1);
                if self.refused.is_multiple_of(64) {
                    locks.check_holders(place)?;
                }
                Ok(BUSY)
            }
            UNLOCK_ALONE | UNLOCK_TOGETHER => {
                locks.unlock(place, source, what == UNLOCK_ALONE);
                Ok(0)
            }
            _ => Err(Error::new(ERR_INTERN, "the request is none")),
        }
    }

    fn try_act(
        &mut self,
        window: &Window,
        source: c_int,
        words: &[u64],
        data: &[u8],
    ) -> Result<(u64, Vec<u8>)> {
        if words[0] >= FLUSH {
            let word = self.control(window, source, words[0])?;
            return Ok((word, Vec::new()));
        }
        let place = window.locks().place(window.comm.rank).unwrap_or(0);
        let pieces: Vec<(u64, u64)> = words[HEAD..]
            .chunks_exact(2)
            .map(|it| (it[0], it[1]))
            .collect();
        if !pieces.iter().all(|it| window.allows(it.0, it.1)) {
            return Err(Error::new(ERR_RMA_RANGE, "no memory of the window"));
        }
        let length: usize = pieces.iter().map(|it| it.1 as usize).sum();
        let mut reply = Vec::new();
        // SAFETY: the program lets others reach memory of the window, and lengths are looked at.
        unsafe {
            match words[0] {
                PUT if data.len() >= length => copy_out(&pieces, data),
                GET => reply = copy_in(&pieces, length),
                UPDATE | FETCH => {
                    let update = Update::new(Op(words[3] as usize), Datatype(words[2] as usize))?;
                    if update.op != NO_OP && data.len() < length || update.size == 0 {
                        return Err(Error::new(ERR_INTERN, "the request has too few bytes"));
                    }
                    let mut old = null_mut();
                    if words[0] == FETCH {
                        reply = vec![0; length];
                        old = reply.as_mut_ptr();
                    }
                    update.here(window, place, &pieces, data.as_ptr(), old)?;
                }
                SWAP if data.len() >= 2 * length && pieces.len() == 1 => {
                    reply = vec![0; length];
                    let (given, compared) = (data.as_ptr(), data[length..].as_ptr());
                    let at = (pieces[0].0, length);
                    swap_here(window, place, at, given, compared, reply.as_mut_ptr(), None)?;
                }
                _ => return Err(Error::new(ERR_INTERN, "the request is none")),
            }
        }
        Ok((0, reply))
    }
}

/// # Safety
/// The pieces may be written; the data has as many bytes.
unsafe fn copy_out(pieces: &[(u64, u64)], data: &[u8]) {
    let mut data = data;
    for &(address, length) in pieces {
        let (now, later) = data.split_at(length as usize);
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy(now.as_ptr(), address as *mut u8, now.len()) };
        data = later;
    }
}

/// # Safety
/// The pieces may be read, and have so many bytes.
unsafe fn copy_in(pieces: &[(u64, u64)], length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    for &(address, length) in pieces {
        // SAFETY: the caller's promise.
        bytes.extend_from_slice(unsafe {
            std::slice::from_raw_parts(address as *const u8, length as usize)
        });
    }
    bytes
}
