//! Messages that are taken in: for receives that select by a mask, which Regatta cannot.
//!
//! As soon as a receive or a probe has such a mask, messages of ordinary types are taken in, in the order in which they have come, and receives
//! find them here. When none is left, and no receive waits, everything goes straight to Regatta again.

use std::collections::VecDeque;
use std::ffi::c_int;

use crate::error::{EQMEM, EQMSGLONG, EQTIME, Fault, check};
use crate::handlers;
use crate::left;
use crate::receive::{Buffer, NO_STATUS, receive_within};
use crate::rg;
use crate::started::Work;
use crate::state::{PLAIN, library};
use crate::types::TypeSelect;

/// A message that has been taken in.
struct Held {
    /// Its place among all that have been taken in.
    number: u64,
    tag: c_int,
    source: c_int,
    bytes: Vec<u8>,
}

impl Held {
    fn status(&self) -> rg::Status {
        rg::Status {
            source: self.source,
            tag: self.tag,
            length: self.bytes.len(),
            ..NO_STATUS
        }
    }

    fn is_for(&self, select: TypeSelect, source: c_int) -> bool {
        select.takes(self.tag) && (source == rg::ANY || source == self.source)
    }

    /// Copies it to where a receive wants it.
    fn give(&self, buffer: Buffer) -> Result<rg::Status, Fault> {
        if self.bytes.len() > buffer.capacity {
            return Err(buffer.too_short(self.bytes.len()));
        }
        // SAFETY: the program's memory has that room, and our copy is no part of it.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.bytes.as_ptr(),
                buffer.memory.cast::<u8>(),
                self.bytes.len(),
            );
        }
        Ok(self.status())
    }
}

/// A receive that has been begun and has no message yet.
struct Waiting {
    mid: c_int,
    select: TypeSelect,
    source: c_int,
    buffer: Buffer,
}

/// Messages without receives, and receives without messages.
pub struct Inbox {
    held: VecDeque<Held>,
    waiting: Vec<Waiting>,
    /// How many messages have been taken in.
    taken: u64,
}

impl Inbox {
    pub const fn new() -> Inbox {
        Inbox {
            held: VecDeque::new(),
            waiting: Vec::new(),
            taken: 0,
        }
    }

    /// Whether a receive that selects so has to look here.
    #[inline(always)]
    pub fn concerns(&self, select: TypeSelect) -> bool {
        match select {
            TypeSelect::Classes(_) => true,
            TypeSelect::Force(_) => false,
            _ => !(self.held.is_empty() && self.waiting.is_empty()),
        }
    }

    /// A receive waits from now on.
    pub fn wait(&mut self, mid: c_int, select: TypeSelect, source: c_int, buffer: Buffer) {
        self.waiting.push(Waiting {
            mid,
            select,
            source,
            buffer,
        });
    }

    /// A receive does not wait any more.
    pub fn forget(&mut self, mid: c_int) {
        self.waiting.retain(|waiting| waiting.mid != mid);
    }

    /// Keeps a message. A handler may have taken in later ones while this one came.
    fn hold(&mut self, held: Held) {
        let at = self.held.partition_point(|one| one.number < held.number);
        self.held.insert(at, held);
    }

    fn find(&self, select: TypeSelect, source: c_int) -> Option<usize> {
        self.held
            .iter()
            .position(|held| held.is_for(select, source))
    }
}

/// Memory for a message of this length, which another task says.
pub fn room(length: usize) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(length)
        .map_err(|_| Fault::plain(EQMEM))?;
    bytes.resize(length, 0);
    Ok(bytes)
}

/// Takes in all messages that have come. The receive that has waited longest gets each.
pub fn take_in() -> Result<(), Fault> {
    loop {
        let (mut found, mut status) = (0, NO_STATUS);
        // SAFETY: places for the answer.
        check(unsafe { rg::rg_iprobe(rg::ANY, rg::ANY, PLAIN, &mut found, &mut status) })?;
        if found == 0 {
            return Ok(());
        }
        let mut bytes = room(status.length)?;
        let buffer = Buffer {
            memory: bytes.as_mut_ptr().cast(),
            capacity: bytes.len(),
        };
        let number = library().inbox.taken;
        library().inbox.taken += 1;
        // A handler may have received it meanwhile, and another one, even a longer one, be there.
        let status = match receive_within(status.tag, PLAIN, status.source, buffer, 0.0) {
            Err(why) if matches!(why.code, EQTIME | EQMSGLONG) => continue,
            received => received?,
        };
        bytes.truncate(status.length);
        let held = Held {
            number,
            tag: status.tag,
            source: status.source,
            bytes,
        };
        let inbox = &mut library().inbox;
        let receiver = inbox
            .waiting
            .iter()
            .position(|waiting| held.is_for(waiting.select, waiting.source));
        match receiver {
            None => inbox.hold(held),
            Some(at) => {
                let waiting = inbox.waiting.remove(at);
                deliver(waiting, &held);
            }
        }
    }
}

/// A receive that is ignored has no id any more, and gets its message all the same.
fn deliver(waiting: Waiting, held: &Held) {
    let given = held.give(waiting.buffer);
    if let Some(started) = library().started.get(waiting.mid)
        && let Work::Waiting(place) = started.work
    {
        started.work = Work::Came(given, place);
    }
}

/// Receives a message that has come. One that does not fit stays.
pub fn receive_now(
    select: TypeSelect,
    source: c_int,
    buffer: Buffer,
) -> Result<Option<rg::Status>, Fault> {
    take_in()?;
    let inbox = &mut library().inbox;
    let Some(at) = inbox.find(select, source) else {
        return Ok(None);
    };
    let status = inbox.held[at].give(buffer)?;
    inbox.held.remove(at);
    Ok(Some(status))
}

/// Blocks until something is there, looking whenever a message has come. A handler that runs meanwhile takes in messages, too: then
/// nothing more may come, so where there are handlers each arrival ends the wait.
fn until<T>(mut look: impl FnMut() -> Result<Option<T>, Fault>) -> Result<T, Fault> {
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if handlers::are_used() {
            return left::until(look);
        }
        left::await_one(rg::ANY, PLAIN, rg::ANY)?;
    }
}

/// Receives a message; waits for it.
#[cold]
pub fn receive(select: TypeSelect, source: c_int, buffer: Buffer) -> Result<rg::Status, Fault> {
    until(|| receive_now(select, source, buffer))
}

/// Waits until a receive that waits has got its message.
pub fn await_delivery(mid: c_int) -> Result<(), Fault> {
    until(|| {
        take_in()?;
        let waits = library().inbox.waiting.iter().any(|one| one.mid == mid);
        Ok((!waits).then_some(()))
    })
}

/// The message that a receive would get.
pub fn look(select: TypeSelect, source: c_int) -> Result<Option<rg::Status>, Fault> {
    take_in()?;
    let inbox = &library().inbox;
    let found = inbox.find(select, source);
    Ok(found.map(|at| inbox.held[at].status()))
}

/// As the function above; waits for it.
pub fn await_one(select: TypeSelect, source: c_int) -> Result<rg::Status, Fault> {
    until(|| look(select, source))
}

/// Throws away all messages that have come and are selected.
pub fn flush(select: TypeSelect, source: c_int) -> Result<(), Fault> {
    take_in()?;
    let held = &mut library().inbox.held;
    held.retain(|held| !held.is_for(select, source));
    Ok(())
}
