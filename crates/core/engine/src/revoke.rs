//! A group is revoked: whatever its members do in it ends with an error, wherever they are in that.
//!
//! ```text
//! the member that revokes              all others, each when it first hears of it
//! Revoked  ─────────────────────────>  ends what it does in the group
//!                                      Revoked ──> its neighbours, who are told twice rather than not at all
//! ```
//!
//! *States.* To a member a group is not revoked, or is, for ever. With the change, all in one step: receives, sends, collectives and
//! new groups that are under way end with `Error::Revoked`; the group is broken with that error, which every later collective meets
//! where it looks for a death; its messages that wait are dropped; and the neighbours are told. Agreements (`agreement`) go on,
//! and can be begun: by these the members go on together.
//!
//! *Who is told.* The first member tells all. Every other one tells the next member that is there at each distance of 1, 2, 4, ... in
//! both directions, or all members of a small group. When a member is lost that changes who is next, and those are told then. So a
//! member that is there hears of it from the one before it, whoever dies, as long as anybody lives that knows.
//!
//! *Groups that are tied* are revoked together: the word about one is the word about all. Only this task knows that they are tied,
//! so it tells the members of each.
//!
//! *Word that comes early.* A member can hear of it before its own making of the group is over. It keeps the context, and who said
//! so.
//!
//! *Groups that some members do not get.* A new group is made of messages in the old one. If that is revoked meanwhile, some members may
//! have the new group already, and others never will. A member that has agreed to the new group's context and gives up tells the others that
//! the new group is revoked: so nobody waits there for one that is not in it. The context may have been refused by somebody, and be
//! another group's there; of that the one that gives up is no member. So word counts only if it comes from a member.
//!
//! The word is an empty frame in the group's collective context, with a tag of its own. It is taken in where others have to
//! wait for room, and goes ahead of frames that do.

use regatta_wire::{Frame, Kind};
use std::collections::VecDeque;

use crate::error::Result;
use crate::group::GroupId;
use crate::groups::Groups;
use crate::numbers;
use crate::transport::{Peer, Presence, Transport};

/// Maximum size of a group in which everybody tells everybody.
const MAX_MEMBERS_TOLD_BY_ALL: usize = 16;
/// Maximum number of words kept of groups that this task does not have, the latest. They are made soon, or never.
const MAX_EARLY_WORDS: usize = 1 << 12;

/// A group that is revoked, also when this task has freed it: others may have to be told.
struct Revocation {
    /// That of its messages.
    context: u32,
    members: Vec<Peer>,
    rank: usize,
    /// By rank.
    told: Vec<bool>,
}

/// All that is known of groups that are revoked.
#[derive(Default)]
pub(crate) struct Revocations {
    list: Vec<Revocation>,
    /// Contexts of which word has come and was not looked at, and from whom.
    heard: Vec<(u32, Peer)>,
    /// Words of groups that this task does not have, or not yet.
    early: VecDeque<(u32, Peer)>,
    /// Somebody is gone: others may have become neighbours.
    lost: bool,
}

impl Revocations {
    /// Notes word of a peer.
    pub(crate) fn hear(&mut self, context: u32, from: Peer) {
        self.heard.push((context & !1, from));
    }

    /// Keeps word of a group that is not there, or not yet.
    fn keep(&mut self, context: u32, from: Peer) {
        if self.early.len() >= MAX_EARLY_WORDS {
            self.early.pop_front();
        }
        self.early.push_back((context, from));
    }

    /// Forgets revocations: nobody is told of them any more.
    pub(crate) fn forget(&mut self, is: impl Fn(u32) -> bool) {
        self.list.retain(|one| !is(one.context));
    }

    /// Forgets words about contexts that are used again.
    pub(crate) fn forget_early(&mut self, is: impl Fn(u32) -> bool) {
        self.early.retain(|&(context, _)| !is(context));
        self.heard.retain(|&(context, _)| !is(context));
    }

    /// Notes that a group is there now. Returns whether word of it has come early.
    pub(crate) fn made(&mut self, context: u32) -> bool {
        let before = self.heard.len();
        if !self.early.is_empty() {
            let of_it = self.early.iter().filter(|(early, _)| *early == context);
            self.heard.extend(of_it);
            self.early.retain(|(early, _)| *early != context);
        }
        self.heard.len() > before
    }

    /// Notes that a peer is gone.
    pub(crate) fn note_loss(&mut self) {
        self.lost = true;
    }
}

/// Returns the ranks that the member with this one tells, of those that are there.
fn neighbours(rank: usize, there: &[bool]) -> Vec<usize> {
    let size = there.len();
    if size <= MAX_MEMBERS_TOLD_BY_ALL {
        return (0..size).filter(|&rank| there[rank]).collect();
    }
    let distances = (0..)
        .map(|k| 1 << k)
        .take_while(|&distance| distance < size);
    let next = |distance: usize| {
        let mut forward = (distance..size).map(|step| (rank + step) % size);
        let mut backward = (distance..size).map(|step| (rank + size - step) % size);
        [
            forward.find(|&one| there[one]),
            backward.find(|&one| there[one]),
        ]
    };
    let mut found: Vec<usize> = distances.flat_map(next).flatten().collect();
    found.sort_unstable();
    found.dedup();
    found
}

impl Revocations {
    /// Ties two groups: from now on they are revoked together.
    pub(crate) fn tie<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        one: GroupId,
        other: GroupId,
    ) -> Result<()> {
        let revoked = [
            groups.closed(one)?.is_revoked(),
            groups.closed(other)?.is_revoked(),
        ];
        groups.table.tie(one, other);
        match revoked {
            [true, false] => self.revoke(groups, other, true),
            [false, true] => self.revoke(groups, one, true),
            _ => {}
        }
        Ok(())
    }

    /// Handles word that has come, and losses. Returns whether anything moved.
    pub(crate) fn run<T: Transport>(&mut self, groups: &mut Groups<T>) -> bool {
        let heard = std::mem::take(&mut self.heard);
        let moved = !heard.is_empty();
        for (context, from) in heard {
            let is_member = |id| {
                let group = groups.group(id);
                group.is_ok_and(|group| group.rank_of(from).is_some())
            };
            match groups.table.id_of(context) {
                Some(id) if is_member(id) => self.revoke(groups, id, false),
                // A group that was to have this context, and will not be there.
                Some(_) => {}
                None if groups.contexts().is_closed(context) => {}
                None => self.keep(context, from),
            }
        }
        if std::mem::take(&mut self.lost) {
            for at in 0..self.list.len() {
                self.tell(groups, at, false);
            }
        }
        moved
    }

    /// Revokes a group and all that are tied to it, as far as they are not; `first`: nobody else may know of it. Groups that are being made from
    /// them are left to [`Makings::end_closed`](crate::making::Makings::end_closed).
    pub(crate) fn revoke<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        id: GroupId,
        first: bool,
    ) {
        for id in groups.table.tied(id) {
            if let Some((context, rank, members)) = groups.close(id) {
                self.note(groups, (context, members, rank), first);
            }
        }
    }

    /// Revokes the group with this context, also if this task has none and others may.
    pub(crate) fn note<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        (context, members, rank): (u32, Vec<Peer>, usize),
        first: bool,
    ) {
        self.list.push(Revocation {
            context,
            told: vec![false; members.len()],
            members,
            rank,
        });
        self.tell(groups, self.list.len() - 1, first);
        groups.close_context(context);
    }

    fn tell<T: Transport>(&mut self, groups: &mut Groups<T>, at: usize, all: bool) {
        let one = &mut self.list[at];
        let is_there =
            |&peer: &Peer| peer != groups.me() && groups.presence(peer) == Presence::Here;
        let there: Vec<bool> = one.members.iter().map(is_there).collect();
        let ranks = match all {
            true => (0..there.len()).filter(|&rank| there[rank]).collect(),
            false => neighbours(one.rank, &there),
        };
        let frame = Frame {
            kind: Kind::Eager,
            context: one.context + 1,
            tag: numbers::REVOKED_TAG,
        };
        for rank in ranks {
            if !std::mem::replace(&mut one.told[rank], true) {
                // One that cannot be told any more is gone itself.
                let _ = groups.send_ahead(one.members[rank], frame, &[]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks that know in the end, if the first one that does has told nobody but its neighbours.
    fn reached(there: &[bool], first: usize) -> Vec<bool> {
        let mut knows = vec![false; there.len()];
        let mut next = vec![first];
        while let Some(rank) = next.pop() {
            if !std::mem::replace(&mut knows[rank], true) {
                next.extend(neighbours(rank, there));
            }
        }
        knows
    }

    #[test]
    fn the_word_reaches_all_that_are_there_whoever_is_not() {
        let mut state = 1u64;
        for size in [1, 2, 16, 17, 40, 129] {
            for tenths in 0..10 {
                let mut draw = || {
                    state = state
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    (state >> 33) % 10 >= tenths
                };
                let mut there: Vec<bool> = (0..size).map(|_| draw()).collect();
                there[0] = true;
                assert_eq!(reached(&there, 0), there, "{size}, {tenths} tenths gone");
            }
        }
    }

    #[test]
    fn in_a_large_group_nobody_tells_many() {
        let there = vec![true; 1000];
        assert!((0..1000).all(|rank| neighbours(rank, &there).len() <= 20));
    }
}
