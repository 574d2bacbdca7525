//! Messages between launchers and hosts, as they travel.

use regatta_job::Ended;
use regatta_job::failover::{Handover, SuccessionOrder};
use regatta_job::registry::Refused;
use regatta_job::spawn::Prepared;
use regatta_wire::control::{Route, Then, Why};
use regatta_wire::life::Cause;
use regatta_wire::messages;
use regatta_wire::world::World;

messages! {
    /// From a launcher to a host.
    pub Down {
        /// A piece of a snapshot or change.
        1 Copy { change: bool, bytes: Vec<u8>, last: bool }
        /// How many changes have been applied?
        2 Confirm {}
        /// For a task.
        3 Message { task: u32, bytes: Vec<u8> }
        /// A task is no more.
        4 Gone { task: u32, cause: Option<Cause> }
        /// The hosts that may lead next.
        5 Order { order: SuccessionOrder }
        /// The word that this launcher leads.
        6 Lead {}
        /// It does not after all.
        7 GaveUp {}
        /// Asks for all that is known, from a launcher that knows so many changes.
        8 AskState { changes: u64 }
        /// Prepare tasks.
        9 Prepare { spawn: u32, count: u32, route: Option<Route> }
        /// Enter tasks into the table.
        10 Enter { world: World }
        /// Start tasks that are prepared.
        11 Start { spawn: u32, first: u32, count: u32 }
        /// To a host that arrives: make everything ready. It has this number among those.
        12 PrepareHost { id: u32 }
        /// To a host that has arrived: it is one of the job's.
        13 Begin {}
        /// This many bytes of output for the job's have been dealt with.
        14 Credit { bytes: u32 }
        /// A task has received so many bytes that others wrote for it, or receives no more.
        15 Taken { by: u32, bytes: u32 }
        /// The host is asked for its time. For a task, by the number of its request.
        16 Clock { by: u32, id: u32 }
    }
}

messages! {
    /// From a host to its launcher.
    pub Up {
        /// The owner is lost: these runs may take the host over.
        1 OwnerLost { successors: Vec<String> }
        /// The word has been heard.
        2 Ready {}
        /// All that is known, and a later replica if there is one.
        3 Handover { handover: Handover, snapshot: Option<Vec<u8>> }
        /// Of a task.
        4 Request { task: u32, bytes: Vec<u8> }
        /// A task has received so many messages.
        5 Received { task: u32, count: u32 }
        /// So many changes have been applied.
        6 Applied { changes: u64 }
        /// A task has ended.
        7 Ended { ended: Ended }
        /// Tasks are prepared: for so many, or why not.
        8 Prepared { spawn: u32, count: u32, refused: Option<(Why, String)> }
        /// Tasks have been entered.
        9 Entered { first: u32 }
        /// A task has been started, or why not.
        10 Started { task: u32, refused: Option<(Why, String)> }
        /// A host that arrives has made everything ready.
        11 HostPrepared { id: u32 }
        /// Output for the job's.
        12 Output { task: u32, bytes: Vec<u8> }
        /// Output for another task.
        13 Caught { task: u32, stream: u32, route: Route, bytes: Vec<u8>, then: Then }
        /// The answer to a question for the time.
        14 Clock { by: u32, id: u32, time: u64 }
    }
}

/// An outcome as it travels.
pub fn outcome(refused: Option<Refused>) -> Result<(), Refused> {
    refused.map_or(Ok(()), Err)
}

/// Where tasks will listen, of which only the number travels here.
pub fn prepared(count: u32, refused: Option<Refused>) -> Prepared {
    outcome(refused).map(|()| vec![None; count as usize])
}
