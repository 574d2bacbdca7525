//! The engine: one set of semantics under all interfaces.
//!
//! Pure: no clock, no sockets, no threads, no unsafe code. The world comes in through the traits
//! of a [`Transport`]; the caller decides when to call [`Engine::progress`] and how to wait.
//!
//! | file | idea |
//! |---|---|
//! | `transport` | the contract with whatever moves frames: five traits, and [`Transport`], which joins them |
//! | `matching`, `index` | which receive takes which message |
//! | `matched` | messages that a probe has taken out of matching |
//! | `request` | operations that are not complete yet |
//! | `engine` | the state, and progress |
//! | `send`, `receive` | starting operations; their fast paths |
//! | `settle` | finishing them; the fast path |
//! | `arrival` | what each kind of frame does |
//! | `bulk` | large messages |
//! | `queue` | frames that have found no room yet |
//! | `debts` | what a task that leaves still has to get out |
//! | `withdraw` | taking operations back |
//! | `losses` | what the death or departure of a task ends |
//! | `departures` | groups in which a departure ends only calls that wait |
//! | `failed`, `reason` | collectives that fail at one member fail at all, with errors of one class |
//! | `group` | ordered sets of tasks with a context of their own |
//! | `making` | the members of a new group agree on its context |
//! | `epoch` | contexts and numbers of freed groups are used again |
//! | `agreement` | the members of a group agree, whoever dies meanwhile |
//! | `shrink`, `agree` | what on: a group of those that survive, a flag |
//! | `closing` | agreements of groups that are freed are forgotten |
//! | `revoke` | all that is done in a group ends |
//! | `round` | small blocking collectives through shared memory |
//! | `contributions` | what the members have contributed to a round |
//! | `across` | the same for members on several hosts |
//! | `schedule`, `collective`, `reduction` | all other collectives, blocking or not |
//! | `tree` | who tells whom, within a host and between hosts |
//! | `self_messages` | messages of a task to itself |
//! | `error` | the errors of operations |
#![forbid(unsafe_code)]

mod across;
mod agree;
mod agreement;
mod arrival;
mod bulk;
mod closing;
mod collective;
mod contributions;
mod debts;
mod departures;
mod engine;
mod epoch;
mod error;
mod failed;
mod group;
pub mod index;
mod losses;
mod making;
mod matched;
pub mod matching;
mod queue;
mod reason;
mod receive;
mod reduction;
mod request;
mod revoke;
mod round;
mod schedule;
mod self_messages;
mod send;
mod settle;
mod shrink;
mod transport;
mod tree;
mod withdraw;

pub use bulk::Going;
pub use collective::{Parts, Reduction};
pub use engine::{Engine, Settings};
pub use epoch::Spaces;
pub use error::{Error, Result};
pub use group::{Group, GroupId};
pub use making::{Call, no_place};
pub use matched::Message;
pub use matching::{Select, TagSelect};
pub use reason::Reason;
pub use receive::Attempt;
pub use request::{Handle, NOBODY, Status};
pub use round::{COLLECTIVE_BUFFER_DEPTH, LED_FROM, Need, Round};
pub use self_messages::{ReceiptCredit, ReceiptCredits};
pub use send::Mode;
pub use shrink::Shrinking;
pub use transport::{
    Arrival, CollectiveBuffers, Fault, Flow, Frames, Loans, Part, Peer, Peers, Presence, Sent,
    SentLine, Streams, Transport,
};
