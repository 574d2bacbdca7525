//! Agreements of groups that are freed are forgotten, when no member needs them any more.
//!
//! Others may ask about an agreement until all that live have decided ([`agreement`](crate::agreement)). A member that has decided all of
//! a group's, and has freed the group, asks no more, and says so:
//!
//! ```text
//! members                           the first that is there
//! Done      ───────────────────>   (it has freed the group, too, and all that are there have said so)
//!           <───────────────────   Forget
//! ```
//!
//! *If that member goes* the next one takes its place, and is told again. Some may have been told to forget by the one that is gone, and
//! know nothing any more. So the new one says Done to all: whoever knows nothing of the group answers Forget. A member that has
//! forgotten has heard that all that live have decided.
//!
//! Words are empty frames in the group's collective context, behind all that their sender has said in it. A member that does not free
//! the group keeps the others from forgetting.

use regatta_wire::{Frame, Kind};

use crate::agreement::Agreement;
use crate::engine::Engine;
use crate::revoke;
use crate::transport::{Peer, Presence, Transport};

/// The tag of Done.
const DONE: i32 = revoke::TAG - 1;
/// The tag of Forget: the first of all tags of words that concern agreements.
pub(crate) const TAG: i32 = DONE - 1;

/// A group that is freed, and had agreements.
struct Closing {
    /// That of its messages.
    context: u32,
    members: Vec<Peer>,
    rank: usize,
    /// The ranks that have said Done to this task.
    done: Vec<bool>,
    /// The rank to which this task has said so.
    told: Option<usize>,
}

/// All groups that are freed, and whose agreements are kept.
#[derive(Default)]
pub(crate) struct Closings {
    list: Vec<Closing>,
    /// Words that have come and were not looked at: of which group, from whom, by which tag.
    heard: Vec<(u32, Peer, i32)>,
    /// Peers that have said Done of groups that this task has not freed.
    early: Vec<(u32, Peer)>,
}

impl Closings {
    /// A word of a peer.
    pub(crate) fn hear(&mut self, context: u32, from: Peer, tag: i32) {
        self.heard.push((context & !1, from, tag));
    }

    /// The contexts of groups that are freed, with their members, whose agreements are kept.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = (u32, &[Peer])> {
        let list = self.list.iter();
        list.map(|one| (one.context, &one.members[..]))
    }

    /// These contexts are used again.
    pub(crate) fn forget_early(&mut self, is: impl Fn(u32) -> bool) {
        self.early.retain(|&(context, _)| !is(context));
        self.heard.retain(|&(context, ..)| !is(context));
    }

    /// Is this the tag of such a word?
    pub(crate) fn is_word(tag: i32) -> bool {
        tag == DONE || tag == TAG
    }
}

impl<T: Transport> Engine<T> {
    /// A group is freed. Its agreements, if it had any, are forgotten when nobody needs them.
    pub(crate) fn close_agreements(&mut self, context: u32, members: Vec<Peer>, rank: usize) {
        let is_of = |one: &Agreement| one.context == context + 1;
        let has_some = self.agreements.iter().any(is_of);
        let mut done = vec![false; members.len()];
        self.closings.early.retain(|&(of, from)| {
            let rank = members.iter().position(|&peer| peer == from);
            if let (true, Some(rank)) = (of == context, rank) {
                done[rank] = true;
            }
            of != context
        });
        if has_some {
            self.closings.list.push(Closing {
                context,
                members,
                rank,
                done,
                told: None,
            });
            self.stirred = true;
        }
    }

    /// Deals with words that have come, and says what there is to say.
    pub(crate) fn run_closings(&mut self) -> bool {
        // A group would seem to have no agreements.
        if self.epochs.agreements_run {
            self.stirred = true;
            return false;
        }
        let heard = std::mem::take(&mut self.closings.heard);
        let mut moved = !heard.is_empty();
        for (context, from, tag) in heard {
            self.closing_word(context, from, tag);
        }
        for at in (0..self.closings.list.len()).rev() {
            moved |= self.run_closing(at);
        }
        moved
    }

    fn closing_word(&mut self, context: u32, from: Peer, tag: i32) {
        let mut list = self.closings.list.iter_mut();
        let known = list.position(|it| it.context == context);
        let rank = known.and_then(|at| {
            let mut members = self.closings.list[at].members.iter();
            members.position(|&peer| peer == from)
        });
        match (known, rank) {
            (Some(at), Some(rank)) if tag == DONE => self.closings.list[at].done[rank] = true,
            (Some(at), Some(_)) => self.forget_closing(at),
            // Of a stranger.
            (Some(_), None) => {}
            (None, _) if tag != DONE => {}
            (None, _) if self.groups.id_of(context).is_some() => {
                self.closings.early.push((context, from));
            }
            (None, _) => self.say(from, context, TAG),
        }
    }

    /// The next step of a group's end, if there is one.
    fn run_closing(&mut self, at: usize) -> bool {
        let one = &self.closings.list[at];
        let (context, rank) = (one.context, one.rank);
        let mut of_it = self.agreements.iter();
        if of_it.any(|it| it.context == context + 1 && !it.is_done_with()) {
            return false;
        }
        let is_there = |&peer: &Peer| peer != self.me && self.presence(peer) == Presence::Here;
        let there: Vec<bool> = one.members.iter().map(is_there).collect();
        let others = (0..there.len()).filter(|&rank| there[rank]);
        let others: Vec<usize> = others.collect();
        let first = others.first().copied().unwrap_or(rank).min(rank);
        let is_over = first == rank && others.iter().all(|&other| one.done[other]);
        let is_new = one.told != Some(first);
        let to: Vec<Peer> = match (is_over, first == rank) {
            (true, _) => others.iter().map(|&other| one.members[other]).collect(),
            // Another one was first, and is gone: some may have forgotten.
            (false, true) if is_new && one.told.is_some() => {
                others.iter().map(|&other| one.members[other]).collect()
            }
            (false, false) if is_new => vec![one.members[first]],
            _ => Vec::new(),
        };
        self.closings.list[at].told = Some(first);
        let tag = if is_over { TAG } else { DONE };
        for &peer in &to {
            self.say(peer, context, tag);
        }
        if is_over {
            self.forget_closing(at);
        }
        is_over || !to.is_empty()
    }

    fn forget_closing(&mut self, at: usize) {
        let one = self.closings.list.swap_remove(at);
        self.agreements.retain(|it| it.context != one.context + 1);
    }

    fn say(&mut self, to: Peer, context: u32, tag: i32) {
        let frame = Frame {
            kind: Kind::Eager,
            context: context + 1,
            tag,
        };
        // One that cannot be told any more is gone itself.
        let _ = self.send_or_queue(to, frame, &[]);
    }
}
