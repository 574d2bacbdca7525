//! Inputs and outputs of the membership's state machine.

use std::net::SocketAddr;

use crate::host::{Facts, HostId};

/// An input: something that a daemon reports to its [`crate::Membership`].
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A datagram was received.
    Datagram {
        /// The sender's socket address.
        from: SocketAddr,
        /// The content. It is authentic: the daemon has checked that a member of this machine sent it.
        bytes: &'a [u8],
    },
    /// The deadline has passed.
    Timer,
    /// Create a machine that consists of this host.
    CreateMachine,
    /// Join the machine of the daemon at this address. May be given several times; the addresses are called until one
    /// answers.
    Join {
        /// Address at which that daemon listens.
        address: SocketAddr,
    },
    /// Leave cleanly. [`Event::Departed`] says when the daemon may end.
    Leave,
    /// The daemon of `host` is certainly gone: its host refused a connection. So only the daemon is dead.
    DaemonGone {
        /// The host of that daemon.
        host: HostId,
    },
    /// The operator asserts that all hosts which do not answer are dead, so that this side of a split goes on without a
    /// majority.
    Vouch,
}

/// An output: something that the daemon must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a datagram. It may be lost.
    Send {
        /// The receiver's socket address.
        to: SocketAddr,
        /// The content, at most [`crate::Settings::datagram`] bytes.
        bytes: Vec<u8>,
    },
    /// An event.
    Event(Event),
}

/// An event, as this host sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A host is up.
    HostUp(HostId),
    /// The name, cores and architecture of a host have become known. Sent while the host is up.
    Described(HostId, Facts),
    /// A host did not answer. Unless it objects, it will be declared dead.
    Suspected(HostId),
    /// A host is silent: find out whether its daemon is gone ([`Input::DaemonGone`]).
    Examine(HostId),
    /// A suspected host has answered.
    Cleared(HostId),
    /// A host is dead. Processes that still run there no longer belong to any job.
    Dead(HostId, Cause),
    /// A host has left cleanly.
    Left(HostId),
    /// Too few of the known hosts answer, so this host accepts no work: the others may be alive, and at work without
    /// it.
    Minority {
        /// Number of hosts that answer, including this one.
        seen: usize,
        /// Number of hosts that were agreed on last.
        known: usize,
    },
    /// This host is one of a majority, and may accept work.
    Majority {
        /// Number of hosts that answer, including this one.
        seen: usize,
        /// Number of hosts that were agreed on last.
        known: usize,
    },
    /// This host goes on under a new identity, and must end what it ran under the old one.
    Renewed {
        /// Its old identity.
        old: HostId,
        /// Its new identity.
        new: HostId,
        /// Reason why it had to give up the old one.
        why: Renewal,
    },
    /// This host and the one at this address belong to the two sides of a split, and neither side has a majority of its
    /// roll: neither goes on until an operator vouches on one of them.
    Deadlock(SocketAddr),
    /// While this host had no majority, the daemons of all hosts that do not answer have ended, as their hosts confirm:
    /// the machine was ended without this host, whose daemon must end, too.
    Ended,
    /// All others have agreed that this host has left, or it has waited long enough.
    Departed,
}

/// Reason why a host counts as dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It stopped answering: the host is dead, or cut off.
    Silent,
    /// Its daemon is gone; the host is alive.
    DaemonGone,
    /// Its daemon was restarted, or was wrongly declared dead and has taken a new identity.
    Replaced,
    /// It belongs to the side of a split that gave way to the side of this host.
    GaveWay,
}

/// Reason why a host goes on under a new identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The other hosts had declared it dead.
    DeclaredDead,
    /// An operator has vouched on its side of a split that the others were dead. They are alive, and a majority of them
    /// goes on.
    WronglyVouched,
    /// Operators have vouched on both sides of a split, and the other side goes on.
    BothVouched,
    /// Its side of a split gave way to the other side, which goes on.
    GaveWay,
}

/// Whether this host may accept work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is not, or not yet again, one of the agreed hosts.
    Outside,
    /// It is one of a majority.
    Majority,
    /// It is not one of a majority.
    Minority,
}
