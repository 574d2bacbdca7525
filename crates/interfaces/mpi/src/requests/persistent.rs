//! Persistent requests: an operation that is begun again at each start.

use std::ffi::c_int;

use regatta_sys as rg;

use super::{Operation, State, dissolve};
use crate::abi::*;
use crate::error::{Error, Result};

/// A persistent operation.
pub struct Persistent<F> {
    begin: F,
    begun: Option<Box<dyn Operation>>,
}

impl<F: FnMut() -> Result<Request> + Send> Persistent<F> {
    /// Returns an inactive operation. `begin` begins it and returns a request for it; its arguments have been checked.
    pub fn new(begin: F) -> Persistent<F> {
        Persistent { begin, begun: None }
    }
}

impl<F: FnMut() -> Result<Request> + Send> Operation for Persistent<F> {
    fn state(&self) -> State {
        self.begun
            .as_ref()
            .map_or(State::Inactive, |begun| begun.state())
    }

    fn waits_for(&self) -> &[rg::Request] {
        self.begun.as_ref().map_or(&[], |begun| begun.waits_for())
    }

    fn completed(&mut self, index: usize, status: &rg::Status, code: c_int) {
        if let Some(begun) = &mut self.begun {
            begun.completed(index, status, code);
        }
    }

    fn finish(&mut self) -> (Status, Result) {
        match self.begun.take() {
            Some(mut begun) => begun.finish(),
            None => (Status::empty(ANY_SOURCE), Ok(())),
        }
    }

    fn look(&self) -> Status {
        let begun = self.begun.as_ref();
        begun.map_or(Status::empty(ANY_SOURCE), |begun| begun.look())
    }

    fn start(&mut self) -> Result {
        if self.begun.is_some() {
            let text = "the request is active: it was started and is not complete";
            return Err(Error::new(ERR_REQUEST, text));
        }
        self.begun = Some(dissolve((self.begin)()?)?);
        Ok(())
    }

    fn is_persistent(&self) -> bool {
        true
    }

    /// Returns false while it is inactive: until then it is not known what will be begun.
    fn has_stages(&self) -> bool {
        self.begun.as_ref().is_some_and(|begun| begun.has_stages())
    }

    fn cancel(&mut self) -> Result {
        self.begun.as_mut().map_or(Ok(()), |begun| begun.cancel())
    }
}
