//! A datagram: a head, and either foca's bytes or one of our own messages.
//!
//! The head names the machine and the sender's lineage and epoch, so that whoever is behind notices at the first datagram of anybody, and
//! takes nothing from another lineage.

use regatta_wire::fields::{Bytes, Field, Rest, Short, whole};
use regatta_wire::{Malformed, choices, fields};

use crate::ballot::Vote;
use crate::host::{Facts, HostId};
use crate::lineage::Lineage;
use crate::roll::Change;

/// Bytes before the body: a mark, the version, the machine, the sender's lineage and epoch, whether it goes on, the kind.
pub(crate) const HEAD: usize = 12 + Lineage::BYTES;

const MARK: u8 = b'R';
const VERSION: u8 = 3;

/// The head of a datagram, without its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub machine: u32,
    pub lineage: Lineage,
    pub epoch: u32,
    /// The sender is on its roll.
    pub counts: bool,
    /// The sender sees a quorum of its roll, so its lineage goes on.
    pub live: bool,
}

/// Bits of the byte that holds both words about the sender.
const COUNTS: u8 = 1;
const LIVE: u8 = 2;

/// The body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// For foca, or from it.
    Swim(Rest),
    /// The sender leaves. Its daemon stays for a moment, to vote.
    Bye(HostId),
    /// You are suspected at this incarnation: object, to the sender.
    Accused {
        by: HostId,
        host: HostId,
        incarnation: u16,
    },
    /// The hosts that the sender suspects, at which incarnations.
    Suspects(Short<(HostId, u16)>),
    /// You call yourself by a name that is used up; this is the latest at your address.
    Taken(HostId),
    /// The sender is at `epoch`: tell it what came after; or the pages from `page` on, if that is too much to tell.
    Behind { by: HostId, epoch: u32, page: u32 },
    /// The changes from `epoch` on; each makes the next epoch.
    Changes { epoch: u32, changes: Short<Change> },
    /// One page of a whole roll.
    Page(Page),
    /// Tell the sender your facts.
    Ask(HostId),
    /// The facts of a host.
    Facts(HostId, Facts),
    /// The name of the sender: to a host that may be of another lineage.
    Hail(HostId),
    /// A step of a vote on what the roll of `epoch` shall be.
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

/// Hosts of a roll, with their place in the order of arrival and what is known of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub epoch: u32,
    /// Arrivals up to now.
    pub next: u32,
    /// How many hosts the roll has.
    pub total: u32,
    /// Which of them come first here.
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
        to.push(u8::from(self.counts) * COUNTS + u8::from(self.live) * LIVE);
    }

    fn take(from: &mut Bytes) -> Result<Head, Malformed> {
        if <[u8; 2]>::take(from)? != [MARK, VERSION] {
            return Err(Malformed);
        }
        let (machine, lineage, epoch, [words]) = <(_, _, _, [u8; 1])>::take(from)?;
        Ok(Head {
            machine,
            lineage,
            epoch,
            counts: words & COUNTS != 0,
            live: words & LIVE != 0,
        })
    }
}

pub(crate) fn encode(head: Head, body: &Body) -> Vec<u8> {
    let mut to = Vec::with_capacity(128);
    head.put(&mut to);
    body.put(&mut to);
    to
}

/// Reads a datagram whose length is known to be sane; whatever it holds, the answer is a body or an error.
pub(crate) fn decode(bytes: &[u8]) -> Result<(Head, Body), Malformed> {
    whole(bytes)
}
