//! Messages of a task to itself that tell it of something: events, and what tasks that it has started write.
//!
//! Whoever tells much wants to know when it has been received, so that it can wait with the rest: each message has a
//! [`Toll`], which is paid when a receive takes it.

use regatta_memory::held::Held;

use crate::arrival::{Body, charge};
use crate::engine::Engine;
use crate::transport::Transport;

/// What is due when a message has been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Toll {
    /// A number of the teller's.
    pub of: u32,
    /// How much.
    pub amount: u32,
}

impl Toll {
    /// Nothing is due.
    pub const FREE: Toll = Toll { of: 0, amount: 0 };
}

/// Tolls that have been paid.
#[derive(Debug, Default)]
pub struct Tolls {
    paid: Vec<Toll>,
    sum: u32,
}

impl Tolls {
    /// One more.
    pub fn pay(&mut self, toll: Toll) {
        if toll.amount == 0 {
            return;
        }
        self.sum = self.sum.saturating_add(toll.amount);
        match self.paid.last_mut() {
            Some(last) if last.of == toll.of => {
                last.amount = last.amount.saturating_add(toll.amount);
            }
            _ => self.paid.push(toll),
        }
    }

    /// How much has been paid and not been taken.
    #[inline(always)]
    pub fn sum(&self) -> u32 {
        self.sum
    }

    /// That.
    pub fn take(&mut self) -> Vec<Toll> {
        self.sum = 0;
        std::mem::take(&mut self.paid)
    }
}

impl<T: Transport> Engine<T> {
    /// A message from this task to itself that is there whatever the buffer holds: something to be told, not to be sent
    /// again.
    pub fn tell_self(&mut self, context: u32, tag: i32, bytes: &[u8], toll: Toll) {
        if let Some(receive) = self.posted.take(context, self.me, tag) {
            self.requests.get(receive).views.fill(bytes);
            self.requests.received(receive, self.me, tag, bytes.len());
            return self.tolls.pay(toll);
        }
        let mut held = Held::zeros(bytes.len());
        held.copy_from_slice(bytes);
        self.buffered += charge(bytes.len());
        self.keep(context, tag, Body::Told(held, toll));
    }

    /// The tolls of messages that have been received.
    #[inline(always)]
    pub fn tolls(&mut self) -> &mut Tolls {
        &mut self.tolls
    }
}
