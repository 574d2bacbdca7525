//! Nonblocking duplication of a communicator.

use std::ffi::c_int;
use std::sync::Arc;

use regatta_sys as rg;

use super::{Communicator, Inherited, Made, Remote, making, registry};
use crate::abi::*;
use crate::error::{Error, Result, checked};
use crate::requests::{Operation, State};

/// The engine's groups of a duplicate: for the program's messages, the hidden group, and the group of the local
/// processes.
struct Groups([rg::Group; 3]);

/// A duplication in progress.
struct Duplication {
    /// The groups, which the engine writes.
    groups: Box<Groups>,
    /// The engine's requests: for the first two groups, and for the third one.
    requests: [rg::Request; 2],
    /// The duplicate. Its local properties, such as its error handler, can be used before completion.
    handle: Comm,
    outcome: Result,
    state: State,
}

/// Begins to duplicate a communicator. Returns the handle of the duplicate, which can be used for messages once the
/// operation is complete.
pub fn begin(comm: Arc<Communicator>, inherited: Inherited) -> Result<(Comm, Box<dyn Operation>)> {
    let mut groups = Box::new(Groups([rg::Group { id: -1 }; 3]));
    let mut requests = [rg::REQUEST_NULL; 2];
    let (out, none) = (groups.0.as_mut_ptr(), std::ptr::null());
    // SAFETY: the call may write two groups and a request.
    checked(unsafe { rg::rg_igroup_select(comm.group, 0, none, 0, 2, out, &mut requests[0]) })?;
    if let Some(remote) = &comm.remote {
        let (own, request) = (&mut groups.0[2], &mut requests[1]);
        // SAFETY: the call may write both before it returns.
        checked(unsafe { rg::rg_igroup_dup(remote.own, own, request) })?;
    }
    let handle = publish(comm, inherited, groups.0)?;
    let operation = Duplication {
        groups,
        requests,
        handle,
        outcome: Ok(()),
        state: State::Pending,
    };
    Ok((handle, Box::new(operation)))
}

/// Registers the duplicate and returns its handle. The ids of its groups are known, but the groups can be used only
/// once the operation is complete.
fn publish(
    comm: Arc<Communicator>,
    inherited: Inherited,
    [group, hidden, own]: [rg::Group; 3],
) -> Result<Comm> {
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
    let made = registry::insert(|handle| made.with_handle(handle, inherited))?;
    Ok(made.handle)
}

impl Duplication {
    /// Completes the duplication, when all groups have been made or one has failed.
    fn end(&mut self) {
        self.state = State::Complete;
        let [group, hidden, own] = self.groups.0;
        for other in [hidden, own] {
            // SAFETY: the call takes groups by value and no pointers; the third one may be null.
            unsafe { rg::rg_group_tie(group, other) };
        }
        making::tolerate_finalized(group);
        if self.outcome.is_err() {
            // The program may have freed it already.
            let _ = registry::remove(self.handle);
        }
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
            self.end();
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
