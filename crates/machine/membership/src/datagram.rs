//! A datagram: a header, and either foca's bytes or a message of this crate.
//!
//! The header has the machine and the sender's lineage and epoch, so that a host that is behind notices at the first
//! datagram of any host, and accepts nothing from another lineage.

use regatta_wire::fields::{Bytes, Field, Rest, Short, whole};
use regatta_wire::{Malformed, choices, fields};

use crate::ballot::Vote;
use crate::host::{Facts, HostId};
use crate::lineage::Lineage;
use crate::roll::Change;

/// Bytes before the body: magic byte, version, machine, the sender's lineage and epoch, the flags `ON_ROLL` and `LIVE`,
/// and the kind.
pub(crate) const HEAD: usize = 12 + Lineage::BYTES;

const MARK: u8 = b'R';
const VERSION: u8 = 3;

/// The header of a datagram, without the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub machine: u32,
    pub lineage: Lineage,
    pub epoch: u32,
    /// Whether the sender is on its own roll.
    pub is_on_roll: bool,
    /// Whether the sender sees a quorum of its roll, so that its lineage goes on.
    pub live: bool,
}

/// Bits of the sender's flag byte.
const ON_ROLL: u8 = 1;
const LIVE: u8 = 2;

/// The body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// For foca, or from it.
    Swim(Rest),
    /// The sender leaves. Its daemon runs on for a moment, to vote.
    Bye(HostId),
    /// The receiver is suspected with this incarnation, and should object to the sender.
    Accused {
        by: HostId,
        host: HostId,
        incarnation: u16,
    },
    /// The hosts that the sender suspects, with their incarnations.
    Suspects(Short<(HostId, u16)>),
    /// The receiver's `HostId` is older than one known for its address (its clock was set back); this is the known one.
    Taken(HostId),
    /// The sender is at `epoch` and requests the later changes or, if these are too many, the pages of the roll from
    /// `page` on.
    Behind { by: HostId, epoch: u32, page: u32 },
    /// The changes from `epoch` on; each leads to the next epoch.
    Changes { epoch: u32, changes: Short<Change> },
    /// One page of a whole roll.
    Page(Page),
    /// Asks the receiver to send its facts to this host.
    Ask(HostId),
    /// The facts of a host.
    Facts(HostId, Facts),
    /// The id of the sender, for a host that may be of another lineage.
    Hail(HostId),
    /// A step of a vote on the roll of `epoch`.
    Vote { by: HostId, epoch: u32, vote: Vote },
}
choices!(Body {
    0 Swim(bytes),
    1 Bye(host),
    2 Accused { by, host, incarnation },
    3 Behind { by, epoch, page },
    4 Changes { epoch, changes },
    5 Page(page),
    6 Ask(by),
    7 Facts(host, facts),
    8 Vote { by, epoch, vote },
    9 Taken(host),
    10 Suspects(suspects),
    11 Hail(host)
});

/// Hosts of a roll, with their place in the order of arrival and their facts, if known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub epoch: u32,
    /// Number of hosts that have ever arrived; the next one gets this number.
    pub next: u32,
    /// Number of hosts on the roll.
    pub total: u32,
    /// Index in the roll of the first host on this page.
    pub first: u32,
    pub hosts: Short<(HostId, u32, Option<Facts>)>,
}
fields!(Page {
    epoch,
    next,
    total,
    first,
    hosts
});

impl Field for Head {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&[MARK, VERSION]);
        self.machine.put(to);
        self.lineage.put(to);
        self.epoch.put(to);
        to.push(u8::from(self.is_on_roll) * ON_ROLL + u8::from(self.live) * LIVE);
    }

    fn take(from: &mut Bytes) -> Result<Head, Malformed> {
        if <[u8; 2]>::take(from)? != [MARK, VERSION] {
            return Err(Malformed);
        }
        let (machine, lineage, epoch, [flags]) = <(_, _, _, [u8; 1])>::take(from)?;
        Ok(Head {
            machine,
            lineage,
            epoch,
            is_on_roll: flags & ON_ROLL != 0,
            live: flags & LIVE != 0,
        })
    }
}

pub(crate) fn encode(head: Head, body: &Body) -> Vec<u8> {
    let mut to = Vec::with_capacity(128);
    head.put(&mut to);
    body.put(&mut to);
    to
}

/// Decodes a datagram whose length has been checked. Accepts any bytes.
pub(crate) fn decode(bytes: &[u8]) -> Result<(Head, Body), Malformed> {
    whole(bytes)
}
