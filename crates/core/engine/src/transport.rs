//! The contract of a transport, in six parts. Each part of the engine requires only the ones that it uses; the sixth is for the process that holds
//! the transport. [`Transport`] combines them.
//!
//! | trait | file | is about |
//! |---|---|---|
//! | [`Peers`] | peers.rs | the tasks of the job: their numbers, their hosts, and whether they are alive |
//! | [`Frames`] | frames.rs | small messages and control frames of large ones, in order |
//! | [`Streams`] | streams.rs | the data of large messages |
//! | [`Loans`] | loans.rs | memory that is passed to another task as a message |
//! | [`CollectiveBuffers`] | collective_buffers.rs | memory in which all members of a group contribute to a small collective |
//! | [`Upkeep`] | upkeep.rs | other calls of the process: sleeping, leaving, unreachable peers |
//!
//! *Blocking.* No call blocks.
//! *Faults.* The transport checks data from a peer. A peer that breaks the protocol causes a [`Fault`], and nothing that it has sent later is
//! delivered.

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

/// A task, by its number in the job. For the first tasks of a job, that is their rank in the world.
pub type Peer = u32;

/// A fault that the transport cannot repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A peer wrote data that no correct peer writes. Its connection is closed.
    Corrupt {
        /// The peer.
        peer: Peer,
        /// The finding, as a part of the message to the user.
        what: &'static str,
    },
    /// There is no memory for the path to a peer. Says why.
    Memory(String),
    /// The operating system refused another resource that the path to a peer needs, such as a descriptor. Says which. Nothing was sent.
    System(String),
}

/// Everything that a task needs from the component that moves its frames.
pub trait Transport: Peers + Frames + Streams + Loans + CollectiveBuffers + Upkeep {}

impl<T: Peers + Frames + Streams + Loans + CollectiveBuffers + Upkeep> Transport for T {}
