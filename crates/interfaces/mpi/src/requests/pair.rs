//! Two operations as one, which is complete when both are. Its status is that of the second one.

use std::ffi::c_int;

use regatta_sys as rg;

use super::{Operation, State};
use crate::abi::*;
use crate::error::Result;

/// A send and a receive.
pub struct Pair {
    parts: [Box<dyn Operation>; 2],
    /// The requests of the first operation, then those of the second.
    requests: Vec<rg::Request>,
    /// Number of requests of the first operation.
    first: usize,
    /// Called once, when both are complete.
    after: Option<Box<dyn FnOnce() + Send>>,
}

impl Pair {
    /// Combines two operations. `after` is called when both are complete.
    pub fn new(parts: [Box<dyn Operation>; 2], after: Option<Box<dyn FnOnce() + Send>>) -> Pair {
        let mut pair = Pair {
            parts,
            requests: Vec::new(),
            first: 0,
            after,
        };
        pair.collect();
        pair
    }

    fn collect(&mut self) {
        self.requests.clear();
        let [first, second] = &self.parts;
        if first.state() == State::Pending {
            self.requests.extend_from_slice(first.waits_for());
        }
        self.first = self.requests.len();
        if second.state() == State::Pending {
            self.requests.extend_from_slice(second.waits_for());
        }
    }
}

impl Operation for Pair {
    fn state(&self) -> State {
        let pending = self.parts.iter().any(|part| part.state() == State::Pending);
        if pending {
            State::Pending
        } else {
            State::Complete
        }
    }

    fn waits_for(&self) -> &[rg::Request] {
        &self.requests
    }

    fn completed(&mut self, index: usize, status: &rg::Status, code: c_int) {
        match index.checked_sub(self.first) {
            None => self.parts[0].completed(index, status, code),
            Some(index) => self.parts[1].completed(index, status, code),
        }
        self.collect();
    }

    fn finish(&mut self) -> (Status, Result) {
        let (_, first) = self.parts[0].finish();
        let (status, second) = self.parts[1].finish();
        if let Some(after) = self.after.take() {
            after();
        }
        (status, first.and(second))
    }

    fn look(&self) -> Status {
        self.parts[1].look()
    }

    fn has_stages(&self) -> bool {
        self.parts.iter().any(|part| part.has_stages())
    }

    fn cancel(&mut self) -> Result {
        self.parts[1].cancel()
    }
}
