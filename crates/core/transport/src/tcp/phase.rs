//! Where a link stands with its connection.

use std::time::{Duration, Instant};

use regatta_wire::link::HEAD;

use regatta_connection::channel::Channel;
use regatta_connection::handshake::Shake;

/// See the module.
#[derive(Debug)]
pub(crate) enum Phase {
    /// There is none.
    Idle,
    /// The next attempt comes then.
    Resting(Instant),
    /// This task calls.
    Calling(Shake),
    /// Both have proved who they are; each says how far it got on the connection before.
    Resuming(Resuming),
    /// Parcels flow.
    Open(Channel),
}

/// See [`Phase::Resuming`].
#[derive(Debug)]
pub(crate) struct Resuming {
    pub(crate) channel: Channel,
    pub(crate) bytes: [u8; HEAD],
    pub(crate) have: usize,
    /// This task called.
    pub(crate) called: bool,
}

impl Phase {
    /// Is this task's own attempt under way?
    pub(crate) fn is_calling(&self) -> bool {
        match self {
            // A call that has not got through may never do so, and the other side's has.
            Phase::Calling(shake) => shake.has_greeted(),
            Phase::Resuming(resuming) => resuming.called,
            _ => false,
        }
    }
}

/// How long to rest after so many attempts in vain.
pub(crate) fn rest(attempts: u32) -> Duration {
    const FIRST: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_millis(500);
    (FIRST * (1 << attempts.min(6))).min(LONGEST)
}
