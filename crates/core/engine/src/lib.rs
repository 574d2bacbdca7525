//! The engine: one set of semantics under all interfaces.
//!
//! Pure: no clock, no sockets, no threads, no unsafe code. The world comes in through the traits
//! of a [`Transport`]; the caller decides when to call [`Engine::progress`] and how to wait.
//!
//! The layers from the bottom up. Each calls only those below it; a lower layer keeps what it has for a higher one until asked.
//!
//! ```text
//! 1  messages         transport        the contract of whatever moves frames: six traits, and Transport, which joins them
//!                     matching, index  which receive takes which message
//!                     request          operations that are not complete
//!                     numbers          contexts and tags: which are whose
//!                     point_to_point   messages between two tasks
//!
//! 2  groups           tree             who tells whom, within a host and between hosts
//!                     group            ordered tasks with a context of their own
//!                     groups           the rules of messages that depend on who is in a group
//!                     failed, reason   a collective that fails at one member fails at every member, with errors of one class
//!
//! 3  what members     schedule         collectives by messages, as steps
//!    do together      epoch            contexts of freed groups are used again
//!                     making           the members of a new group agree on its context
//!                     agreement        the members of a group agree, whoever dies meanwhile
//!                     subject          what on: a group of those that survive, a flag
//!                     closing          agreements of groups that are freed are forgotten
//!                     revoke           all that is done in a group ends
//!
//! 4  the engine       engine           holds all of these, and makes progress
//!
//! 5  calls            kind             the kinds of collectives, a table: who gives and gets what
//!                     operation        a collective as a value
//!    on the engine    algorithm        which algorithm it takes
//!                     collective       starting collectives, and carrying on those whose callers wait
//!                     round            small blocking ones through shared memory
//!                     contributions    what the members have contributed to a round
//!                     contents         what a member contributes, and what it reads
//!                     folding          how it combines that
//!                     room             the memory for rounds, made when it is first needed
//!                     across           the same for members on several hosts
//!                     steps            all other collectives, blocking or not, as steps
//!                     reduction        the steps of reductions
//!                     leaders          the steps of short parts that go by the first members of hosts
//!                     shrink           agreeing on survivors, or on a flag
//!                     departures       groups in which a departure ends only calls that wait
//!
//!    error is the error of all of them
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
