//! The questions that an agreement answers: who survives, in a new group with a context; or a flag, all bits that all have set.
//!
//! *What is agreed on* is everything that a call returns. Of a flag that is the flag, and the first member, if there is one, that has died and that not
//! all who take part had acknowledged when they called. So all that survive return the same.
//!
//! *Whose flags count.* The flags of all that survive do. One that dies meanwhile may have given its flag before, or not.
//! Members that left in good order have no flag and are no failure.

use regatta_memory::views::Views;

use crate::epoch::MAX_EPOCH;
use crate::error::Error;
use crate::groups::Groups;
use crate::transport::{Peer, Presence, Transport};

/// The error of an agreement at a task that others do not reach.
pub(crate) const LEFT_OUT: Error = Error::State(c"the others took this task for dead");

/// The question that an agreement answers, and what is known of that so far.
pub(crate) enum Subject {
    /// The survivors' group. The lowest group number that is free at all members heard from; the epoch is in the upper 32 bits.
    Survivors(u64),
    /// A flag.
    Flag(Vote),
}

/// The part of members in an agreement on a flag: this one's, and of those that it has heard of as a leader.
pub(crate) struct Vote {
    flags: u64,
    /// Whom all of these have acknowledged, by rank.
    acknowledged: Vec<bool>,
    /// Request and memory of the caller; `None` once nobody waits for it any more.
    waits: Option<(u32, Views)>,
}

impl Subject {
    /// A flag of this task, with the members that it has acknowledged. The flag agreed on goes to the memory of a request.
    pub(crate) fn flag(flag: i32, acknowledged: Vec<bool>, waits: (u32, Views)) -> Subject {
        Subject::Flag(Vote {
            flags: u64::from(flag as u32),
            acknowledged,
            waits: Some(waits),
        })
    }

    /// Returns whether it is a new group.
    pub(crate) fn is_group(&self) -> bool {
        matches!(self, Subject::Survivors(_))
    }

    /// Returns this member's part, for a leader.
    pub(crate) fn brings(&self) -> (u64, Option<&Vec<bool>>) {
        match self {
            Subject::Survivors(free) => (*free, None),
            Subject::Flag(vote) => (vote.flags, Some(&vote.acknowledged)),
        }
    }

    /// Adds the part of a member that has answered.
    pub(crate) fn take_in(&mut self, brings: u64, acknowledged: &[bool]) {
        match self {
            // All would enter an epoch in which nobody believes, and wait for each other there.
            Subject::Survivors(_) if brings >> 32 > MAX_EPOCH => {}
            Subject::Survivors(free) => *free = (*free).max(brings),
            Subject::Flag(vote) => {
                vote.flags &= brings;
                let both = vote.acknowledged.iter_mut().zip(acknowledged);
                both.for_each(|(all, one)| *all &= one);
            }
        }
    }

    /// Returns whether there is a number for the survivors, if there is to be a group of them. If all of the epoch are used up, the next one is entered.
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

    /// Returns the words of a choice. Of a new group: its context, with the epoch in the upper 32 bits. Of a flag: the flag, and the rank of a member that
    /// has died and is not acknowledged, + 1.
    pub(crate) fn words<T: Transport>(
        &self,
        groups: &mut Groups<T>,
        (members, context): (&[Peer], u32),
        survives: &[bool],
    ) -> [u64; 2] {
        match self {
            Subject::Survivors(free) => {
                // Another one may have gone on to the next epoch meanwhile, and this one has.
                let number = groups.epochs.survivors_number(*free);
                // A context that makes no sense is another group's: `Groups::fill` says so.
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

    /// Gives the flag to whoever waits for it, now that it is known. Returns whether the caller has what came of the agreement.
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
            // Not what is known of it here: all return the same.
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

    /// Drops the memory of the flag for which this request waits: nobody does any more.
    pub(crate) fn drop_request(&mut self, request: u32) {
        if let Subject::Flag(vote) = self {
            vote.waits.take_if(|(waiting, _)| *waiting == request);
        }
    }
}
