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
use super::{
    BUSY, FETCH, FLUSH, GET, HEAD, LOCK_ALONE, LOCK_TOGETHER, PUT, REQUEST, STOP, SWAP,
    UNLOCK_ALONE, UNLOCK_TOGETHER, UPDATE,
};
use crate::abi::*;
use crate::error::{Error, Result};

/// Begins to serve this process' memory.
pub fn start(window: Arc<Window>) -> Result<JoinHandle<()>> {
    // By its name and its signals it is known as no thread of the program's, which ends without it.
    let thread = std::thread::Builder::new().name("regatta/window".to_owned());
    let serve = move || {
        block_signals();
        serve(&window);
    };
    thread.spawn(serve).map_err(|why| {
        let text = format!("the thread that serves a window cannot be started: {why}");
        Error::new(ERR_OTHER, text)
    })
}

/// This thread takes no signal of the program's.
fn block_signals() {
    // SAFETY: a set of our own.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, null_mut());
    }
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
                    // SAFETY: the bytes are read before the call returns. A process that has died meanwhile needs no reply.
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
