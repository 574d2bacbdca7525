//! A datagram: a head, and either foca's bytes or one of our own messages.
//!
//! The head names the machine and the sender's lineage and epoch, so that whoever is behind notices at the first datagram of anybody, and
//! takes nothing from another lineage.

use crate::ballot::{Ballot, Vote};
use crate::bytes::{Reader, Short};
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

/// Of the byte that holds both words about the sender.
const COUNTS: u8 = 1;
const LIVE: u8 = 2;

/// The body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body<'a> {
    /// For foca, or from it.
    Swim(&'a [u8]),
    /// The sender leaves. Its daemon stays for a moment, to vote.
    Bye(HostId),
    /// You are suspected at this incarnation: object, to the sender.
    Accused {
        by: HostId,
        host: HostId,
        incarnation: u16,
    },
    /// The hosts that the sender suspects, at which incarnations.
    Suspects(Vec<(HostId, u16)>),
    /// You call yourself by a name that is used up; this is the latest at your address.
    Taken(HostId),
    /// The sender is at `epoch`: tell it what came after; or the pages from `page` on, if that is too much to tell.
    Behind { by: HostId, epoch: u32, page: u32 },
    /// The changes from `epoch` on; each makes the next epoch.
    Changes { epoch: u32, changes: Vec<Change> },
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
    pub hosts: Vec<(HostId, u32, Option<Facts>)>,
}

pub(crate) fn encode(head: Head, body: &Body<'_>) -> Vec<u8> {
    let mut to = Vec::with_capacity(128);
    to.extend_from_slice(&[MARK, VERSION]);
    to.extend_from_slice(&head.machine.to_le_bytes());
    head.lineage.encode(&mut to);
    to.extend_from_slice(&head.epoch.to_le_bytes());
    to.push(u8::from(head.counts) * COUNTS + u8::from(head.live) * LIVE);
    encode_body(body, &mut to);
    to
}

fn encode_body(body: &Body<'_>, to: &mut Vec<u8>) {
    match body {
        Body::Swim(bytes) => {
            to.push(0);
            to.extend_from_slice(bytes);
        }
        Body::Bye(host) => host.encode(kind(to, 1)),
        Body::Accused {
            by,
            host,
            incarnation,
        } => {
            by.encode(kind(to, 2));
            host.encode(to);
            to.extend_from_slice(&incarnation.to_le_bytes());
        }
        Body::Taken(host) => host.encode(kind(to, 9)),
        Body::Suspects(suspects) => {
            kind(to, 10).push(suspects.len() as u8);
            for (host, incarnation) in suspects {
                host.encode(to);
                to.extend_from_slice(&incarnation.to_le_bytes());
            }
        }
        Body::Behind { by, epoch, page } => {
            by.encode(kind(to, 3));
            to.extend_from_slice(&epoch.to_le_bytes());
            to.extend_from_slice(&page.to_le_bytes());
        }
        Body::Changes { epoch, changes } => {
            kind(to, 4).extend_from_slice(&epoch.to_le_bytes());
            to.push(changes.len() as u8);
            changes.iter().for_each(|change| change.encode(to));
        }
        Body::Page(page) => encode_page(page, kind(to, 5)),
        Body::Hail(host) => host.encode(kind(to, 11)),
        Body::Ask(by) => by.encode(kind(to, 6)),
        Body::Facts(host, facts) => {
            host.encode(kind(to, 7));
            facts.encode(to);
        }
        Body::Vote { by, epoch, vote } => {
            by.encode(kind(to, 8));
            to.extend_from_slice(&epoch.to_le_bytes());
            encode_vote(vote, to);
        }
    }
}

fn kind(to: &mut Vec<u8>, kind: u8) -> &mut Vec<u8> {
    to.push(kind);
    to
}

fn encode_page(page: &Page, to: &mut Vec<u8>) {
    for word in [page.epoch, page.next, page.total, page.first] {
        to.extend_from_slice(&word.to_le_bytes());
    }
    to.push(page.hosts.len() as u8);
    for (host, at, facts) in &page.hosts {
        host.encode(to);
        to.extend_from_slice(&at.to_le_bytes());
        to.push(u8::from(facts.is_some()));
        facts.iter().for_each(|facts| facts.encode(to));
    }
}

fn encode_vote(vote: &Vote, to: &mut Vec<u8>) {
    match vote {
        Vote::Prepare(ballot) => ballot.encode(kind(to, 0)),
        Vote::Promise(ballot, None) => ballot.encode(kind(to, 1)),
        Vote::Promise(ballot, Some((accepted, change))) => {
            ballot.encode(kind(to, 2));
            accepted.encode(to);
            change.encode(to);
        }
        Vote::Accept(ballot, change) => {
            ballot.encode(kind(to, 3));
            change.encode(to);
        }
        Vote::Accepted(ballot) => ballot.encode(kind(to, 4)),
        Vote::Refused(ballot) => ballot.encode(kind(to, 5)),
        Vote::Doubt => to.push(6),
    }
}

/// Reads a datagram whose length is known to be sane; whatever it holds, the answer is a body or an error.
pub(crate) fn decode(bytes: &[u8]) -> Result<(Head, Body<'_>), Short> {
    let mut from = Reader(bytes);
    if from.array()? != [MARK, VERSION] {
        return Err(Short);
    }
    let (machine, lineage, epoch) = (from.u32()?, Lineage::decode(&mut from)?, from.u32()?);
    let words = from.u8()?;
    let head = Head {
        machine,
        lineage,
        epoch,
        counts: words & COUNTS != 0,
        live: words & LIVE != 0,
    };
    let body = match from.u8()? {
        0 => Body::Swim(from.0),
        1 => Body::Bye(HostId::decode(&mut from)?),
        2 => Body::Accused {
            by: HostId::decode(&mut from)?,
            host: HostId::decode(&mut from)?,
            incarnation: from.u16()?,
        },
        3 => Body::Behind {
            by: HostId::decode(&mut from)?,
            epoch: from.u32()?,
            page: from.u32()?,
        },
        4 => {
            let (epoch, count) = (from.u32()?, from.u8()?);
            let changes = (0..count)
                .map(|_| Change::decode(&mut from))
                .collect::<Result<_, _>>()?;
            Body::Changes { epoch, changes }
        }
        5 => Body::Page(decode_page(&mut from)?),
        6 => Body::Ask(HostId::decode(&mut from)?),
        7 => Body::Facts(HostId::decode(&mut from)?, Facts::decode(&mut from)?),
        8 => Body::Vote {
            by: HostId::decode(&mut from)?,
            epoch: from.u32()?,
            vote: decode_vote(&mut from)?,
        },
        9 => Body::Taken(HostId::decode(&mut from)?),
        10 => {
            let count = from.u8()?;
            let suspect = |_| Ok((HostId::decode(&mut from)?, from.u16()?));
            Body::Suspects((0..count).map(suspect).collect::<Result<_, _>>()?)
        }
        11 => Body::Hail(HostId::decode(&mut from)?),
        _ => return Err(Short),
    };
    Ok((head, body))
}

fn decode_page(from: &mut Reader<'_>) -> Result<Page, Short> {
    let [epoch, next, total, first] = [from.u32()?, from.u32()?, from.u32()?, from.u32()?];
    let count = from.u8()?;
    let hosts = (0..count)
        .map(|_| decode_entry(from))
        .collect::<Result<_, _>>()?;
    Ok(Page {
        epoch,
        next,
        total,
        first,
        hosts,
    })
}

fn decode_entry(from: &mut Reader<'_>) -> Result<(HostId, u32, Option<Facts>), Short> {
    let (host, at) = (HostId::decode(from)?, from.u32()?);
    let facts = if from.u8()? == 0 {
        None
    } else {
        Some(Facts::decode(from)?)
    };
    Ok((host, at, facts))
}

fn decode_vote(from: &mut Reader<'_>) -> Result<Vote, Short> {
    Ok(match from.u8()? {
        0 => Vote::Prepare(Ballot::decode(from)?),
        1 => Vote::Promise(Ballot::decode(from)?, None),
        2 => Vote::Promise(
            Ballot::decode(from)?,
            Some((Ballot::decode(from)?, Change::decode(from)?)),
        ),
        3 => Vote::Accept(Ballot::decode(from)?, Change::decode(from)?),
        4 => Vote::Accepted(Ballot::decode(from)?),
        5 => Vote::Refused(Ballot::decode(from)?),
        6 => Vote::Doubt,
        _ => return Err(Short),
    })
}
