//! The contract of a transport, in six parts. Each part of the engine asks for the one it uses; the sixth is for the process that holds the
//! transport. [`Transport`] joins them.
//!
//! | trait | file | is about |
//! |---|---|---|
//! | [`Peers`] | peers.rs | the tasks of the job: who they are, where, and whether they are still there |
//! | [`Frames`] | frames.rs | small messages and words about large ones, in order |
//! | [`Streams`] | streams.rs | the bytes of large messages |
//! | [`Loans`] | loans.rs | memory that goes to another task as a message |
//! | [`CollectiveBuffers`] | collective_buffers.rs | memory in which all members of a group contribute to a small collective |
//! | [`Upkeep`] | upkeep.rs | what the process asks beside messages: sleeping, leaving, peers out of reach |
//!
//! *Blocking.* No call of any of them waits.
//! *Faults.* Data from a peer is checked by the transport; a peer that breaks the protocol is a [`Fault`], and nothing it sent
//! later is delivered.

mod collective_buffers;
mod frames;
mod loans;
mod peers;
mod streams;
mod upkeep;

pub use collective_buffers::{CollectiveBuffers, Part};
pub use frames::{Arrival, Frames, Polled, SentLine};
pub use loans::Loans;
pub use peers::{Peers, Presence};
pub use streams::{Flow, Sent, Streams};
pub use upkeep::{Reach, Shortage, Upkeep, WaitState};

/// A task, by its number in the job. (Of the first tasks it is their rank in the world.)
pub type Peer = u32;

/// A fault that the transport cannot repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A peer wrote what no correct peer writes. Its connection is closed.
    Corrupt {
        /// The peer.
        peer: Peer,
        /// The finding, for the sentence that the user reads.
        what: &'static str,
    },
    /// Memory for the path to a peer could not be had; says why.
    Memory(String),
    /// The system has refused something else that the path to a peer needs, such as a descriptor; says what. Nothing was sent.
    System(String),
}

/// All that a task needs of whatever moves its frames.
pub trait Transport: Peers + Frames + Streams + Loans + CollectiveBuffers + Upkeep {}

impl<T: Peers + Frames + Streams + Loans + CollectiveBuffers + Upkeep> Transport for T {}
