//! Loans: memory of the test's process, by number.

use regatta_engine::{Fault, Loans, Peer};
use regatta_memory::views::{Scratch, Views};

use super::End;

impl Loans for End {
    fn lend(&mut self, len: usize) -> Result<(u64, Views), Fault> {
        let mut net = self.net.0.borrow_mut();
        let place = net.next_loan;
        net.next_loan += 1;
        let memory = Scratch::new(len).expect("memory");
        let views = memory.part(0, len);
        net.loans.insert(place, (memory, len));
        Ok((place, views))
    }

    fn loan_came(&mut self, _peer: Peer, _place: u64) -> Result<(), Fault> {
        Ok(())
    }

    fn borrowed(&mut self, peer: Peer, place: u64, len: u64) -> Result<Views, Fault> {
        let net = self.net.0.borrow();
        let what = "no such loan";
        let (memory, size) = net.loans.get(&place).ok_or(Fault::Corrupt { peer, what })?;
        if len > *size as u64 {
            return Err(Fault::Corrupt { peer, what });
        }
        Ok(memory.part(0, len as usize))
    }

    fn loan_at(&self, _address: usize) -> Option<(u64, usize)> {
        None
    }

    fn give_back(&mut self, place: u64) {
        self.net.0.borrow_mut().loans.remove(&place);
    }
}
