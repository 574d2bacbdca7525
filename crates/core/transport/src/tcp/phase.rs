//! Where a link stands with its connection.

use std::io::{self, IoSliceMut};
use std::time::{Duration, Instant};

use regatta_connection::channel::Channel;
use regatta_connection::dial;
use regatta_connection::handshake::Shake;
use regatta_wire::link::{HEAD, Head, Parcel};

use super::link::{CLOSED, Link, Trouble, send_first};

const NONSENSE: &str = "a connection begins with nonsense";

/// The state of the connection of a link.
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
    bytes: [u8; HEAD],
    have: usize,
    /// This task called.
    called: bool,
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

impl Link {
    /// Takes a connection whose ends know each other in the place of the one before, and says how far this side got there.
    pub(super) fn adopt(&mut self, mut channel: Channel, called: bool) -> Result<(), Trouble> {
        // Bytes that have come on the connection before need not come again, and could not from a peer that has ended since.
        self.read_out();
        self.forget_connection();
        self.bypass = None;
        let said = send_first(&mut channel, &self.first_head());
        self.phase = Phase::Resuming(Resuming {
            channel,
            bytes: [0; HEAD],
            have: 0,
            called,
        });
        said
    }

    /// Receives the first parcel of a connection as far as it has come, no byte further; behind it parcels flow. An error: the
    /// connection has ended before.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        let Phase::Resuming(resuming) = &mut self.phase else {
            return Ok(());
        };
        while resuming.have < HEAD {
            let place = &mut resuming.bytes[resuming.have..];
            match resuming.channel.recv(&mut [IoSliceMut::new(place)])? {
                Some(n) => resuming.have += n,
                None => return Ok(()),
            }
        }
        let first = Head::decode(&resuming.bytes).ok();
        if let Err(trouble) = self.begin_with(first) {
            self.trouble(trouble);
        }
        Ok(())
    }

    fn begin_with(&mut self, first: Option<Head>) -> Result<(), Trouble> {
        if self.fault.is_some() || self.is_cut_for_good() {
            return Err(Trouble::Lost);
        }
        let first = first.ok_or(NONSENSE)?;
        if self.stall.refuses {
            return Err(Trouble::Lost);
        }
        match first.parcel {
            Parcel::Resume => {}
            Parcel::Disowned => return Err(Trouble::Disowned),
            Parcel::Shortage => {
                self.stall.refused = true;
                return Err(Trouble::Lost);
            }
            Parcel::Closed => return Err(CLOSED.into()),
            _ => return Err(NONSENSE.into()),
        }
        if let Phase::Resuming(resuming) = std::mem::replace(&mut self.phase, Phase::Idle) {
            let _ = dial::ask_now_and_then(&resuming.channel, false);
            self.phase = Phase::Open(resuming.channel);
        }
        self.resume(&first)?;
        self.try_pump(1).map(drop)
    }
}

/// How long to rest after so many attempts in vain.
pub(crate) fn rest(attempts: u32) -> Duration {
    const MIN_REST: Duration = Duration::from_millis(10);
    const MAX_REST: Duration = Duration::from_millis(500);
    (MIN_REST * (1 << attempts.min(6))).min(MAX_REST)
}
