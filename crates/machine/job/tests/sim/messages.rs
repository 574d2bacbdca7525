//! Messages between launchers and hosts, as they are sent.

use regatta_job::Ended;
use regatta_job::failover::{Handover, SuccessionOrder};
use regatta_job::registry::Refused;
use regatta_job::spawn::Prepared;
use regatta_wire::control::{RequestError, Route, StreamState};
use regatta_wire::life::Cause;
use regatta_wire::messages;
use regatta_wire::world::World;

messages! {
    /// From a launcher to a host.
    pub Down {
        /// A piece of a snapshot or change.
        1 Copy { change: bool, bytes: Vec<u8>, last: bool }
        /// Requests the number of changes that have been applied.
        2 Confirm {}
        /// A message for a task.
        3 Message { task: u32, bytes: Vec<u8> }
        /// A task is gone.
        4 Gone { task: u32, cause: Option<Cause> }
        /// The hosts that may lead next.
        5 Order { order: SuccessionOrder }
        /// This launcher announces that it leads.
        6 Lead {}
        /// This launcher does not lead after all.
        7 GaveUp {}
        /// Requests the state, for a launcher that knows this many changes.
        8 AskState { changes: u64 }
        /// Prepare tasks.
        9 Prepare { spawn: u32, count: u32, route: Option<Route> }
        /// Enter tasks into the table.
        10 Enter { world: World }
        /// Start tasks that are prepared.
        11 Start { spawn: u32, first: u32, count: u32 }
        /// To an arriving host: prepare. It has this id.
        12 PrepareHost { id: u32 }
        /// To an arriving host: it has joined the job.
        13 Begin {}
        /// This many bytes for the job's output have been consumed.
        14 Credit { bytes: u32 }
        /// A task has received this many bytes of output from others, or does not receive any more.
        15 Taken { by: u32, bytes: u32 }
        /// Requests the host's time, for a task's request with this number.
        16 Clock { by: u32, id: u32 }
    }
}

messages! {
    /// From a host to its launcher.
    pub Up {
        /// The owner is lost: these runs may take the host over.
        1 OwnerLost { successors: Vec<String> }
        /// The announcement has been received.
        2 Ready {}
        /// The host's state, and a later replica if it has one.
        3 Handover { handover: Handover, snapshot: Option<Vec<u8>> }
        /// A task's request.
        4 Request { task: u32, bytes: Vec<u8> }
        /// A task has received this many messages.
        5 Received { task: u32, count: u32 }
        /// This many changes have been applied.
        6 Applied { changes: u64 }
        /// A task has ended.
        7 Ended { ended: Ended }
        /// This many tasks are prepared, or why not.
        8 Prepared { spawn: u32, count: u32, refused: Option<(RequestError, String)> }
        /// Tasks have been entered.
        9 Entered { first: u32 }
        /// A task has been started, or why not.
        10 Started { task: u32, refused: Option<(RequestError, String)> }
        /// An arriving host is prepared.
        11 HostPrepared { id: u32 }
        /// Output for the job.
        12 Output { task: u32, bytes: Vec<u8> }
        /// Output for another task.
        13 Caught { task: u32, stream: u32, route: Route, bytes: Vec<u8>, then: StreamState }
        /// The answer to a request for the time.
        14 Clock { by: u32, id: u32, time: u64 }
    }
}

/// Returns an outcome from its encoded form.
pub fn outcome(refused: Option<Refused>) -> Result<(), Refused> {
    refused.map_or(Ok(()), Err)
}

/// Returns the addresses at which tasks will listen. Only their number is encoded here.
pub fn prepared(count: u32, refused: Option<Refused>) -> Prepared {
    outcome(refused).map(|()| vec![None; count as usize])
}
