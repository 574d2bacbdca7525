//! Operations that are more than one request of the engine's.

use std::ffi::c_int;

use regatta_sys as rg;

use crate::abi::Status;
use crate::error::{Error, Result};

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A persistent one that is not started.
    Inactive,
    /// It waits for requests of the engine's, or for a call of the program's.
    Pending,
    /// It is complete: `finish` has its outcome.
    Complete,
}

/// A state machine over requests of the engine's. It is locked while it is called; it may call the engine, but nothing that
/// waits.
pub trait Operation: Send {
    /// How far it is.
    fn state(&self) -> State;

    /// The requests that it waits for now, at least one of them not null while it is pending; null ones are over. The caller that waits copies them, and tells of the first one that is
    /// complete.
    fn waits_for(&self) -> &[rg::Request];

    /// The request in this place is complete, with this status and code: it is null from now on. The operation goes on as
    /// far as it can.
    fn completed(&mut self, index: usize, status: &rg::Status, code: c_int);

    /// The outcome of a complete operation, once for each time it is complete. A persistent one is inactive afterwards.
    fn finish(&mut self) -> (Status, Result);

    /// The status of a complete operation, which stays complete.
    fn look(&self) -> Status;

    /// Starts a persistent one.
    fn start(&mut self) -> Result {
        let text = "the request is not persistent: it was started when it was made";
        Err(Error::new(crate::abi::ERR_REQUEST, text))
    }

    /// Whether its request stays after completion.
    fn is_persistent(&self) -> bool {
        false
    }

    /// Whether others may wait for a part that comes after the first: then it advances in all calls that wait.
    fn has_stages(&self) -> bool {
        false
    }

    /// Whether a partition has arrived; `None` if it is no partitioned receive.
    fn part(&mut self, _partition: c_int) -> Option<Result<bool>> {
        None
    }

    /// Cancels it if that is possible still.
    fn cancel(&mut self) -> Result {
        Ok(())
    }
}
