//! Inputs of the membership's state machine, and its outputs.

use std::net::SocketAddr;

use crate::host::{Facts, HostId};

/// An input: something that a daemon reports to its [`crate::Membership`].
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A datagram came.
    Datagram {
        /// From this socket.
        from: SocketAddr,
        /// Authentic: the daemon has checked that a member of this machine sent it.
        bytes: &'a [u8],
    },
    /// The deadline has passed.
    Timer,
    /// Create a machine, of this host alone.
    CreateMachine,
    /// Join the machine that the daemon at this address belongs to. May be given several times; the addresses are called until one answers.
    Join {
        /// Where that daemon listens.
        address: SocketAddr,
    },
    /// Leave cleanly. [`Event::Departed`] tells when the daemon may end.
    Leave,
    /// The daemon of `host` is gone for certain: its host refused a connection to it. So only the daemon is dead.
    DaemonGone {
        /// Whose daemon.
        host: HostId,
    },
    /// The operator vouches that all hosts which do not answer are dead, so this side of a split goes on without a majority.
    Vouch,
}

/// An output: something that the daemon must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a datagram. It may get lost.
    Send {
        /// To this socket.
        to: SocketAddr,
        /// At most as many as [`crate::Settings::datagram`].
        bytes: Vec<u8>,
    },
    /// Something happened.
    Event(Event),
}

/// An event, as this host sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A host is there.
    HostUp(HostId),
    /// Its name, cores and architecture have become known. After it is up, and before it is dead or has left.
    Described(HostId, Facts),
    /// It did not answer; unless it objects, it will be declared dead.
    Suspected(HostId),
    /// It is silent: look whether its daemon is gone ([`Input::DaemonGone`]).
    Examine(HostId),
    /// It answered after all.
    Cleared(HostId),
    /// It is dead. Processes that still run there belong to nobody any more.
    Dead(HostId, Cause),
    /// It has left cleanly.
    Left(HostId),
    /// Too few of the known hosts answer, so this host takes on no work: the others may be alive, and at work without us.
    Minority {
        /// Hosts that answer, this one included.
        seen: usize,
        /// Hosts that were agreed on last.
        known: usize,
    },
    /// This host is one of a majority, and may take on work.
    Majority {
        /// Hosts that answer, this one included.
        seen: usize,
        /// Hosts that were agreed on last.
        known: usize,
    },
    /// This host goes on as a new one, and must end what it ran as the old one.
    Renewed {
        /// Its name until now.
        old: HostId,
        /// Its name from now on.
        new: HostId,
        /// Why it had to give up the old one.
        why: Renewal,
    },
    /// This host and the one at this address belong to the two sides of a split, and neither side has a majority of its roll: none goes on
    /// until an operator vouches on one of them.
    Deadlock(SocketAddr),
    /// While this host had no majority, the daemons of all hosts that are not here have ended, and their hosts say so: the machine was ended
    /// without this host, whose daemon must end too.
    Ended,
    /// All have agreed that this host has left, or it has waited long enough.
    Departed,
}

/// Why a host counts as dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It stopped answering: the host is dead, or cut off.
    Silent,
    /// Its daemon is gone; the host lives.
    DaemonGone,
    /// Its daemon runs anew, or was declared dead wrongly and has taken a new name.
    Replaced,
    /// It belongs to the side of a split that gave way to the one this host belongs to now.
    GaveWay,
}

/// Why a host goes on under a new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The others had declared it dead.
    DeclaredDead,
    /// An operator has vouched on its side of a split that the others were dead. They live, and a majority of them goes on.
    WronglyVouched,
    /// Operators have vouched on both sides of a split, and the other side goes on.
    BothVouched,
    /// Its side of a split gave way to the other one, which goes on.
    GaveWay,
}

/// Whether this host may take on work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is not, or not yet again, one of the agreed hosts.
    Outside,
    /// It is one of a majority.
    Majority,
    /// It is one of too few.
    Minority,
}
