//! Operations that consist of more than one request of the engine.

use std::ffi::c_int;

use regatta_sys as rg;

use crate::abi::Status;
use crate::error::{Error, Result};

/// The state of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Persistent and not started.
    Inactive,
    /// Waits for requests of the engine, or for a call of the program.
    Pending,
    /// Complete: `finish` returns its outcome.
    Complete,
}

/// A state machine over requests of the engine. It is locked while it is called. It may call the engine, but must not
/// block.
pub trait Operation: Send {
    /// Returns its state.
    fn state(&self) -> State;

    /// Returns the requests that it waits for now. At least one of them is not null while the operation is pending;
    /// null ones are complete. The waiting caller copies them, and reports the first one that is complete.
    fn waits_for(&self) -> &[rg::Request];

    /// Handles the completion of the request with this index, with this status and code; the request is null from now
    /// on. The operation advances as far as possible.
    fn completed(&mut self, index: usize, status: &rg::Status, code: c_int);

    /// Returns the outcome of a complete operation, once for each completion. A persistent one is inactive afterwards.
    fn finish(&mut self) -> (Status, Result);

    /// Returns the status of a complete operation, which stays complete.
    fn look(&self) -> Status;

    /// Starts a persistent operation.
    fn start(&mut self) -> Result {
        let text = "the request is not persistent";
        Err(Error::new(crate::abi::ERR_REQUEST, text))
    }

    /// Returns whether its request stays valid after completion.
    fn is_persistent(&self) -> bool {
        false
    }

    /// Returns whether other processes may wait for a stage after the first one. Then it advances in all calls that
    /// wait.
    fn has_stages(&self) -> bool {
        false
    }

    /// Returns whether a partition has arrived; `None` if it is not a partitioned receive.
    fn part(&mut self, _partition: c_int) -> Option<Result<bool>> {
        None
    }

    /// Cancels it if that is still possible.
    fn cancel(&mut self) -> Result {
        Ok(())
    }
}
