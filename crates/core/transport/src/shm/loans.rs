//! Loans: [`LoanBlocks`], applied to the job of the transport.

use std::ptr::NonNull;

use regatta_engine::{Fault, Loans, Peer};
use regatta_memory::Corrupt;
use regatta_memory::views::Views;

use super::Shm;
use regatta_segment::job::Job;
use regatta_segment::loan_blocks::{Around, LoanBlocks};

/// Calls `act` with the parts of the job that a task's loans need.
pub(super) fn around<R>(job: &Job, me: Peer, act: impl FnOnce(&Around) -> R) -> R {
    act(&Around {
        segment: job.segment(),
        blocks: job.blocks(),
        me,
        gone: &|peer| job.is_gone(peer),
    })
}

impl Loans for Shm {
    fn lend(&mut self, len: usize) -> Result<(u64, Views), Fault> {
        if !self.leaving.is_empty() {
            self.let_go_of_read_out();
        }
        self.with_loans(|loans, around| loans.lend(around, len))
            .map_err(|error| {
                Fault::Memory(format!(
                    "a loan of {len} bytes cannot be allocated: {error}"
                ))
            })
    }

    fn loan_came(&mut self, peer: Peer, place: u64) -> Result<(), Fault> {
        let arrived = around(&self.job, self.me, |around| {
            LoanBlocks::arrive(around, place, peer)
        });
        arrived.map_err(self.fault(peer))
    }

    fn borrowed(&mut self, peer: Peer, place: u64, len: u64) -> Result<Views, Fault> {
        if peer == self.me {
            // A message to oneself arrives when it is taken. A block that is not sent as a message has not been
            // handed over, so a failure is ignored.
            let _ = self.loan_came(peer, place);
        }
        LoanBlocks::check(self.job.segment(), place, len).map_err(self.fault(peer))
    }

    fn loan_at(&self, address: usize) -> Option<(u64, usize)> {
        around(&self.job, self.me, |around| LoanBlocks::at(around, address))
    }

    fn give_back(&mut self, place: u64) {
        self.with_loans(|loans, around| loans.give_back(around, place));
    }

    fn share_loan(&mut self, place: u64, reader: Peer) -> Option<u64> {
        self.with_loans(|loans, around| loans.share(around, place, reader))
    }

    fn open_loan(&self, name: u64, len: usize) -> Result<NonNull<u8>, Corrupt> {
        around(&self.job, self.me, |around| {
            LoanBlocks::open(around, name, len)
        })
    }

    fn close_loan(&mut self, name: u64) {
        self.with_loans(|loans, around| loans.close(around, name));
    }

    fn hand_over_loan(&mut self, place: u64, to: Peer) -> bool {
        self.with_loans(|loans, around| loans.send(around, place, to))
    }

    fn take_back_loan(&mut self, place: u64, to: Peer) {
        around(&self.job, self.me, |around| {
            LoanBlocks::take_back(around, place, to)
        });
    }

    fn let_go_of_loans(&mut self) {
        self.with_loans(|loans, around| loans.leave(around));
    }
}

impl Shm {
    pub(super) fn with_loans<R>(&mut self, act: impl FnOnce(&mut LoanBlocks, &Around) -> R) -> R {
        let loans = &mut self.loans;
        around(&self.job, self.me, |around| act(loans, around))
    }
}
