//! Forgets the agreements of freed groups once no member needs them any more.
//!
//! Members may ask about an agreement until all living members have decided ([`agreement`](crate::agreement)). A member that has decided all
//! agreements of a group and has freed the group does not ask any more. It then sends Done:
//!
//! ```text
//! members                           the first living member
//! Done      ───────────────────>   (waits until it has freed the group, and all living members have sent Done)
//!           <───────────────────   Forget
//! ```
//!
//! *If the first member dies or leaves*, the next one takes its role, and the members send Done to it. The former first member may have sent Forget
//! to some members, which have no record of the group any more. So the new first member sends Done to all members: a member without a record of the
//! group answers Forget. A member that has forgotten the group knows that all living members have decided.
//!
//! The messages are empty frames in the group's collective context, after all other messages of their sender in that context. If a member does not
//! free the group, the other members do not forget its agreements.

use regatta_wire::{Frame, Kind};

use crate::agreement::Agreements;
use crate::groups::{Freed, Groups};
use crate::numbers::{DONE_TAG, FORGET_TAG};
use crate::transport::{Peer, Presence, Transport};

/// A freed group that had agreements.
struct Closing {
    /// The group's context.
    context: u32,
    members: Vec<Peer>,
    rank: usize,
    /// Whether each rank has sent Done to this task.
    done: Vec<bool>,
    /// The rank to which this task has sent Done, or its own rank if it was first.
    told: Option<usize>,
}

/// All freed groups whose agreements are kept.
#[derive(Default)]
pub(crate) struct Closings {
    list: Vec<Closing>,
    /// Messages that were received but not handled yet: (context of the group, sender, tag).
    heard: Vec<(u32, Peer, i32)>,
    /// Done messages about groups that this task has not freed: (context, sender).
    early: Vec<(u32, Peer)>,
}

impl Closings {
    /// Records a message of a peer.
    pub(crate) fn hear(&mut self, context: u32, from: Peer, tag: i32) {
        self.heard.push((context & !1, from, tag));
    }

    /// Returns the contexts of freed groups whose agreements are kept, with their members.
    pub(crate) fn contexts(&self) -> impl Iterator<Item = (u32, &[Peer])> {
        let list = self.list.iter();
        list.map(|one| (one.context, &one.members[..]))
    }

    /// Forgets messages about contexts that are being reused: those for which `is` returns true.
    pub(crate) fn forget_early(&mut self, is: impl Fn(u32) -> bool) {
        self.early.retain(|&(context, _)| !is(context));
        self.heard.retain(|&(context, ..)| !is(context));
    }

    /// Records that a group was freed. Its agreements are forgotten once no member needs them. Returns whether it had any.
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

    /// Handles received messages and sends what is due. Returns whether anything changed.
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
            // The sender is not a member.
            (Some(_), None) => {}
            (None, _) if tag != DONE_TAG => {}
            (None, _) if groups.table.id_of(context).is_some() => {
                self.early.push((context, from));
            }
            (None, _) => say(groups, from, context, FORGET_TAG),
        }
    }

    /// Takes the next step for a freed group. Returns whether anything changed.
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
            // Another member was first, and is gone: some members may have forgotten the group.
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
    // Ignore the error: a peer that cannot be reached is gone.
    let _ = groups.send_or_queue(to, frame, &[]);
}
