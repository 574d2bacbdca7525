//! Loans: memory that a task writes in place and passes to another task as a message, without a copy.
//!
//! *Order.* The message that names a loan is a frame, and arrives in the order of frames. Its receiver sees everything that was written to the loan
//! before it was sent.
//! *Blocking.* No call blocks.
//! *Faults.* A name that is not that of a loan, or a loan that the peer has not handed over, is a [`Fault`] of that peer.
//! *Ownership.* A loan belongs to its borrower until it is sent as a message. From the arrival of that message ([`Loans::loan_came`]) it belongs to
//! the receiver. Its owner gives it back.
//! *Hot.* [`Loans::lend`], [`Loans::hand_over_loan`], [`Loans::loan_came`] and [`Loans::give_back`]: no allocation, no system call.
//!
//! The functions with a body are called by the process only. They do nothing where tasks share no memory: there the loan is sent as a copy.

use std::ptr::NonNull;

use regatta_memory::Corrupt;
use regatta_memory::views::Views;

use super::{Fault, Peer};

/// Memory that can be passed to another task as a message.
pub trait Loans {
    /// Allocates a loan of `len` bytes, which other tasks can read in place. Returns its place (offset) and its memory.
    fn lend(&mut self, len: usize) -> Result<(u64, Views), Fault>;
    /// Records that a message from `peer` that names a loan has arrived: from now on this task owns the loan. Fails if the peer has not handed it
    /// over to this task.
    fn loan_came(&mut self, peer: Peer, place: u64) -> Result<(), Fault>;
    /// Returns the memory of a loan received from `peer`, after checking it.
    fn borrowed(&mut self, peer: Peer, place: u64, len: u64) -> Result<Views, Fault>;
    /// Returns the place and size of the loan that the user knows by this address, or `None` if it is not the address of a loan.
    fn loan_at(&self, address: usize) -> Option<(u64, usize)>;
    /// Frees a loan.
    fn give_back(&mut self, place: u64);
    /// Records that a loan is sent as a message to a task that shares memory with this one. Returns false if that is not possible because other
    /// tasks are reading it.
    fn hand_over_loan(&mut self, _place: u64, _to: Peer) -> bool {
        true
    }
    /// Undoes `hand_over_loan`, since the message is not sent: this task owns the loan again.
    fn take_back_loan(&mut self, _place: u64, _to: Peer) {}
    /// Lets a peer read a loan of this task. Returns the name by which the peer opens it, or `None` if the peer must get a copy.
    fn share_loan(&mut self, _place: u64, _reader: Peer) -> Option<u64> {
        None
    }
    /// Returns the memory of a loan that another task, or this one, has shared with this task.
    fn open_loan(&self, _name: u64, _len: usize) -> Result<NonNull<u8>, Corrupt> {
        Err(Corrupt {
            what: "a message names a loan although the tasks share no memory",
        })
    }
    /// Closes a shared loan: it is not read any more.
    fn close_loan(&mut self, _name: u64) {}
    /// Gives up the memory that this task keeps for its next loans. Call this before any other task can learn that this one has left: from then on
    /// others may use that memory.
    fn let_go_of_loans(&mut self) {}
}
