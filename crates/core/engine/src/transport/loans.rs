//! Loans: memory that a task writes in place and that goes to another task as a message, without a copy.
//!
//! *Order.* The message that names a loan is a frame, and comes in the order of frames. All that was written into the loan before it
//! was sent is there for its receiver.
//! *Blocking.* No call waits.
//! *Faults.* A place that is no loan, or that the peer has not handed over, is a [`Fault`] of that peer.
//! *Ownership.* A loan is its borrower's until it goes as a message; then it is the receiver's, from the arrival of that message on
//! ([`Loans::loan_came`]). The task that has it gives it back.

use regatta_memory::views::Views;

use super::{Fault, Peer};

/// Memory that can go to another task as a message.
pub trait Loans {
    /// Borrow `len` bytes that other tasks can read in place; returns their place and memory.
    fn lend(&mut self, len: usize) -> Result<(u64, Views), Fault>;
    /// A message from `peer` that names a loan has arrived: from now on the loan is this task's. An error if the peer has not
    /// handed it over to this task.
    fn loan_came(&mut self, peer: Peer, place: u64) -> Result<(), Fault>;
    /// The memory of a loan received from `peer`, checked.
    fn borrowed(&mut self, peer: Peer, place: u64, len: u64) -> Result<Views, Fault>;
    /// The place and size of a loan by an address inside user hands; `None` if it is none.
    fn loan_at(&self, address: usize) -> Option<(u64, usize)>;
    /// A loan is not needed any more.
    fn give_back(&mut self, place: u64);
}
