//! The client of services: sends requests to the thread of a target, and receives the replies.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::time::Duration;

use regatta_sys as rg;

use super::super::accumulate::Update;
use super::super::pieces::{Pieces, parts};
use super::super::targets::Spot;
use super::super::{Reach, Window};
use super::mailbox::{Letter, Whom};
use super::{
    BUSY, FETCH, FLUSH, GET, HEAD, LOCK_ALONE, LOCK_TOGETHER, PUT, REQUEST, STOP, SWAP,
    UNLOCK_ALONE, UNLOCK_TOGETHER, UPDATE,
};
use crate::abi::*;
use crate::error::{Error, PROC_FAILED, Result, checked};
use crate::progress;

/// Number of tags of replies, beginning with `FIRST_REPLY`.
const REPLIES: u32 = 1 << 28;
const FIRST_REPLY: u32 = 16;
/// Maximum number of data bytes in a request or a reply.
const PART: usize = 1 << 20;
/// Maximum number of bytes that are sent to a target before a flush.
const UNFLUSHED: usize = 32 << 20;

/// A request to a service.
struct Request<'a> {
    what: u64,
    datatype: Datatype,
    op: Op,
    pieces: &'a Pieces,
    data: &'a [u8],
    /// Whether it must be served. Otherwise it is withdrawn if it is not served at once.
    needed: bool,
}

/// Memory for the data of a reply: address and length in bytes.
type Room = (*mut u8, usize);
const NO_ROOM: Room = (null_mut(), 0);

impl Request<'_> {
    fn simple(what: u64) -> Request<'static> {
        const NOWHERE: &Pieces = &Pieces::none();
        Request {
            what,
            datatype: DATATYPE_NULL,
            op: OP_NULL,
            pieces: NOWHERE,
            data: &[],
            needed: true,
        }
    }

    /// Returns the words before the data.
    fn words(&self, reply: c_int) -> Vec<u64> {
        let mut words = Vec::with_capacity(HEAD + 1 + 5 * self.pieces.count());
        words.extend([
            self.what,
            reply as u64,
            self.datatype.0 as u64,
            self.op.0 as u64,
            0,
            self.data.len() as u64,
        ]);
        self.pieces.write(&mut words);
        words[4] = (words.len() - HEAD) as u64;
        words
    }

    fn send(&self, window: &Window, rank: c_int, reply: c_int) -> Result {
        let words = self.words(reply);
        let mut bytes = Vec::with_capacity(size_of_val(&words[..]) + self.data.len());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend_from_slice(self.data);
        let (address, length) = (bytes.as_ptr().cast(), bytes.len());
        let group = window.comm.hidden;
        // SAFETY: the bytes are valid, and the call copies them before it returns.
        checked(unsafe { rg::rg_bsend(address, length, rank, REQUEST, group) })
    }

    /// Sends it and waits for the reply. Returns the reply's word, and writes its data to `room`. Returns `None` if the
    /// request was withdrawn.
    fn ask(&self, window: &Window, rank: c_int, room: Room) -> Result<Option<u64>> {
        let target = &window.targets[rank as usize];
        let word = match target.reach {
            Reach::Copied(process) => {
                let whom = Whom {
                    window,
                    rank,
                    process,
                };
                let letter = Letter {
                    words: &self.words(0),
                    data: self.data,
                    room,
                    needed: self.needed,
                };
                // SAFETY: the caller guarantees that `room` has this length.
                match unsafe { target.mailbox.ask(whom, letter)? } {
                    Some(class) => class as u64,
                    None => return Ok(None),
                }
            }
            _ => self.ask_by_message(window, rank, room)?,
        };
        match word {
            0 | BUSY => Ok(Some(word)),
            class => Err(refused(rank, class as c_int)),
        }
    }

    fn ask_by_message(&self, window: &Window, rank: c_int, (to, length): Room) -> Result<u64> {
        let number = window.replies.fetch_add(1, Ordering::Relaxed) % REPLIES;
        let tag = (FIRST_REPLY + number) as c_int;
        let mut bytes = vec![0u8; 8 + length];
        let (address, room) = (bytes.as_mut_ptr().cast(), bytes.len());
        let (group, mut reply) = (window.comm.hidden, rg::REQUEST_NULL);
        // SAFETY: the bytes stay until the request is complete.
        checked(unsafe { rg::rg_irecv(address, room, rank, tag, group, &mut reply) })?;
        if let Err(error) = self.send(window, rank, tag) {
            let mut cancelled = 0;
            // SAFETY: the engine checks requests at each use; the call may write the number. Afterwards the request is
            // complete.
            unsafe { rg::rg_cancel(reply, &mut cancelled) };
            progress::wait(reply, &mut rg::Status::default());
            return Err(error);
        }
        checked(progress::wait(reply, &mut rg::Status::default()))?;
        let (word, data) = bytes.split_at(8);
        let word = u64::from_ne_bytes(word.try_into().unwrap_or_default());
        if word == 0 && length != 0 {
            // SAFETY: the caller guarantees that `room` has this length.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, length) };
        }
        Ok(word)
    }
}

#[cold]
fn refused(rank: c_int, class: c_int) -> Error {
    let text = match class {
        ERR_RMA_RANGE => format!("process {rank} has attached no memory at this address"),
        PROC_FAILED => {
            format!("a process has ended while it held a lock of process {rank}; free the window")
        }
        _ => format!("the access failed at process {rank} (error {class})"),
    };
    Error::new(class, text)
}

/// Maximum length in bytes of a request that may be withdrawn; such a request is tried before the kernel copies the
/// bytes.
const MAX_TRIED_REQUEST_BYTES: usize = 1024;

/// Accesses the memory of a process on this host in the cheaper way. `ask` sends a request, and returns false if it was
/// withdrawn. `copy` lets the kernel copy the blocks.
pub fn by_either(
    spot: &Spot<'_>,
    process: c_int,
    ask: impl FnOnce(&Pieces, bool) -> Result<bool>,
    copy: impl FnOnce(&Pieces) -> Result,
) -> Result {
    let length = spot.elements.length();
    let (pieces, mailbox) = (spot.pieces(0, length), &spot.target.mailbox);
    let needed = pieces.are_scattered(mailbox.blocks_to_copy());
    let asks_first = match needed {
        true => mailbox.is_open(process),
        false => length <= MAX_TRIED_REQUEST_BYTES && mailbox.is_attended(process),
    };
    match asks_first && ask(&pieces, needed)? {
        true => Ok(()),
        false => copy(&pieces),
    }
}

/// Calls `act` for each part of a spot that fits into one request. Parts consist of whole elements. `pieces` are those
/// of the whole spot.
fn each_part(
    spot: &Spot<'_>,
    element: usize,
    pieces: &Pieces,
    mut act: impl FnMut(&Pieces, usize, usize) -> Result<bool>,
) -> Result<bool> {
    let length = spot.elements.length();
    if length <= PART {
        return act(pieces, 0, length);
    }
    let part = |from, to| act(&spot.pieces(from, to), from, to).map(drop);
    parts(length, element, PART, part)?;
    Ok(true)
}

/// Writes packed bytes to a target. This and the following functions return false if the request was withdrawn because
/// it is not `needed`; then nothing has happened.
///
/// # Safety
/// `bytes` is valid for reads of as many bytes as the spot has.
pub unsafe fn put(
    window: &Window,
    spot: &Spot<'_>,
    (pieces, needed): (&Pieces, bool),
    bytes: *const u8,
) -> Result<bool> {
    each_part(spot, 1, pieces, |pieces, from, to| {
        let request = Request {
            pieces,
            // SAFETY: the caller upholds the safety contract of this function.
            data: unsafe { std::slice::from_raw_parts(bytes.add(from), to - from) },
            needed,
            ..Request::simple(PUT)
        };
        leave(window, spot, &request)
    })
}

/// Reads the bytes of a target, packed.
///
/// # Safety
/// `bytes` is valid for writes of as many bytes as the spot has.
pub unsafe fn get(
    window: &Window,
    spot: &Spot<'_>,
    (pieces, needed): (&Pieces, bool),
    bytes: *mut u8,
) -> Result<bool> {
    each_part(spot, 1, pieces, |pieces, from, to| {
        let request = Request {
            pieces,
            needed,
            ..Request::simple(GET)
        };
        let room = (bytes.wrapping_add(from), to - from);
        let got = request.ask(window, spot.target.rank, room)?;
        Ok(got.is_some())
    })
}

/// Updates elements of a target.
///
/// # Safety
/// `input` is valid for reads of as many bytes as the spot has, unless the operator is MPI_NO_OP. `old` is null or
/// valid for writes of as many.
pub unsafe fn update(
    window: &Window,
    spot: &Spot<'_>,
    (pieces, needed): (&Pieces, bool),
    update: &Update,
    input: *const u8,
    old: *mut u8,
) -> Result<bool> {
    each_part(spot, update.size, pieces, |pieces, from, to| {
        let data = match update.op {
            NO_OP => &[],
            // SAFETY: the caller upholds the safety contract of this function.
            _ => unsafe { std::slice::from_raw_parts(input.add(from), to - from) },
        };
        let request = Request {
            what: if old.is_null() { UPDATE } else { FETCH },
            datatype: update.datatype,
            op: update.op,
            pieces,
            data,
            needed,
        };
        if old.is_null() {
            return leave(window, spot, &request);
        }
        let room = (old.wrapping_add(from), to - from);
        let updated = request.ask(window, spot.target.rank, room)?;
        Ok(updated.is_some())
    })
}

/// Replaces an element of a target if it equals `compared`.
///
/// # Safety
/// All three pointers are valid for as many bytes as the spot has.
pub unsafe fn swap(
    window: &Window,
    spot: &Spot<'_>,
    (pieces, needed): (&Pieces, bool),
    given: *const u8,
    compared: *const u8,
    old: *mut u8,
) -> Result<bool> {
    let size = spot.elements.length();
    // SAFETY: the caller upholds the safety contract of this function.
    let data = unsafe {
        let given = std::slice::from_raw_parts(given, size);
        [given, std::slice::from_raw_parts(compared, size)].concat()
    };
    let request = Request {
        pieces,
        data: &data,
        needed,
        ..Request::simple(SWAP)
    };
    let swapped = request.ask(window, spot.target.rank, (old, size))?;
    Ok(swapped.is_some())
}

/// Sends a request whose reply has no data. If it is sent as a message, there is no reply at all. The target is then
/// flushed from time to time, because requests that it has not served yet take memory.
fn leave(window: &Window, spot: &Spot<'_>, request: &Request<'_>) -> Result<bool> {
    let target = spot.target;
    if let Reach::Copied(_) = target.reach {
        let served = request.ask(window, target.rank, NO_ROOM)?;
        return Ok(served.is_some());
    }
    request.send(window, target.rank, 0)?;
    target.sent.fetch_add(1, Ordering::AcqRel);
    let length = request.data.len();
    if target.bytes.fetch_add(length, Ordering::Relaxed) + length > UNFLUSHED {
        flush(window, target.rank)?;
    }
    Ok(true)
}

/// Waits until everything that was sent to a target is complete there.
pub fn flush(window: &Window, rank: c_int) -> Result {
    let target = &window.targets[rank as usize];
    let sent = target.sent.load(Ordering::Acquire);
    if target.flushed.load(Ordering::Acquire) >= sent {
        return Ok(());
    }
    target.bytes.store(0, Ordering::Relaxed);
    let flushed = Request::simple(FLUSH).ask(window, rank, NO_ROOM);
    // Failed requests are not waited for again.
    target.flushed.fetch_max(sent, Ordering::AcqRel);
    flushed.map(drop)
}

/// Takes the passive-target lock of a target on another host, waiting until it is free.
pub fn lock(window: &Window, rank: c_int, exclusive: bool) -> Result {
    let what = if exclusive { LOCK_ALONE } else { LOCK_TOGETHER };
    let mut pause = Duration::from_micros(20);
    while Request::simple(what).ask(window, rank, NO_ROOM)? == Some(BUSY) {
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(2));
    }
    Ok(())
}

/// Releases the passive-target lock of a target on another host.
pub fn unlock(window: &Window, rank: c_int, exclusive: bool) -> Result {
    let what = if exclusive {
        UNLOCK_ALONE
    } else {
        UNLOCK_TOGETHER
    };
    Request::simple(what).send(window, rank, 0)
}

/// Tells this process's own service to end.
pub fn stop(window: &Window) -> Result {
    Request::simple(STOP).send(window, window.comm.rank, 0)
}
