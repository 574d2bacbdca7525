//! The vote by which a quorum of one roll agrees on the next one: Paxos, one instance for each epoch.
//!
//! Any host may propose; normally only the leader does. A ballot of round 0 belongs to the oldest host of the roll
//! alone, which therefore needs no first phase. A host's promises are kept in memory only: a daemon that is restarted
//! is a different host, which has promised nothing and has no vote until a later roll contains it.

use std::collections::HashSet;

use regatta_wire::fields::{Bytes, Field};
use regatta_wire::{Malformed, fields};

use crate::host::HostId;
use crate::lineage::Lineage;
use crate::roll::Change;

/// A ballot. Ballots are ordered; a host that has promised one accepts no lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ballot {
    pub round: u32,
    pub by: HostId,
}
fields!(Ballot { round, by });

/// The steps of a vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    /// Promise to accept nothing below this ballot, and report what you have accepted.
    Prepare(Ballot),
    /// The promise, with what has been accepted so far.
    Promise(Ballot, Option<(Ballot, Change)>),
    /// Accept this change.
    Accept(Ballot, Change),
    /// The change of this ballot is accepted.
    Accepted(Ballot),
    /// Not accepted: a higher ballot, this one, has been promised.
    Refused(Ballot),
    /// To the leader: the sender has accepted a change and does not know whether it was decided.
    Doubt,
}

impl Field for Vote {
    fn put(&self, to: &mut Vec<u8>) {
        let (kind, ballot) = match self {
            Vote::Prepare(ballot) => (0, ballot),
            Vote::Promise(ballot, None) => (1, ballot),
            Vote::Promise(ballot, Some(_)) => (2, ballot),
            Vote::Accept(ballot, _) => (3, ballot),
            Vote::Accepted(ballot) => (4, ballot),
            Vote::Refused(ballot) => (5, ballot),
            Vote::Doubt => return to.push(6),
        };
        to.push(kind);
        ballot.put(to);
        match self {
            Vote::Promise(_, Some(accepted)) => accepted.put(to),
            Vote::Accept(_, change) => change.put(to),
            _ => {}
        }
    }

    fn take(from: &mut Bytes) -> Result<Vote, Malformed> {
        Ok(match <[u8; 1]>::take(from)? {
            [0] => Vote::Prepare(Field::take(from)?),
            [1] => Vote::Promise(Field::take(from)?, None),
            [2] => Vote::Promise(Field::take(from)?, Some(Field::take(from)?)),
            [3] => Vote::Accept(Field::take(from)?, Field::take(from)?),
            [4] => Vote::Accepted(Field::take(from)?),
            [5] => Vote::Refused(Field::take(from)?),
            [6] => Vote::Doubt,
            _ => return Err(Malformed),
        })
    }
}

/// The promises and acceptances of this host in the current epoch.
#[derive(Default)]
pub(crate) struct Acceptor {
    promised: Option<Ballot>,
    accepted: Option<(Ballot, Change)>,
}

impl Acceptor {
    /// Returns whether this host has accepted a change that may have been decided without its knowledge.
    pub fn in_doubt(&self) -> bool {
        self.accepted.is_some()
    }

    /// Returns the new lineage that this host has accepted, if any. It no longer speaks for the old one then.
    pub fn accepted_fork(&self) -> Option<Lineage> {
        let accepted = self.accepted.as_ref();
        accepted.and_then(|(_, change)| change.fork)
    }

    /// Returns the answer to a step of a proposer, or `None` if the step needs none.
    pub fn answer(&mut self, vote: &Vote) -> Option<Vote> {
        let (Vote::Prepare(ballot) | Vote::Accept(ballot, _)) = vote else {
            return None;
        };
        if let Some(promised) = self.promised.filter(|promised| promised > ballot) {
            return Some(Vote::Refused(promised));
        }
        self.promised = Some(*ballot);
        if let Vote::Accept(_, change) = vote {
            self.accepted = Some((*ballot, change.clone()));
            return Some(Vote::Accepted(*ballot));
        }
        Some(Vote::Promise(*ballot, self.accepted.clone()))
    }
}

/// A vote called by this host.
pub(crate) struct Proposal {
    ballot: Ballot,
    change: Change,
    /// The highest ballot reported in a promise, whose change must be taken over.
    found: Option<Ballot>,
    accepting: bool,
    votes: HashSet<HostId>,
}

impl Proposal {
    /// Proposes `change`: at once if the ballot has round 0, otherwise after collecting promises.
    pub fn new(ballot: Ballot, change: Change) -> Proposal {
        Proposal {
            ballot,
            change,
            found: None,
            accepting: ballot.round == 0,
            votes: HashSet::new(),
        }
    }

    /// Returns the message to hosts that have not voted yet.
    pub fn question(&self) -> Vote {
        match self.accepting {
            true => Vote::Accept(self.ballot, self.change.clone()),
            false => Vote::Prepare(self.ballot),
        }
    }

    pub fn has_voted(&self, host: &HostId) -> bool {
        self.votes.contains(host)
    }

    pub fn change(&self) -> &Change {
        &self.change
    }

    /// Returns whether promises are still being collected.
    pub fn is_preparing(&self) -> bool {
        !self.accepting
    }

    pub fn votes(&self) -> &HashSet<HostId> {
        &self.votes
    }

    /// Makes the change begin a lineage, before any host is asked to accept it.
    pub fn fork(&mut self, lineage: Lineage) {
        self.change.fork.get_or_insert(lineage);
    }

    /// Counts an answer to the current message; ignores late and foreign ones.
    pub fn count(&mut self, by: HostId, vote: Vote) {
        match vote {
            Vote::Promise(ballot, accepted) if ballot == self.ballot && !self.accepting => {
                if let Some((at, change)) = accepted.filter(|(at, _)| Some(*at) > self.found) {
                    (self.found, self.change) = (Some(at), change);
                }
                self.votes.insert(by);
            }
            Vote::Accepted(ballot) if ballot == self.ballot && self.accepting => {
                self.votes.insert(by);
            }
            _ => {}
        }
    }

    /// Moves to the second phase once the first has a quorum. Returns whether the second phase has a quorum, which
    /// decides the proposal. `is_quorum` says whether the voters are a quorum.
    pub fn is_decided(&mut self, is_quorum: impl Fn(&HashSet<HostId>) -> bool) -> bool {
        if !is_quorum(&self.votes) {
            return false;
        }
        if !self.accepting {
            self.accepting = true;
            self.votes.clear();
            return false;
        }
        true
    }
}
