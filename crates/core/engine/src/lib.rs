//! The engine: the semantics under all interfaces.
//!
//! Pure: no clock, no sockets, no threads, no unsafe code. All input and output goes through the traits of a [`Transport`]; the caller decides when
//! to call [`Engine::progress`] and how to wait.
//!
//! The layers, from the bottom up. Each calls only those below it. A lower layer keeps data for a higher one until the higher one asks for it.
//!
//! ```text
//! 1  messages         transport        the contract of whatever moves frames: six traits, and Transport, which joins them
//!                     matching, index  which receive takes which message
//!                     request          operations that are not complete
//!                     numbers          ranges of contexts and tags
//!                     point_to_point   messages between two tasks
//!
//! 2  groups           tree             which member sends to which, within a host and between hosts
//!                     group            ordered tasks with their own context
//!                     groups           the rules of messages that depend on the members of a group
//!                     left_buffers     collective buffers that this task has left
//!                     failed, reason   a collective that fails at one member fails at every member, with errors of one class
//!
//! 3  operations of    schedule         collectives by messages, as steps
//!    the members      epoch            reuse of the contexts of freed groups
//!                     making           the members of a new group agree on its context
//!                     agreement        the members of a group agree, even if some die
//!                     subject          what an agreement is about: a group of the survivors, or a flag
//!                     closing          forgets the agreements of freed groups
//!                     revoke           ends all operations in a group
//!
//! 4  the engine       engine           owns all of these, and makes progress
//!
//! 5  calls            kind             the kinds of collectives, a table: which members give and get what
//!                     operation        a collective as a value
//!    on the engine    algorithm        the choice of an algorithm
//!                     collective       starts collectives, and drives those whose callers wait
//!                     round            small blocking collectives through shared memory
//!                     contributions    the members' contributions to a round
//!                     contents         what a member contributes, and what it reads
//!                     folding          how a member combines what it reads
//!                     room             the memory for rounds, allocated when it is first needed
//!                     across           rounds of members on several hosts
//!                     steps            all other collectives, blocking or not, as steps
//!                     reduction        the steps of reductions
//!                     leaders          the steps of short parts sent through the first members of hosts
//!                     shrink           agreement on survivors, or on a flag
//!                     departures       groups in which a departure ends only blocking calls
//!
//! error contains the error type of all modules
//! ```
#![forbid(unsafe_code)]

mod across;
mod agreement;
mod algorithm;
mod closing;
mod collective;
mod contents;
mod contributions;
mod departures;
mod engine;
mod epoch;
mod error;
mod failed;
mod folding;
mod group;
mod groups;
pub mod index;
mod kind;
mod lanes;
mod leaders;
mod left_buffers;
mod making;
pub mod matching;
mod numbers;
mod operation;
mod point_to_point;
mod reason;
mod reduction;
mod request;
mod revoke;
mod room;
mod round;
mod schedule;
mod shrink;
mod steps;
mod subject;
mod transport;
mod tree;

pub use algorithm::{Algorithm, Facts, choose};
pub use collective::{Awaits, Collective};
pub use contents::Terms;
pub use contributions::COLLECTIVE_BUFFER_DEPTH;
pub use engine::Engine;
pub use epoch::Spaces;
pub use error::{Error, Result};
pub use group::{Group, GroupId};
pub use groups::Groups;
pub use kind::{ForKind, Kind};
pub use making::{Call, no_place};
pub use matching::{Select, TagSelect};
pub use operation::{Operation, Parts, Reduction};
pub use point_to_point::credits::{ReceiptCredit, ReceiptCredits};
pub use point_to_point::matched::Message;
pub use point_to_point::{Attempt, Going, PointToPoint, Settings};
pub use reason::Reason;
pub use request::{Handle, Mode, NOBODY, Status};
pub use round::{Need, Round};
pub use shrink::Shrinking;
pub use transport::{
    Arrival, CollectiveBuffers, Fault, Flow, Frames, Loans, Part, Peer, Peers, Polled, Presence,
    Reach, Sent, SentLine, Shortage, Streams, Transport, Upkeep, WaitState,
};
