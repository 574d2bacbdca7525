//! Duplicating a communicator while the program goes on.

use std::ffi::c_int;
use std::sync::Arc;

use regatta_sys as rg;

use super::{Communicator, Inherited, Made, Remote, registry};
use crate::abi::*;
use crate::error::{Error, Result, checked};
use crate::requests::{Operation, State};

/// The groups of a duplicate, which the engine makes: the program's, the hidden one, and that of the own side.
struct Groups([rg::Group; 3]);

/// A duplicate that is being made.
struct Duplication {
    /// The engine writes there.
    groups: Box<Groups>,
    requests: [rg::Request; 3],
    /// The original, and the parts of the duplicate beside its groups.
    rest: Option<(Arc<Communicator>, Inherited)>,
    /// The handle of the duplicate, which leads nowhere yet.
    handle: Comm,
    outcome: Result,
    state: State,
}

/// Begins to duplicate a communicator: the handle of the duplicate, which is to be used when the operation is complete.
pub fn begin(comm: Arc<Communicator>, inherited: Inherited) -> Result<(Comm, Box<dyn Operation>)> {
    let mut groups = Box::new(Groups([rg::Group { id: -1 }; 3]));
    let mut requests = [rg::REQUEST_NULL; 3];
    let sources = [
        Some(comm.group),
        Some(comm.group),
        comm.remote.as_ref().map(|it| it.own),
    ];
    for (at, source) in sources.into_iter().enumerate() {
        if let Some(source) = source {
            // SAFETY: both stay until the request is complete: the groups have their own place in memory.
            checked(unsafe { rg::rg_igroup_dup(source, &mut groups.0[at], &mut requests[at]) })?;
        }
    }
    let handle = registry::reserve()?;
    let operation = Duplication {
        groups,
        requests,
        rest: Some((comm, inherited)),
        handle,
        outcome: Ok(()),
        state: State::Pending,
    };
    Ok((handle, Box::new(operation)))
}

impl Duplication {
    /// All groups are there.
    fn publish(&mut self) {
        self.state = State::Complete;
        let Some((comm, inherited)) = self.rest.take() else {
            return;
        };
        if self.outcome.is_err() {
            registry::give_up(self.handle);
            return;
        }
        let [group, hidden, own] = self.groups.0;
        let remote = comm.remote.as_ref().map(|remote| Remote {
            members: remote.members.clone(),
            base: remote.base,
            own,
        });
        let made = Made {
            group,
            hidden,
            local: comm.local.clone(),
            rank: comm.rank,
            base: comm.base,
            remote,
        };
        registry::fill(made.with_handle(self.handle, inherited));
    }
}

impl Operation for Duplication {
    fn state(&self) -> State {
        self.state
    }

    fn waits_for(&self) -> &[rg::Request] {
        &self.requests
    }

    fn completed(&mut self, index: usize, _status: &rg::Status, code: c_int) {
        self.requests[index] = rg::REQUEST_NULL;
        if self.outcome.is_ok() {
            self.outcome = checked(code);
        }
        if self.requests.iter().all(|it| *it == rg::REQUEST_NULL) {
            self.publish();
        }
    }

    fn finish(&mut self) -> (Status, Result) {
        let outcome = std::mem::replace(&mut self.outcome, Ok(()));
        (self.look(), outcome)
    }

    fn look(&self) -> Status {
        Status::empty(ANY_SOURCE)
    }

    fn cancel(&mut self) -> Result {
        let text = "a communicator that is being duplicated cannot be cancelled";
        Err(Error::new(ERR_REQUEST, text))
    }
}
