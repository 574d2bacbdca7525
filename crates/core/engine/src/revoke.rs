//! A group is revoked: whatever its members do in it ends with an error, wherever they are in that.
//!
//! ```text
//! the member that revokes              all others, each when it first hears of it
//! Revoked  ─────────────────────────>  ends what it does in the group
//!                                      Revoked ──> its neighbours, who are told twice rather than not at all
//! ```
//!
//! *States.* To a member a group is not revoked, or is, for ever. With the change, all in one step: receives, sends, collectives and
//! new groups that are under way end with [`Error::Revoked`]; the group is broken with that error, which every later collective meets
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
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

use crate::agreement;
use crate::arrival::{Body, charge};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::matching::Waiting;
use crate::queue::Content;
use crate::transport::{Peer, Presence, Transport};

/// The tag of the word: just before those of agreements, with which it is taken in.
pub(crate) const TAG: i32 = agreement::TAGS - 1;

/// In a group that is not larger everybody tells everybody.
const SMALL: usize = 16;
/// So many words are kept of groups that this task does not have, the latest. They are made soon, or never.
const EARLY: usize = 1 << 12;

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
    contexts: FxHashSet<u32>,
    /// Contexts of which word has come and was not looked at, and from whom.
    heard: Vec<(u32, Peer)>,
    /// Words of groups that this task does not have, or not yet.
    early: VecDeque<(u32, Peer)>,
    /// Somebody is gone: others may have become neighbours.
    lost: bool,
}

impl Revocations {
    /// Word of a peer.
    pub(crate) fn hear(&mut self, context: u32, from: Peer) {
        self.heard.push((context & !1, from));
    }

    /// The group of which this peer speaks is not there, or not yet.
    fn keep(&mut self, context: u32, from: Peer) {
        if self.early.len() >= EARLY {
            self.early.pop_front();
        }
        self.early.push_back((context, from));
    }

    /// Nobody is told any more that these are revoked.
    pub(crate) fn forget(&mut self, is: impl Fn(u32) -> bool) {
        self.list.retain(|one| !is(one.context));
        self.contexts.retain(|&context| !is(context));
    }

    /// These contexts are used again.
    pub(crate) fn forget_early(&mut self, is: impl Fn(u32) -> bool) {
        self.early.retain(|&(context, _)| !is(context));
        self.heard.retain(|&(context, _)| !is(context));
    }

    /// Word has come of a group that is only now there.
    pub(crate) fn made(&mut self, context: u32) -> bool {
        let before = self.heard.len();
        if !self.early.is_empty() {
            let of_it = self.early.iter().filter(|(early, _)| *early == context);
            self.heard.extend(of_it);
            self.early.retain(|(early, _)| *early != context);
        }
        self.heard.len() > before
    }

    /// A peer is gone.
    pub(crate) fn note_loss(&mut self) {
        self.lost = true;
    }
}

/// The ranks that the member with this one tells, of those that are there.
fn neighbours(rank: usize, there: &[bool]) -> Vec<usize> {
    let size = there.len();
    if size <= SMALL {
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

impl<T: Transport> Engine<T> {
    /// Revoke a group: all its members will know. One of them calls, or several.
    pub fn revoke(&mut self, id: GroupId) -> Result<()> {
        self.closed(id)?;
        self.revoke_tied(id, true);
        Ok(())
    }

    /// Is the group revoked, as far as this task knows?
    pub fn is_revoked(&self, id: GroupId) -> Result<bool> {
        Ok(self.closed(id)?.is_revoked())
    }

    /// From now on the two are revoked together.
    pub fn tie(&mut self, one: GroupId, other: GroupId) -> Result<()> {
        let revoked = [self.is_revoked(one)?, self.is_revoked(other)?];
        self.groups.tie(one, other);
        match revoked {
            [true, false] => self.revoke_tied(other, true),
            [false, true] => self.revoke_tied(one, true),
            _ => {}
        }
        Ok(())
    }

    /// Is this a context of a group that is revoked? Mostly none is.
    pub(crate) fn is_revoked_context(&self, context: u32) -> bool {
        let contexts = &self.revocations.contexts;
        !contexts.is_empty() && contexts.contains(&(context & !1))
    }

    /// May something that has to wait be begun in this context? Word may have come in the same call.
    pub(crate) fn check_open(&self, context: u32, tag: i32) -> Result<()> {
        match self.is_revoked_context(context) && !Self::is_kept(context, tag) {
            true => Err(Error::Revoked),
            false => Ok(()),
        }
    }

    /// Deal with word that has come, and with losses.
    pub(crate) fn run_revocations(&mut self) -> bool {
        let heard = std::mem::take(&mut self.revocations.heard);
        let moved = !heard.is_empty();
        for (context, from) in heard {
            let is_member = |id| self.group(id).is_ok_and(|it| it.rank_of(from).is_some());
            match self.groups.id_of(context) {
                Some(id) if is_member(id) => self.revoke_tied(id, false),
                // A group that was to have this context, and will not be there.
                Some(_) => {}
                None if self.is_revoked_context(context) => {}
                None => self.revocations.keep(context, from),
            }
        }
        if std::mem::take(&mut self.revocations.lost) {
            for at in 0..self.revocations.list.len() {
                self.tell_of_revocation(at, false);
            }
        }
        moved
    }

    /// Revokes a group and all that are tied to it, as far as they are not; `first`: nobody else may know of it.
    fn revoke_tied(&mut self, id: GroupId, first: bool) {
        for id in self.groups.tied(id) {
            let Ok(group) = self.group_mut(id) else {
                continue;
            };
            if group.is_revoked() {
                continue;
            }
            group.close();
            let (context, rank, members) = (group.context, group.rank as usize, group.peers());
            if id == GroupId::WORLD {
                self.open_world = 0;
            }
            self.note_revoked(context, members, rank, first);
        }
    }

    /// A group with this context is revoked, also if this task has none and others may.
    pub(crate) fn note_revoked(
        &mut self,
        context: u32,
        members: Vec<Peer>,
        rank: usize,
        first: bool,
    ) {
        self.revocations.contexts.insert(context);
        self.is_whole = false;
        self.revocations.list.push(Revocation {
            context,
            told: vec![false; members.len()],
            members,
            rank,
        });
        self.tell_of_revocation(self.revocations.list.len() - 1, first);
        self.end_all_of(context);
    }

    fn tell_of_revocation(&mut self, at: usize, all: bool) {
        let one = &self.revocations.list[at];
        let is_there = |&peer: &Peer| peer != self.me && self.presence(peer) == Presence::Here;
        let there: Vec<bool> = one.members.iter().map(is_there).collect();
        let ranks = match all {
            true => (0..there.len()).filter(|&rank| there[rank]).collect(),
            false => neighbours(one.rank, &there),
        };
        let frame = Frame {
            kind: Kind::Eager,
            context: one.context + 1,
            tag: TAG,
        };
        for rank in ranks {
            let one = &mut self.revocations.list[at];
            if !std::mem::replace(&mut one.told[rank], true) {
                let to = one.members[rank];
                // One that cannot be told any more is gone itself.
                let _ = self.send_ahead(to, frame, &[]);
            }
        }
    }

    /// All that is under way in a group ends, except agreements.
    fn end_all_of(&mut self, context: u32) {
        let ends = |other: u32, tag: i32| other & !1 == context && !Self::is_kept(other, tag);
        self.end_posted(&ends);
        self.end_makings_of(context + 1);
        self.end_messages(&ends);
        self.drop_waiting(&ends);
        self.run_schedules();
    }

    /// Messages of agreements on a group, which go on when it is revoked.
    fn is_kept(context: u32, tag: i32) -> bool {
        Self::is_agreement(context, tag) && tag < crate::making::TAGS
    }

    fn end_posted(&mut self, ends: &impl Fn(u32, i32) -> bool) {
        // No receive of an agreement is ever posted.
        let posted = self.posted.iter();
        let posted = posted.filter(|(_, (select, _))| ends(select.context, 0));
        let ended: Vec<(u32, u32)> = posted
            .map(|(number, (_, request))| (number, request))
            .collect();
        for (number, request) in ended {
            self.posted.remove(number);
            self.requests.complete(request, Some(Error::Revoked));
        }
    }

    /// Messages that move, or have found no room.
    fn end_messages(&mut self, ends: &impl Fn(u32, i32) -> bool) {
        self.end_bulk(ends);
        self.end_stranded(ends);
        let mut ended = Vec::new();
        self.queued.retain(|_, queue| {
            queue.retain(|queued| {
                let Content::Message(_, request) = queued.content else {
                    return true;
                };
                let stays = !ends(queued.frame.context, queued.frame.tag);
                ended.extend((!stays).then_some(request));
                stays
            });
            !queue.is_empty()
        });
        for request in ended {
            self.requests.complete(request, Some(Error::Revoked));
        }
    }

    /// Messages that nobody will receive. Messages on offer stay: their senders take them back.
    fn drop_waiting(&mut self, ends: &impl Fn(u32, i32) -> bool) {
        let dropped = |message: &Waiting<Body>| {
            ends(message.context, message.tag)
                && matches!(
                    message.body,
                    Body::Bytes(_) | Body::Own(..) | Body::Loan { .. }
                )
        };
        let waiting = self.unexpected.iter();
        let waiting = waiting.filter(|(_, message)| dropped(message));
        let ids: Vec<u32> = waiting.map(|(id, _)| id).collect();
        for message in ids {
            if let Some(message) = self.unexpected.remove(message) {
                self.drop_body(message.body, Error::Revoked);
            }
        }
        while let Some(body) = self.matched.withdraw(dropped, &Error::Revoked) {
            self.drop_body(body, Error::Revoked);
        }
    }

    /// Drops a message that nobody will receive, for this reason. Those that are on offer or have been are not dropped here.
    pub(crate) fn drop_body(&mut self, body: Body, why: Error) {
        match body {
            Body::Bytes(bytes) => self.buffered -= charge(bytes.len()),
            Body::Told(bytes, credit) => {
                self.buffered -= charge(bytes.len());
                self.credits.pay(credit);
            }
            Body::Own(_, sender) => self.requests.complete(sender, Some(why)),
            Body::Loan { place, .. } => self.transport.give_back(place),
            Body::Offer(_) | Body::Arriving(..) | Body::Withdrawn(..) => {}
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
