//! The engine of a task: joins the layers below it and drives them in a fixed order.
//!
//! [`Engine`] owns the layers, each of which calls only those below it. [`Engine::progress`] passes what one layer has received to the layers that
//! it concerns: messages of members about their groups, and losses of tasks. An engine dereferences to [`Groups`] and
//! [`PointToPoint`](crate::PointToPoint), which contain the calls that concern only messages and groups.

use crate::agreement::Agreements;
use crate::closing::Closings;
use crate::epoch::{ContextUses, Epochs, Spaces};
use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::groups::Groups;
use crate::making::{Call, Makings};
use crate::matching::Select;
use crate::numbers;
use crate::point_to_point::matched::Message;
use crate::point_to_point::{Settings, Word};
use crate::request::{Handle, Status};
use crate::revoke::Revocations;
use crate::schedule::{Schedules, Steps};
use crate::subject::Subject;
use crate::transport::{Peer, Transport};
use regatta_memory::views::Views;

/// A task's engine over one transport.
pub struct Engine<T: Transport> {
    pub(crate) groups: Groups<T>,
    schedules: Schedules,
    makings: Makings,
    pub(crate) agreements: Agreements,
    revocations: Revocations,
    closings: Closings,
    /// Revocations, agreements or ends of groups have something to do.
    is_stirred: bool,
}

impl<T: Transport> std::ops::Deref for Engine<T> {
    type Target = Groups<T>;
    #[inline(always)]
    fn deref(&self) -> &Groups<T> {
        &self.groups
    }
}

impl<T: Transport> std::ops::DerefMut for Engine<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Groups<T> {
        &mut self.groups
    }
}

impl<T: Transport> Engine<T> {
    /// Creates an engine over a transport.
    pub fn new(transport: T, settings: Settings) -> Engine<T> {
        Engine::with_spaces(transport, settings, Spaces::default())
    }

    /// Creates an engine that reuses contexts after this many groups. Tests use small numbers.
    pub fn with_spaces(transport: T, settings: Settings, spaces: Spaces) -> Engine<T> {
        Engine {
            groups: Groups::new(transport, settings, spaces),
            schedules: Schedules::default(),
            makings: Makings::default(),
            agreements: Agreements::default(),
            revocations: Revocations::default(),
            closings: Closings::default(),
            is_stirred: false,
        }
    }

    /// Makes progress: does everything that is possible now. Returns whether anything changed.
    pub fn progress(&mut self) -> bool {
        let mut moved = self.groups.arrivals();
        if self.has_words() {
            // A received revocation ends messages that would otherwise complete now.
            moved |= self.handle_words() | self.run_stirred();
        }
        moved |= self.groups.move_on();
        if !self.schedules.is_empty() {
            moved |= self.schedules.run(&mut self.groups);
        }
        if !self.has_counted_losses() || self.losses().has_fresh() {
            moved |= self.end_losses();
        }
        if self.losses().has_unheard() && self.groups.read_out() {
            self.groups.fail_receives_from_any();
            self.makings.stir();
            moved = true;
        }
        if self.is_stirred || self.groups.epochs.are_due() {
            moved |= self.run_stirred();
        }
        if self.makings.are_due() {
            moved |= self.run_makings();
        }
        // Losses and group messages that were received meanwhile are handled by the next call.
        moved |= self.has_words() || self.losses().has_fresh();
        self.note_moves(moved);
        moved
    }

    /// Passes the messages of members about their groups to the layers that they concern. Returns whether there were any.
    #[cold]
    pub(crate) fn handle_words(&mut self) -> bool {
        let words = self.take_words();
        self.is_stirred |= !words.is_empty();
        for word in &words {
            let Word {
                from, context, tag, ..
            } = *word;
            match tag {
                numbers::EPOCH_TAG => {
                    self.with_epochs(|epochs, uses| epochs.hear(uses, word));
                }
                numbers::REVOKED_TAG => self.revocations.hear(context, from),
                numbers::DONE_TAG | numbers::FORGET_TAG => self.closings.hear(context, from, tag),
                _ if numbers::is_of_making(tag) => {
                    let word = (from, context, tag);
                    self.makings.hear(&mut self.groups, word);
                }
                _ => self.agreements.note_message(),
            }
        }
        !words.is_empty()
    }

    /// Makes progress in revocations, agreements, ends of groups and epochs: a message was received, a task is gone, or an agreement is not over.
    /// Returns whether anything changed.
    #[cold]
    fn run_stirred(&mut self) -> bool {
        self.is_stirred = false;
        let mut moved = self.run_revocations();
        moved |= self.agreements.run(&mut self.groups);
        moved |= self.closings.run(&mut self.groups, &mut self.agreements);
        self.is_stirred |= !self.agreements.are_at_rest();
        let changes = self.with_epochs(Epochs::run);
        if let Some(epoch) = changes.entered {
            // All living tasks know of these revocations by now: the part was used many epochs ago.
            let (epochs, table) = (&self.groups.epochs, &self.groups.table);
            let is_over =
                |context: u32| epochs.is_of(context, epoch) && table.id_of(context).is_none();
            self.revocations.forget(is_over);
            self.groups.p2p.reopen_contexts(is_over);
        }
        if let Some((epoch, kept)) = changes.used {
            self.makings.stir();
            let epochs = &self.groups.epochs;
            let is_old = |context: u32| {
                let context = context & !1;
                epochs.is_of(context, epoch) && !kept.contains(&context)
            };
            self.revocations.forget_early(is_old);
            let left = &mut self.groups.left_groups;
            left.retain(|group| !is_old(group.context));
            self.closings.forget_early(is_old);
            self.groups.p2p.drop_old_messages(None, u64::MAX, is_old);
        }
        moved | changes.moved
    }

    /// Calls `what` with the epochs and all uses of contexts.
    fn with_epochs<R>(&mut self, what: impl FnOnce(&mut Epochs, &mut ContextUses<T>) -> R) -> R {
        let Groups {
            p2p, table, epochs, ..
        } = &mut self.groups;
        let sending = || {
            let contexts = self.makings.contexts().chain(self.closings.contexts());
            contexts.map(|(one, to)| (one, to.to_vec())).collect()
        };
        let coming = self.agreements.coming().collect();
        let mut uses = ContextUses {
            p2p,
            table,
            sending: &sending,
            coming,
        };
        what(epochs, &mut uses)
    }

    /// Handles received revocations. Returns whether there were any.
    pub(crate) fn run_revocations(&mut self) -> bool {
        self.revocations.run(&mut self.groups) && {
            self.end_revoked();
            true
        }
    }

    /// Ends collectives and new groups whose group is now revoked. Returns whether anything changed.
    fn end_revoked(&mut self) -> bool {
        let mut moved = false;
        while let Some(given_up) = self.makings.end_closed(&mut self.groups) {
            for one in given_up {
                self.revocations.note(&mut self.groups, one, false);
            }
            moved = true;
        }
        moved | self.schedules.run(&mut self.groups)
    }

    /// Ends everything that depends on tasks that are gone.
    #[cold]
    pub(crate) fn end_losses(&mut self) -> bool {
        if !self.has_counted_losses() {
            self.groups.note_losses();
        }
        while let Some(peer) = self.take_loss() {
            // A revocation that the lost task sent before takes precedence over its loss as the error.
            self.handle_words();
            self.run_revocations();
            self.schedules.run(&mut self.groups);
            self.groups.end_peer(peer);
            self.groups.fail_receives_from_any();
            self.groups.break_by(peer);
            self.groups.give_up_buffers_of(peer);
            self.schedules.run(&mut self.groups);
            self.revocations.note_loss();
            self.makings.stir();
            self.is_stirred = true;
            self.groups.forget_peer(peer);
        }
        while let Some(peer) = self.take_accused() {
            self.groups.notify_condemned(peer);
        }
        true
    }

    /// Starts a receive. The engine uses the memory until the request is complete.
    #[inline(always)]
    pub fn start_receive(&mut self, select: Select, into: Views) -> Result<Handle> {
        if select.source.is_none() {
            self.check_hopes(&select)?;
        }
        let context = select.context;
        let started = self.groups.start_receive_of(select, into);
        started.map_err(|error| self.explain(context, error))
    }

    /// Returns the error of a receive that is not possible. A revocation of the group takes precedence over the loss of a member, and may be among
    /// that member's last messages.
    #[cold]
    fn explain(&mut self, context: u32, error: Error) -> Error {
        if self.handle_words() {
            self.run_revocations();
        }
        match self.contexts().is_closed(context) {
            true => Error::Revoked,
            false => error,
        }
    }

    /// Fails if no message is available for a receive and the receive cannot be pending.
    fn check_hopes(&mut self, select: &Select) -> Result<()> {
        if self.peek(select).is_some() {
            return Ok(());
        }
        let checked = self.check_pending(select);
        if checked.is_err() {
            // Frames that the sources sent between the last check and their end are received by now.
            self.look(select);
        }
        match self.peek(select) {
            Some(_) => Ok(()),
            None => checked.map_err(|error| self.explain(select.context, error)),
        }
    }

    /// Receives what the sources of a receive have sent.
    pub(crate) fn look(&mut self, select: &Select) {
        match select.source {
            Some(source) => self.groups.drain_peer(source),
            None => {
                self.progress();
            }
        }
    }

    /// Checks whether a message for this receive has arrived. Fails if none has and none ever will.
    fn look_for_message(&mut self, select: &Select) -> Result<()> {
        self.look(select);
        self.check_hopes(select)
    }

    /// Returns the status of the message that this receive would get, if there is one, without receiving it.
    pub fn probe(&mut self, select: &Select) -> Result<Option<Status>> {
        self.look_for_message(select)?;
        Ok(self.peek(select))
    }

    /// Does the same as [`probe`](Engine::probe), and removes the message from matching.
    pub fn match_probe(&mut self, select: &Select) -> Result<Option<(Status, Message)>> {
        self.look_for_message(select)?;
        Ok(self.set_aside(select))
    }

    /// Receives a loaned message in place, and returns its status, its address and its memory. Returns `None` if there is no message or the next
    /// message is not a loan.
    pub fn take_loan(&mut self, select: &Select) -> Result<Option<(Status, u64, Views)>> {
        self.look_for_message(select)?;
        self.take_waiting_loan(select)
    }

    /// Receives what has arrived. Returns the index in `contexts` of the context whose waiting message arrived first.
    pub fn first_arrived(&mut self, contexts: &[u32]) -> Option<usize> {
        self.progress();
        self.oldest_of(contexts)
    }

    /// Receives what has arrived. All messages that wait for a receive are then marked as passed over.
    pub fn pass_over(&mut self) {
        self.progress();
        self.pass_over_waiting();
    }

    /// Forgets a request that the caller has given up and whose memory becomes invalid. A message that has not been sent is not sent; a receive is
    /// withdrawn; a collective cannot complete at the other members.
    pub fn forget(&mut self, handle: Handle) {
        if let Some(request) = self.withdraw(handle) {
            self.schedules.give_up(&mut self.groups, request);
            self.makings.drop_request(request);
            self.agreements.drop_vote(request);
            self.release(request);
        }
    }

    /// Returns whether no operation needs later calls to make progress. Pending receives do not count.
    pub fn is_idle(&self) -> bool {
        self.is_still() && self.schedules.is_empty() && self.makings.is_empty()
    }

    /// Starts the steps of a collective as the next one of its group.
    pub(crate) fn start_schedule(&mut self, id: GroupId, steps: Steps) -> Result<Handle> {
        let (_, tag) = self.next_collective(id)?;
        self.run_schedule(id, tag, steps)
    }

    /// Starts the steps of a collective that has already begun, as number `tag` of its group.
    pub(crate) fn run_schedule(&mut self, id: GroupId, tag: i32, steps: Steps) -> Result<Handle> {
        self.schedules.start(&mut self.groups, id, tag, steps)
    }

    /// Starts an agreement and returns its number.
    pub(crate) fn start_agreement(&mut self, id: GroupId, subject: Subject) -> Result<u64> {
        self.is_stirred = true;
        self.agreements.start(&mut self.groups, id, subject)
    }

    /// Starts a call in which all members of a group take part and make groups from it. Returns its number.
    pub fn next_call(&mut self, id: GroupId) -> Result<Call> {
        self.handle_words();
        self.makings.next_call(&mut self.groups, id)
    }

    /// Returns how many more groups this task can have.
    pub fn room_for_groups(&self) -> usize {
        self.groups.table.room()
    }

    /// Starts to make a group of these members, all of which make this call of `old`. Returns the group and a request. The group can be used once
    /// the request completes, but not if it completes with an error.
    pub fn start_group(
        &mut self,
        old: GroupId,
        members: Vec<Peer>,
        call: Call,
    ) -> Result<(GroupId, Handle)> {
        let (made, handle) = self.start_groups(old, members, call, 1)?;
        Ok((made[0], handle))
    }

    /// Starts to make `count` groups of these members at once, at least one, as [`Engine::start_group`] does. Either all of them can be used or
    /// none. All members pass the same `count`.
    pub fn start_groups(
        &mut self,
        old: GroupId,
        members: Vec<Peer>,
        call: Call,
        count: usize,
    ) -> Result<(Vec<GroupId>, Handle)> {
        self.handle_words();
        let groups = &mut self.groups;
        let started = self.makings.start(groups, (old, members), call, count)?;
        self.run_makings();
        Ok(started)
    }

    #[cold]
    fn run_makings(&mut self) -> bool {
        let moved = self.makings.run(&mut self.groups);
        for made in self.makings.take_made() {
            self.is_stirred |= self.revocations.made(made.context);
            if !made.is_wanted {
                drop(self.free_group(made.group));
            }
        }
        moved
    }

    /// Adds a group. All members must do this with the same member list and the same context, which must be free at each of them.
    pub fn add_group(&mut self, members: Vec<Peer>, context: u32) -> Result<GroupId> {
        let id = self.groups.add(members, context)?;
        self.is_stirred |= self.revocations.made(context);
        Ok(id)
    }

    /// Frees a group. Messages of the group that are still in flight will never be received.
    pub fn free_group(&mut self, id: GroupId) -> Result<()> {
        let freed = self.groups.free(id)?;
        let context = freed.context;
        self.is_stirred |= self.closings.add(&self.agreements, freed);
        self.makings.note_freed(&mut self.groups, context);
        Ok(())
    }

    /// Revokes a group and notifies all its members. One member or several may call this.
    pub fn revoke(&mut self, id: GroupId) -> Result<()> {
        self.closed(id)?;
        self.revocations.revoke(&mut self.groups, id, true);
        self.end_revoked();
        Ok(())
    }

    /// Returns whether the group is revoked, as far as this task knows.
    pub fn is_revoked(&self, id: GroupId) -> Result<bool> {
        Ok(self.closed(id)?.is_revoked())
    }

    /// Ties two groups: if one of them is revoked, the other is, too.
    pub fn tie(&mut self, one: GroupId, other: GroupId) -> Result<()> {
        self.revocations.tie(&mut self.groups, one, other)?;
        self.end_revoked();
        Ok(())
    }
}
