//! Messages that are taken in, for receives that select by a mask: Regatta cannot match these.
//!
//! As soon as a receive or a probe has a mask, messages of ordinary types are taken in, in the order of arrival, and
//! receives search them here. When no message is left and no receive waits, everything goes directly through Regatta
//! again.

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
    /// Sequence number among all messages that have been taken in.
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

    /// Copies the message into a receive's buffer. Fails if it does not fit.
    fn give(&self, buffer: Buffer) -> Result<rg::Status, Fault> {
        if self.bytes.len() > buffer.capacity {
            return Err(buffer.too_short(self.bytes.len()));
        }
        // SAFETY: by the C contract the buffer has this room, and it does not overlap the copy here.
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

/// A receive that has been started and has no message yet.
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
    /// Number of messages that have been taken in.
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

    /// Returns whether a receive with this selection has to search here.
    #[inline(always)]
    pub fn concerns(&self, select: TypeSelect) -> bool {
        match select {
            TypeSelect::Classes(_) => true,
            TypeSelect::Force(_) => false,
            _ => !(self.held.is_empty() && self.waiting.is_empty()),
        }
    }

    /// Adds a waiting receive.
    pub fn wait(&mut self, mid: c_int, select: TypeSelect, source: c_int, buffer: Buffer) {
        self.waiting.push(Waiting {
            mid,
            select,
            source,
            buffer,
        });
    }

    /// Removes a waiting receive.
    pub fn forget(&mut self, mid: c_int) {
        self.waiting.retain(|waiting| waiting.mid != mid);
    }

    /// Inserts a message by its number. A handler may have taken in later ones while this one was being received.
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

/// Returns memory for a message. The length comes from another task, so running out of memory is an error instead of an
/// abort.
pub fn room(length: usize) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(length)
        .map_err(|_| Fault::plain(EQMEM))?;
    bytes.resize(length, 0);
    Ok(bytes)
}

/// Takes in all messages that have arrived. Each goes to the matching receive that has waited longest, if there is one.
pub fn take_in() -> Result<(), Fault> {
    loop {
        let (mut found, mut status) = (0, NO_STATUS);
        // SAFETY: the results point to local variables.
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
        // A handler may have received the message meanwhile, and another one, even a longer one, may have arrived.
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

/// Delivers a message to a waiting receive. A receive whose id was released (`msgignore`) gets its message, too.
fn deliver(waiting: Waiting, held: &Held) {
    let given = held.give(waiting.buffer);
    if let Some(started) = library().started.get(waiting.mid)
        && let Work::Waiting(place) = started.work
    {
        started.work = Work::Came(given, place);
    }
}

/// Receives a message that has arrived, if there is one. A message that does not fit stays.
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

/// Blocks until `look` finds something, and calls it whenever a message arrives. A handler that runs meanwhile also
/// takes in messages, so that no further message may arrive here; therefore, if there are handlers, every arrival ends
/// the wait.
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

/// Waits for a message and receives it.
#[cold]
pub fn receive(select: TypeSelect, source: c_int, buffer: Buffer) -> Result<rg::Status, Fault> {
    until(|| receive_now(select, source, buffer))
}

/// Waits until a waiting receive has got its message.
pub fn await_delivery(mid: c_int) -> Result<(), Fault> {
    until(|| {
        take_in()?;
        let waits = library().inbox.waiting.iter().any(|one| one.mid == mid);
        Ok((!waits).then_some(()))
    })
}

/// Returns the description of the message that a receive would get, if there is one.
pub fn look(select: TypeSelect, source: c_int) -> Result<Option<rg::Status>, Fault> {
    take_in()?;
    let inbox = &library().inbox;
    let found = inbox.find(select, source);
    Ok(found.map(|at| inbox.held[at].status()))
}

/// Waits for a message that a receive would get, and returns its description.
pub fn await_one(select: TypeSelect, source: c_int) -> Result<rg::Status, Fault> {
    until(|| look(select, source))
}

/// Discards all selected messages that have arrived.
pub fn flush(select: TypeSelect, source: c_int) -> Result<(), Fault> {
    take_in()?;
    let held = &mut library().inbox.held;
    held.retain(|held| !held.is_for(select, source));
    Ok(())
}
