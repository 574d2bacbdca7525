//! Loans: memory that a task writes in place and that goes to another task as a message, without a copy.
//!
//! *Order.* The message that names a loan is a frame, and comes in the order of frames. All that was written into the loan before it
//! was sent is there for its receiver.
//! *Blocking.* No call waits.
//! *Faults.* A place that is no loan, or that the peer has not handed over, is a [`Fault`] of that peer.
//! *Ownership.* A loan is its borrower's until it goes as a message; then it is the receiver's, from the arrival of that message on
//! ([`Loans::loan_came`]). The task that has it gives it back.
//! *Hot.* [`Loans::lend`], [`Loans::hand_over_loan`], [`Loans::loan_came`] and [`Loans::give_back`]: no allocation, no system call.
//!
//! The functions with a body are called by the process alone. They do nothing where tasks share no memory: there what was lent
//! travels as a copy.

use std::ptr::NonNull;

use regatta_memory::Corrupt;
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
    /// Notes that a loan goes as a message to a task that shares this task's memory. False: it cannot, for somebody reads it.
    fn hand_over_loan(&mut self, _place: u64, _to: Peer) -> bool {
        true
    }
    /// The message in which that loan was to go is not sent: the loan is this task's again.
    fn take_back_loan(&mut self, _place: u64, _to: Peer) {}
    /// Lets a peer read a loan of this task's. Returns the name by which the peer finds it; `None`: it must get a copy.
    fn share_loan(&mut self, _place: u64, _reader: Peer) -> Option<u64> {
        None
    }
    /// Returns the memory of a loan that another task, or this one, has shared with this one.
    fn open_loan(&self, _name: u64, _len: usize) -> Result<NonNull<u8>, Corrupt> {
        Err(Corrupt {
            what: "a loan is named where tasks share no memory",
        })
    }
    /// That loan is not read any more.
    fn close_loan(&mut self, _name: u64) {}
    /// Gives up the memory that this task keeps for its next loans. Call it before anybody can learn that the task has left:
    /// from then on others may use that memory.
    fn let_go_of_loans(&mut self) {}
}
