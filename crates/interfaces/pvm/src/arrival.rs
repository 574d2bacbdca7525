//! From a message of Regatta's to a buffer of PVM's.

use std::ffi::{c_int, c_void};

use crate::contexts;
use crate::head::Head;
use crate::message::{self, HEAD, Info, Storage, codes};
use crate::state::library;
use crate::system::task_started::TaskStarted;
use crate::system::{hoster, tasker, tracer};
use crate::{notify, output, receive, rg, sharing, tid};

/// Which messages: of which task of Regatta's (or any), tag (or any), context, and whether of those with the sign bit.
#[derive(Clone, Copy)]
pub struct Select {
    pub from: c_int,
    pub tag: c_int,
    pub context: i32,
    pub reserved: bool,
}

impl Select {
    /// The channel it is about.
    #[inline(always)]
    pub fn channel(&self) -> rg::Group {
        contexts::channel(self.context, if self.reserved { i32::MIN } else { 0 })
    }
}

/// The result of a look for a message.
pub enum Taken {
    /// It is in this buffer, which is not the current one.
    Message(c_int),
    /// It was for the library, or about something that nobody wants to hear of any more.
    Swallowed,
    /// None came in that time.
    Nothing,
}

/// Take in the next message of this kind, waiting so many seconds at most (negative: as long as it takes). The number of
/// its buffer.
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

/// All of this kind that have come.
pub fn take_all(select: Select) -> Vec<c_int> {
    let mut all = Vec::new();
    while let Ok(Some(buffer)) = take(select, 0.0) {
        all.push(buffer);
    }
    all
}

/// The first of these is the message that has come; the others lie right behind it in the queue.
pub fn in_order(all: Vec<c_int>) -> Option<c_int> {
    let mut all = all.into_iter();
    let first = all.next();
    all.for_each(receive::keep);
    first
}

/// The next message of this kind as [`take`] has it, whatever it is about.
#[inline(always)]
pub fn take_next(select: Select, seconds: f64) -> Result<Taken, i32> {
    take_by(select, |memory, room, from, tag, status| {
        let channel = select.channel();
        // SAFETY: the storage has room for so much.
        unsafe { rg::rg_recv_within(memory, room, from, tag, channel, seconds, status) }
    })
}

/// Likewise for messages that have been passed over: one that came later has been received, or they came before the answer to
/// another call.
pub fn take_passed(select: Select) -> Result<Taken, i32> {
    take_by(select, |memory, room, from, tag, status| {
        let channel = select.channel();
        // SAFETY: the storage has room for so much.
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
                // The memory of the message before is used again: fresh pages would cost more than the message.
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

/// PVM's code for a receive of Regatta's that has failed.
#[cold]
pub fn failure(code: c_int) -> i32 {
    match code {
        rg::ERR_DEAD | rg::ERR_LEFT | rg::ERR_TASK => codes::NO_TASK,
        rg::ERR_MEMORY => codes::NO_MEM,
        _ => codes::SYS_ERR,
    }
}

/// Turns a message that has come, in most cases one of PVM's, into a buffer.
#[inline(always)]
pub fn accept(storage: Storage, status: &rg::Status, select: Select) -> Result<Option<c_int>, i32> {
    // SAFETY: so much of it has been written.
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

/// The information of a message that came with this head.
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

/// A long message that lies elsewhere, an event, or a message that was sent past PVM: its bytes, as they are.
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
