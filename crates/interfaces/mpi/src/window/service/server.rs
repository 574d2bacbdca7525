//! The server: the thread of a process that acts on its memory for others.

use std::collections::HashMap;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use regatta_sys as rg;

use super::super::Window;
use super::super::accumulate::{Update, swap_here};
use super::super::pieces::Pieces;
use super::{
    BUSY, FETCH, FLUSH, GET, HEAD, LOCK_ALONE, LOCK_TOGETHER, PUT, REQUEST, STOP, SWAP,
    UNLOCK_ALONE, UNLOCK_TOGETHER, UPDATE,
};
use crate::abi::*;
use crate::datatype::memory;
use crate::error::{Error, Result, checked};

/// Starts the thread that serves this process's memory in a window.
pub fn start(window: Arc<Window>) -> Result<JoinHandle<()>> {
    spawn(move || serve(&window))
}

/// Starts a thread that serves requests.
pub(super) fn spawn(serve: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    // Its name and its blocked signals distinguish it from the program's threads, and it does not keep the process
    // from ending.
    let thread = std::thread::Builder::new().name("regatta/window".to_owned());
    let serve = move || {
        block_signals();
        serve();
    };
    thread.spawn(serve).map_err(|why| {
        let text = format!("the thread that serves a window cannot be started: {why}");
        Error::new(ERR_OTHER, text)
    })
}

/// Blocks all signals in this thread, so that the program's threads get them.
fn block_signals() {
    // SAFETY: the set is a local variable.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, null_mut());
    }
}

/// The state of a service.
#[derive(Default)]
struct Served {
    /// The first error of each process's requests without a reply.
    errors: HashMap<c_int, c_int>,
    /// Number of refused locks. The holders are checked from time to time.
    refused: u32,
}

fn serve(window: &Window) {
    let mut served = Served::default();
    loop {
        match receive(window) {
            Ok(Received {
                source,
                bytes,
                whole,
            }) => {
                let request = whole.and_then(|()| read(&bytes).ok_or_else(wrong));
                let is_own = source == window.comm.rank;
                if is_own && matches!(&request, Ok((words, _)) if words[0] == STOP) {
                    return;
                }
                let tag = word(&bytes, 1).unwrap_or(0) as c_int;
                let (answer, data) = served.act(window, source, tag, request);
                if tag != 0 {
                    reply(window, source, tag, answer, &data);
                }
            }
            // The engine has been finalized, or the group is revoked, so no process can send requests any longer.
            Err(rg::ERR_STATE | rg::ERR_REVOKED) => return,
            // Acknowledges the failure, so that the next error reports another one.
            Err(rg::ERR_DEAD) if acknowledge_dead(window) => {}
            // A process has left without freeing the window, which MPI forbids, or a resource is temporarily exhausted:
            // the other processes are still served.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn acknowledge_dead(window: &Window) -> bool {
    let mut dead = 0;
    // SAFETY: the call may write the number.
    unsafe { rg::rg_acknowledge_dead(window.comm.hidden, &mut dead) >= 0 }
}

/// Sends a reply. If there is no memory for it, sends that error instead.
fn reply(window: &Window, source: c_int, tag: c_int, answer: u64, data: &[u8]) {
    let send = |answer: u64, data: &[u8]| {
        let bytes = [&answer.to_ne_bytes()[..], data].concat();
        let (address, length) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: the bytes are read before the call returns.
        unsafe { rg::rg_bsend(address, length, source, tag, window.comm.hidden) }
    };
    // A process that has died meanwhile needs no reply.
    if send(answer, data) == rg::ERR_MEMORY {
        send(ERR_NO_MEM as u64, &[]);
    }
}

#[cold]
pub(super) fn wrong() -> Error {
    Error::new(ERR_INTERN, "the request is not valid")
}

/// A message to the service.
struct Received {
    source: c_int,
    bytes: Vec<u8>,
    /// Whether all of it was received. If not, `bytes` has the received part.
    whole: Result,
}

/// Waits for the next request. Fails with the code of the engine.
fn receive(window: &Window) -> std::result::Result<Received, c_int> {
    let (mut message, mut status) = (rg::MESSAGE_NULL, rg::Status::default());
    let group = window.comm.hidden;
    // SAFETY: the call may write both.
    let code = unsafe { rg::rg_mprobe(rg::ANY, REQUEST, group, &mut message, &mut status) };
    if code < 0 {
        return Err(code);
    }
    let (source, length) = (status.source, status.length);
    // Without memory for all of it, only the header is received, which has the tag for the reply.
    let (mut bytes, room) = match memory(length) {
        Ok(bytes) => (bytes, Ok(length)),
        Err(error) => (Vec::new(), Err(error)),
    };
    bytes.resize(*room.as_ref().unwrap_or(&(8 * HEAD)), 0);
    let (address, length) = (bytes.as_mut_ptr().cast(), bytes.len());
    // SAFETY: the memory has this many bytes.
    let code = unsafe { rg::rg_mrecv(&mut message, address, length, &mut status) };
    let whole = room.and_then(|_| checked(code));
    Ok(Received {
        source,
        bytes,
        whole,
    })
}

/// Returns a word of a request.
fn word(bytes: &[u8], index: usize) -> Option<u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.get(index).map(|it| u64::from_ne_bytes(*it))
}

/// Returns the words of a request, and its data. Returns `None` if the request is malformed.
fn read(bytes: &[u8]) -> Option<(Vec<u64>, &[u8])> {
    let pieces = usize::try_from(word(bytes, 4)?).ok()?;
    let count = pieces.checked_add(HEAD)?;
    let words = (0..count).map_while(|index| word(bytes, index));
    let front = words.collect::<Vec<u64>>();
    (front.len() == count).then(|| (front, &bytes[8 * count..]))
}

impl Served {
    /// Executes a request. Returns the first word of the reply, and its data. `tag` is the tag of the reply, or 0 if
    /// there is none.
    fn act(
        &mut self,
        window: &Window,
        source: c_int,
        tag: c_int,
        request: Result<(Vec<u64>, &[u8])>,
    ) -> (u64, Vec<u8>) {
        let act = |(words, data): (Vec<u64>, _)| self.try_act(window, source, &words, data);
        match request.and_then(act) {
            Ok(done) => done,
            Err(error) => {
                if tag == 0 {
                    self.errors.entry(source).or_insert(error.class());
                }
                (error.class() as u64, Vec::new())
            }
        }
    }

    /// Executes a flush or a lock request. Returns the first word of the reply.
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
            _ => Err(wrong()),
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
        let mut reply = Vec::new();
        let reserve = |length: usize| {
            reply = memory(length)?;
            reply.resize(length, 0);
            Ok(reply.as_mut_ptr())
        };
        // SAFETY: `data` is valid for its length, and `reserve` returns memory for the reply.
        unsafe { act(window, words, (data.as_ptr(), data.len()), reserve)? };
        Ok((0, reply))
    }
}

/// Executes a request for memory. The data of the reply are written to the memory that `reserve` returns for this many
/// bytes.
///
/// # Safety
/// The data are valid for reads.
pub(super) unsafe fn act(
    window: &Window,
    words: &[u64],
    (data, given): (*const u8, usize),
    reserve: impl FnOnce(usize) -> Result<*mut u8>,
) -> Result {
    let place = window.locks().place(window.comm.rank).unwrap_or(0);
    let [what, _, datatype, op, _, _, pieces @ ..] = words else {
        return Err(wrong());
    };
    let pieces = Pieces::read(pieces, |at, length| window.allows(at, length));
    let pieces = pieces.ok_or_else(|| Error::new(ERR_RMA_RANGE, "no memory of the window"))?;
    let length = pieces.length();
    // SAFETY: the program has given access to the memory of the window, and all lengths are checked.
    unsafe {
        match *what {
            PUT if given >= length => pieces.scatter(data),
            GET => pieces.gather(reserve(length)?),
            UPDATE | FETCH => {
                let update = Update::new(Op(*op as usize), Datatype(*datatype as usize))?;
                let is_whole = update.size != 0 && length.is_multiple_of(update.size);
                if update.op != NO_OP && given < length || !is_whole {
                    return Err(wrong());
                }
                let old = match *what {
                    FETCH => reserve(length)?,
                    _ => null_mut(),
                };
                update.here(window, place, &pieces, data, old)?;
            }
            SWAP => {
                let element = pieces.only().filter(|_| given >= 2 * length);
                let (element, old) = (element.ok_or_else(wrong)?, reserve(length)?);
                let compared = data.wrapping_add(length);
                swap_here(window, place, element, data, compared, old, None)?;
            }
            _ => return Err(wrong()),
        }
    }
    Ok(())
}
