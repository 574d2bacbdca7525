//! Turns received Regatta messages into PVM buffers.

use std::ffi::{c_int, c_void};

use crate::contexts;
use crate::head::Head;
use crate::message::{self, HEAD, Info, Storage, codes};
use crate::state::library;
use crate::system::task_started::TaskStarted;
use crate::system::{hoster, tasker, tracer};
use crate::{notify, output, receive, rg, sharing, tid};

/// Selects messages by Regatta task (or any), tag (or any), context, and whether the tag has the sign bit.
#[derive(Clone, Copy)]
pub struct Select {
    pub from: c_int,
    pub tag: c_int,
    pub context: i32,
    pub reserved: bool,
}

impl Select {
    /// Returns the channel of these messages.
    #[inline(always)]
    pub fn channel(&self) -> rg::Group {
        contexts::channel(self.context, if self.reserved { i32::MIN } else { 0 })
    }
}

/// Result of looking for a message.
pub enum Taken {
    /// A message, in this buffer. The buffer is not the current one.
    Message(c_int),
    /// A message for the library itself, or a notification that was cancelled.
    Swallowed,
    /// No message arrived in time.
    Nothing,
}

/// Receives the next message of this selection and returns its buffer. Waits at most `seconds` (negative: without a
/// limit).
#[inline(always)]
pub fn take(select: Select, seconds: f64) -> Result<Option<c_int>, i32> {
    loop {
        match take_next(select, seconds)? {
            Taken::Message(buffer) => return Ok(Some(buffer)),
            Taken::Nothing => return Ok(None),
            Taken::Swallowed => {}
        }
    }
}

/// Receives all messages of this selection that have arrived.
pub fn take_all(select: Select) -> Vec<c_int> {
    let mut all = Vec::new();
    while let Ok(Some(buffer)) = take(select, 0.0) {
        all.push(buffer);
    }
    all
}

/// Returns the first buffer and puts the others at the end of the inbox, in order.
pub fn in_order(all: Vec<c_int>) -> Option<c_int> {
    let mut all = all.into_iter();
    let first = all.next();
    all.for_each(receive::keep);
    first
}

/// Like [`take`], but also returns when a message was swallowed.
#[inline(always)]
pub fn take_next(select: Select, seconds: f64) -> Result<Taken, i32> {
    take_by(select, |memory, room, from, tag, status| {
        let channel = select.channel();
        // SAFETY: the storage has room for the size that is passed.
        unsafe { rg::rg_recv_within(memory, room, from, tag, channel, seconds, status) }
    })
}

/// Like [`take_next`], but receives only messages that were passed over: a later message has already been received, or
/// they arrived before the answer to another call. Does not wait.
pub fn take_passed(select: Select) -> Result<Taken, i32> {
    take_by(select, |memory, room, from, tag, status| {
        let channel = select.channel();
        // SAFETY: the storage has room for the size that is passed.
        unsafe { rg::rg_recv_passed(memory, room, from, tag, channel, status) }
    })
}

#[inline(always)]
fn take_by(
    select: Select,
    receive: impl Fn(*mut c_void, usize, c_int, c_int, &mut rg::Status) -> c_int,
) -> Result<Taken, i32> {
    let mut storage = message::spare(0)?;
    let mut status = rg::Status::default();
    let (mut from, mut tag) = (select.from, select.tag);
    loop {
        let room = HEAD + storage.capacity();
        let code = receive(storage.as_mut_ptr().cast(), room, from, tag, &mut status);
        match code {
            rg::OK => {
                let made = accept(storage, &status, select)?;
                return Ok(made.map_or(Taken::Swallowed, Taken::Message));
            }
            rg::ERR_TRUNCATED => {
                // Reuse the memory of a previous message: fresh pages would cost more than the message itself.
                message::give_back(storage);
                storage = message::spare(status.length)?;
                (from, tag) = (status.source, status.tag);
            }
            code => {
                message::give_back(storage);
                return refused(code);
            }
        }
    }
}

#[cold]
fn refused(code: c_int) -> Result<Taken, i32> {
    match code {
        rg::ERR_NOTHING => Ok(Taken::Nothing),
        code => Err(failure(code)),
    }
}

/// Returns PVM's code for a failed receive of Regatta's.
#[cold]
pub fn failure(code: c_int) -> i32 {
    match code {
        rg::ERR_DEAD | rg::ERR_LEFT | rg::ERR_TASK => codes::NO_TASK,
        rg::ERR_MEMORY => codes::NO_MEM,
        _ => codes::SYS_ERR,
    }
}

/// Makes a buffer of a received message. Usually it is one of PVM's; otherwise see [`strange`].
#[inline(always)]
pub fn accept(storage: Storage, status: &rg::Status, select: Select) -> Result<Option<c_int>, i32> {
    // SAFETY: Regatta has written this many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(storage.as_mut_ptr(), status.length) };
    match Head::read(bytes) {
        Some(head) => {
            let info = info(status, select, head);
            message::accept(storage, status.length - HEAD, info).map(Some)
        }
        None => {
            let made = strange(bytes, status, select);
            message::give_back(storage);
            made
        }
    }
}

/// Returns the information for a message with this header.
#[inline(always)]
pub fn info(status: &rg::Status, select: Select, head: Head) -> Info {
    Info {
        src: tid::of(status.source, head.host),
        dst: library().tid,
        tag: tag_of(status.tag, select),
        ctx: select.context,
        wid: head.wid,
        encoding: head.encoding,
        crc: 0,
    }
}

#[inline(always)]
fn tag_of(tag: c_int, select: Select) -> i32 {
    if select.reserved { tag | i32::MIN } else { tag }
}

/// Handles a message without PVM's header: a long message in shared memory, an event, or a message that was sent with
/// Regatta's own calls. The latter becomes a raw buffer.
#[cold]
pub fn strange(bytes: &[u8], status: &rg::Status, select: Select) -> Result<Option<c_int>, i32> {
    if let Some(made) = sharing::accept(bytes, status, select) {
        return made.map(Some);
    }
    let tag = tag_of(status.tag, select);
    if status.source == library().task {
        if let Some(event) = notify::event(bytes) {
            return notify::happened(&event, tag, select.context);
        }
        if let Some(start) = tasker::read(bytes) {
            return tasker::started(&start).map(Some);
        }
        if let Some(hosts) = hoster::read(bytes) {
            return hoster::wanted(&hosts).map(Some);
        }
        if let Some((head, text)) = output::piece(bytes) {
            return output::receive_piece(&head, text, tag, select.context);
        }
    }
    if let Some(started) = TaskStarted::read(bytes) {
        return tracer::begun(&started, tag, select.context);
    }
    let info = Info {
        src: tid::of_task(status.source).unwrap_or_default(),
        dst: library().tid,
        tag,
        ctx: select.context,
        encoding: codes::RAW,
        ..Info::default()
    };
    message::from_body(bytes, info).map(Some)
}
