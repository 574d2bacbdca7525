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

use crate::agreement::Agreements;
use crate::groups::{Freed, Groups};
use crate::numbers::{DONE_TAG, FORGET_TAG};
use crate::transport::{Peer, Presence, Transport};

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
    /// Notes a word of a peer.
    pub(crate) fn hear(&mut self, context: u32, from: Peer, tag: i32) {
        self.heard.push((context & !1, from, tag));
    }

    /// Returns the contexts of groups that are freed, with their members, whose agreements are kept.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = (u32, &[Peer])> {
        let list = self.list.iter();
        list.map(|one| (one.context, &one.members[..]))
    }

    /// Forgets words about contexts that are used again.
    pub(crate) fn forget_early(&mut self, is: impl Fn(u32) -> bool) {
        self.early.retain(|&(context, _)| !is(context));
        self.heard.retain(|&(context, ..)| !is(context));
    }

    /// Notes that a group is freed. Its agreements, if it had any, are forgotten when nobody needs them. Returns whether it had some.
    pub(crate) fn add(&mut self, agreements: &Agreements, freed: Freed) -> bool {
        let Freed {
            context,
            members,
            rank,
        } = freed;
        let mut done = vec![false; members.len()];
        self.early.retain(|&(of, from)| {
            let rank = members.iter().position(|&peer| peer == from);
            if let (true, Some(rank)) = (of == context, rank) {
                done[rank] = true;
            }
            of != context
        });
        let has_some = agreements.has_any_of(context + 1);
        if has_some {
            self.list.push(Closing {
                context,
                members,
                rank,
                done,
                told: None,
            });
        }
        has_some
    }

    /// Handles words that have come, and says what there is to say. Returns whether anything moved.
    pub(crate) fn run<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        agreements: &mut Agreements,
    ) -> bool {
        let heard = std::mem::take(&mut self.heard);
        let mut moved = !heard.is_empty();
        for (context, from, tag) in heard {
            self.word(groups, agreements, (context, from, tag));
        }
        for at in (0..self.list.len()).rev() {
            moved |= self.step(groups, agreements, at);
        }
        moved
    }

    fn word<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        agreements: &mut Agreements,
        (context, from, tag): (u32, Peer, i32),
    ) {
        let known = self.list.iter().position(|it| it.context == context);
        let rank = known.and_then(|at| {
            let mut members = self.list[at].members.iter();
            members.position(|&peer| peer == from)
        });
        match (known, rank) {
            (Some(at), Some(rank)) if tag == DONE_TAG => self.list[at].done[rank] = true,
            (Some(at), Some(_)) => self.forget(agreements, at),
            // Of a stranger.
            (Some(_), None) => {}
            (None, _) if tag != DONE_TAG => {}
            (None, _) if groups.table.id_of(context).is_some() => {
                self.early.push((context, from));
            }
            (None, _) => say(groups, from, context, FORGET_TAG),
        }
    }

    /// Takes the next step of a group's end. Returns whether there is one.
    fn step<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        agreements: &mut Agreements,
        at: usize,
    ) -> bool {
        let one = &self.list[at];
        let (context, rank) = (one.context, one.rank);
        if !agreements.is_done_with(context + 1) {
            return false;
        }
        let is_there =
            |&peer: &Peer| peer != groups.me() && groups.presence(peer) == Presence::Here;
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
        self.list[at].told = Some(first);
        let tag = if is_over { FORGET_TAG } else { DONE_TAG };
        for &peer in &to {
            say(groups, peer, context, tag);
        }
        if is_over {
            self.forget(agreements, at);
        }
        is_over || !to.is_empty()
    }

    fn forget(&mut self, agreements: &mut Agreements, at: usize) {
        let one = self.list.swap_remove(at);
        agreements.forget(one.context + 1);
    }
}

fn say<T: Transport>(groups: &mut Groups<T>, to: Peer, context: u32, tag: i32) {
    let frame = Frame {
        kind: Kind::Eager,
        context: context + 1,
        tag,
    };
    // One that cannot be told any more is gone itself.
    let _ = groups.send_or_queue(to, frame, &[]);
}
