//! Revocation of a group: every operation of its members in it ends with an error.
//!
//! ```text
//! the member that revokes              every other member, when it first receives Revoked
//! Revoked  ─────────────────────────>  ends its operations in the group
//!                                      Revoked ──> its neighbours, which may receive it more than once
//! ```
//!
//! *States.* At each member a group changes once from not revoked to revoked. In a single step, receives, sends, collectives and new groups in
//! progress end with `Error::Revoked`; the group is broken with that error, so every later collective fails when it checks for a death; waiting
//! messages are dropped; and the neighbours are notified. Agreements (`agreement`) continue and can be started: with them the members recover.
//!
//! *Who is notified.* The first member notifies all others. Every other member notifies the next living member at each distance of 1, 2, 4, ... in
//! both directions, or all members of a small group. When a member is lost, the next living members change, and the new ones are notified then. So a
//! living member is notified by the living member before it, whichever members die, as long as one that knows is alive.
//!
//! *Tied groups* are revoked together: a revocation of one counts for all. Only this task knows that they are tied, so it notifies the members of
//! each of them.
//!
//! *Early messages.* A member can receive a revocation before it has made the group. It keeps the context and the sender.
//!
//! *Groups that some members do not get.* A new group is made by messages in the old one. If the old one is revoked meanwhile, some members may
//! already have the new group, and others will never have it. A member that has agreed to the new group's context and gives up notifies the others
//! that the new group is revoked, so that no member waits for one that is not in it. Another member may have refused the context and use it for a
//! different group. The member that gives up is not in that group, so a revocation counts only if its sender is a member.
//!
//! The message is an empty frame in the group's collective context, with its own tag. It is accepted even if the receiver's buffer is full, and is
//! sent ahead of frames that wait for space.

use regatta_wire::{Frame, Kind};
use std::collections::VecDeque;

use crate::error::Result;
use crate::group::GroupId;
use crate::groups::Groups;
use crate::numbers;
use crate::transport::{Peer, Presence, Transport};

/// Maximum size of a group in which every member notifies all others.
const MAX_MEMBERS_TOLD_BY_ALL: usize = 16;
/// Maximum number of revocations kept for groups that this task does not have. The latest are kept. Such groups are made soon, or never.
const MAX_EARLY_WORDS: usize = 1 << 12;

/// A revoked group. Kept even if this task has freed the group, since other members may have to be notified.
struct Revocation {
    /// The group's context.
    context: u32,
    members: Vec<Peer>,
    rank: usize,
    /// Whether each rank was notified.
    told: Vec<bool>,
}

/// Everything known about revoked groups.
#[derive(Default)]
pub(crate) struct Revocations {
    list: Vec<Revocation>,
    /// Received revocations that were not handled yet: (context, sender).
    heard: Vec<(u32, Peer)>,
    /// Revocations of groups that this task does not have, or not yet.
    early: VecDeque<(u32, Peer)>,
    /// A task is gone, so other members may have become neighbours.
    lost: bool,
}

impl Revocations {
    /// Records a revocation received from a peer.
    pub(crate) fn hear(&mut self, context: u32, from: Peer) {
        self.heard.push((context & !1, from));
    }

    /// Keeps a revocation of a group that this task does not have, or not yet.
    fn keep(&mut self, context: u32, from: Peer) {
        if self.early.len() >= MAX_EARLY_WORDS {
            self.early.pop_front();
        }
        self.early.push_back((context, from));
    }

    /// Forgets revocations for whose context `is` returns true: no more members are notified of them.
    pub(crate) fn forget(&mut self, is: impl Fn(u32) -> bool) {
        self.list.retain(|one| !is(one.context));
    }

    /// Forgets received messages about contexts that are being reused.
    pub(crate) fn forget_early(&mut self, is: impl Fn(u32) -> bool) {
        self.early.retain(|&(context, _)| !is(context));
        self.heard.retain(|&(context, _)| !is(context));
    }

    /// Records that a group was made. Returns whether a revocation of it was received earlier.
    pub(crate) fn made(&mut self, context: u32) -> bool {
        let before = self.heard.len();
        if !self.early.is_empty() {
            let of_it = self.early.iter().filter(|(early, _)| *early == context);
            self.heard.extend(of_it);
            self.early.retain(|(early, _)| *early != context);
        }
        self.heard.len() > before
    }

    /// Records that a peer is gone.
    pub(crate) fn note_loss(&mut self) {
        self.lost = true;
    }
}

/// Returns the ranks of the living members that the member with this rank notifies.
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
    /// Ties two groups: if one of them is revoked, the other is, too.
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

    /// Handles received revocations, and losses. Returns whether anything changed.
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
                // The revocation concerns a group that was to have this context and will not be made.
                Some(_) => {}
                None if groups.contexts().is_closed(context) => {}
                None => {
                    groups.give_up_buffers_in(context, from);
                    self.keep(context, from);
                }
            }
        }
        if std::mem::take(&mut self.lost) {
            for at in 0..self.list.len() {
                self.tell(groups, at, false);
            }
        }
        moved
    }

    /// Revokes a group and all groups that are tied to it, unless they are revoked already. If `first` is true, no other member may know of it, and
    /// all are notified. Groups that are being made from the revoked ones are left to [`Makings::end_closed`](crate::making::Makings::end_closed).
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

    /// Records that the group with this context is revoked, and notifies its members, even if this task does not have the group.
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
                // Ignore the error: a peer that cannot be reached is gone.
                let _ = groups.send_ahead(one.members[rank], frame, &[]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the ranks that are notified in the end if the first one that knows notifies only its neighbours.
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
