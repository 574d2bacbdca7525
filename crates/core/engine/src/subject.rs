//! The questions that an agreement answers: which members survive, in a new group with a context; or a flag, the bitwise AND of the members' flags.
//!
//! *What is agreed on* is everything that a call returns. For a flag that is the flag, and the first dead member, if any, whose death was not
//! acknowledged by all participants when they called. So all survivors return the same.
//!
//! *Whose flags count.* The flags of all survivors. A member that dies meanwhile may have contributed its flag or not. Members that left in good
//! order have no flag and do not count as failures.

use regatta_memory::views::Views;

use crate::epoch::MAX_EPOCH;
use crate::error::Error;
use crate::groups::Groups;
use crate::transport::{Peer, Presence, Transport};

/// The error of an agreement at a task that the other members cannot reach.
pub(crate) const LEFT_OUT: Error = Error::State(c"the other members treated this task as dead");

/// The question that an agreement answers, and what is known of the answer so far.
pub(crate) enum Subject {
    /// A group of the survivors. Contains the lowest group number that is free at all members known so far, with the epoch in the upper 32 bits.
    Survivors(u64),
    /// A flag.
    Flag(Vote),
}

/// Contributions to an agreement on a flag: this member's, combined with those that it has received as a leader.
pub(crate) struct Vote {
    flags: u64,
    /// Whether all of these members have acknowledged the death of each rank.
    acknowledged: Vec<bool>,
    /// Request and memory of the caller. `None` once no caller waits.
    waits: Option<(u32, Views)>,
}

impl Subject {
    /// Creates an agreement on a flag from this task's flag and the members that it has acknowledged. The result will be written to the memory in
    /// `waits`, and its request completed.
    pub(crate) fn flag(flag: i32, acknowledged: Vec<bool>, waits: (u32, Views)) -> Subject {
        Subject::Flag(Vote {
            flags: u64::from(flag as u32),
            acknowledged,
            waits: Some(waits),
        })
    }

    /// Returns whether the agreement is on a new group.
    pub(crate) fn is_group(&self) -> bool {
        matches!(self, Subject::Survivors(_))
    }

    /// Returns this member's contribution, for a leader.
    pub(crate) fn brings(&self) -> (u64, Option<&Vec<bool>>) {
        match self {
            Subject::Survivors(free) => (*free, None),
            Subject::Flag(vote) => (vote.flags, Some(&vote.acknowledged)),
        }
    }

    /// Combines the contribution of a member that has answered.
    pub(crate) fn take_in(&mut self, brings: u64, acknowledged: &[bool]) {
        match self {
            // With such an epoch, all members would enter one that no member accepts, and wait for each other forever.
            Subject::Survivors(_) if brings >> 32 > MAX_EPOCH => {}
            Subject::Survivors(free) => *free = (*free).max(brings),
            Subject::Flag(vote) => {
                vote.flags &= brings;
                let both = vote.acknowledged.iter_mut().zip(acknowledged);
                both.for_each(|(all, one)| *all &= one);
            }
        }
    }

    /// Returns whether a number for a group of survivors is available, if one is needed. If the numbers of the epoch are used up, requests that the
    /// next epoch is entered.
    pub(crate) fn has_numbers<T: Transport>(&self, groups: &mut Groups<T>, context: u32) -> bool {
        let Subject::Survivors(free) = *self else {
            return true;
        };
        let number = groups.epochs.survivors_number(free);
        let found = groups.epochs.survivors(number, context).is_some();
        if !found {
            groups.epochs.enter_next();
        }
        found
    }

    /// Returns the words of a choice. For a new group: its context, with the epoch in the upper 32 bits, and 0. For a flag: the flag, and 1 + the
    /// rank of a dead member that is not acknowledged, or 0.
    pub(crate) fn words<T: Transport>(
        &self,
        groups: &mut Groups<T>,
        (members, context): (&[Peer], u32),
        survives: &[bool],
    ) -> [u64; 2] {
        match self {
            Subject::Survivors(free) => {
                // Another member may have entered the next epoch meanwhile, and so may this task.
                let number = groups.epochs.survivors_number(*free);
                // Context 0 is in use, so `Groups::fill` will report the error.
                let context = groups.epochs.survivors(number, context).unwrap_or(0);
                [context, 0]
            }
            Subject::Flag(vote) => {
                let is_failure = |&rank: &usize| {
                    let left = groups.presence(members[rank]) == Presence::Left;
                    !survives[rank] && !left && !vote.acknowledged[rank]
                };
                let failed = (0..survives.len()).find(is_failure);
                [vote.flags, failed.map_or(0, |rank| rank as u64 + 1)]
            }
        }
    }

    /// Writes the flag for the caller and completes its request, now that the flag is known. Returns whether the caller has the outcome of the
    /// agreement.
    pub(crate) fn end<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        (members, context): (&[Peer], u32),
        ([flag, failed], survives): ([u64; 2], bool),
    ) -> bool {
        let Subject::Flag(vote) = self else {
            return false;
        };
        let Some((request, into)) = vote.waits.take() else {
            return true;
        };
        let failed = (failed as usize).checked_sub(1);
        let failed = failed.and_then(|rank| members.get(rank).copied());
        let error = match survives {
            // Report the agreed member, not what is known here: all members return the same.
            true => failed.map(Error::Dead),
            false => Some(LEFT_OUT),
        };
        if let Some(Error::Dead(peer)) = error {
            groups.note_reported_dead(context, peer);
        }
        if survives {
            into.fill(&(flag as u32).to_ne_bytes());
        }
        groups.complete(request, error);
        true
    }

    /// Drops the memory of the flag if this request waits for it, since the caller has given the request up.
    pub(crate) fn drop_request(&mut self, request: u32) {
        if let Subject::Flag(vote) = self {
            vote.waits.take_if(|(waiting, _)| *waiting == request);
        }
    }
}
