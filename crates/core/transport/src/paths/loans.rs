//! Loans between tasks of this host. To another host, the bytes of a loan are sent as a copy.

use std::ptr::NonNull;

use regatta_engine::{Fault, Loans, Peer};
use regatta_memory::Corrupt;
use regatta_memory::views::Views;

use super::{Composite, Far, Near};

impl<N: Near, F: Far> Loans for Composite<N, F> {
    fn lend(&mut self, len: usize) -> Result<(u64, Views), Fault> {
        self.near.lend(len)
    }

    fn loan_came(&mut self, peer: Peer, place: u64) -> Result<(), Fault> {
        self.near.loan_came(peer, place)
    }

    fn borrowed(&mut self, peer: Peer, place: u64, len: u64) -> Result<Views, Fault> {
        if !self.near.shares_memory(peer) {
            return Err(Fault::Corrupt {
                peer,
                what: "a loan came from another host",
            });
        }
        self.near.borrowed(peer, place, len)
    }

    fn loan_at(&self, address: usize) -> Option<(u64, usize)> {
        self.near.loan_at(address)
    }

    fn give_back(&mut self, place: u64) {
        self.near.give_back(place);
    }

    fn share_loan(&mut self, place: u64, reader: Peer) -> Option<u64> {
        let near = self.near.shares_memory(reader);
        near.then(|| self.near.share_loan(place, reader))?
    }

    fn open_loan(&self, name: u64, len: usize) -> Result<NonNull<u8>, Corrupt> {
        self.near.open_loan(name, len)
    }

    fn close_loan(&mut self, name: u64) {
        self.near.close_loan(name);
    }

    fn hand_over_loan(&mut self, place: u64, to: Peer) -> bool {
        self.near.hand_over_loan(place, to)
    }

    fn take_back_loan(&mut self, place: u64, to: Peer) {
        self.near.take_back_loan(place, to);
    }

    fn let_go_of_loans(&mut self) {
        self.near.let_go_of_loans();
    }
}
