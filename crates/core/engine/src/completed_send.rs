//! Handles of sends that were complete when they were started.
//!
//! The engine keeps nothing of such a send, and says so by [`Handle::SENT`]. Callers whose handles
//! are plain numbers in the hands of users need more: a number that is good once. A ticket is
//! that, at the price of eight bytes while it is out. It is told from a request's handle by the
//! highest bit, which no generation of a request reaches.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::request::Handle;
use crate::transport::Transport;

const TICKET: u64 = 1 << 63;
/// `next` of the last free ticket.
const NIL: u32 = u32::MAX;
/// `next` of a ticket that is out.
const OUT: u32 = u32::MAX - 1;

struct Ticket {
    generation: u32,
    /// The next free ticket.
    next: u32,
}

/// All tickets of an engine.
pub(crate) struct Tickets {
    list: Vec<Ticket>,
    free: u32,
}

impl Tickets {
    pub(crate) fn new() -> Tickets {
        Tickets {
            list: Vec::new(),
            free: NIL,
        }
    }

    #[inline(always)]
    fn hand_out(&mut self) -> Handle {
        if self.free == NIL {
            self.grow();
        }
        let at = self.free;
        let ticket = &mut self.list[at as usize];
        self.free = std::mem::replace(&mut ticket.next, OUT);
        Handle(TICKET | (ticket.generation as u64) << 32 | at as u64)
    }

    #[cold]
    fn grow(&mut self) {
        self.list.push(Ticket {
            generation: 0,
            next: NIL,
        });
        self.free = self.list.len() as u32 - 1;
    }

    /// Is this a ticket, or what could be one?
    #[inline(always)]
    pub(crate) fn claims(handle: Handle) -> bool {
        handle.0 & TICKET != 0
    }

    /// Is this a ticket that is out?
    #[inline(always)]
    pub(crate) fn is_out(&self, handle: Handle) -> bool {
        let generation = (handle.0 & !TICKET) >> 32;
        let ticket = self.list.get(handle.0 as u32 as usize);
        let out = |ticket: &Ticket| ticket.next == OUT && ticket.generation as u64 == generation;
        Tickets::claims(handle) && ticket.is_some_and(out)
    }

    /// Take a ticket back, if it is out.
    #[inline(always)]
    pub(crate) fn take_back(&mut self, handle: Handle) -> bool {
        if !self.is_out(handle) {
            return false;
        }
        let at = handle.0 as u32;
        let ticket = &mut self.list[at as usize];
        ticket.generation = ticket.generation.wrapping_add(1) & 0x7fff_ffff;
        ticket.next = self.free;
        self.free = at;
        true
    }

    /// As above, for callers that have no other answer to a stale one.
    pub(crate) fn use_up(&mut self, handle: Handle) -> Result<()> {
        let known = self.take_back(handle);
        known.then_some(()).ok_or(Error::Handle("request"))
    }
}

impl<T: Transport> Engine<T> {
    /// A handle, good once, of an operation that was complete when it was started.
    #[inline(always)]
    pub fn ticket(&mut self) -> Handle {
        self.sent.hand_out()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_once() {
        let mut tickets = Tickets::new();
        let (one, two) = (tickets.hand_out(), tickets.hand_out());
        assert_ne!(one, two);
        assert!(tickets.is_out(one) && tickets.take_back(one));
        assert!(!tickets.is_out(one) && !tickets.take_back(one));
        let again = tickets.hand_out();
        assert_ne!(again, one, "the place is used again, the number is not");
        assert!(!tickets.take_back(one));
        assert!(tickets.take_back(two) && tickets.take_back(again));
    }

    #[test]
    fn made_up_tickets_are_refused() {
        let mut tickets = Tickets::new();
        for number in [0, 1, TICKET, u64::MAX, u64::MAX - 1, TICKET | 1 << 32] {
            assert!(!tickets.take_back(Handle(number)), "{number:x}");
        }
        let good = tickets.hand_out();
        for number in [good.0 & !TICKET, good.0 + 1, good.0 | 1 << 32, u64::MAX] {
            assert!(!tickets.take_back(Handle(number)), "{number:x}");
        }
        assert!(tickets.take_back(good));
    }
}
