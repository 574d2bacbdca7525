//! The engine of a task: what the layers below keep apart is carried on here, in one order.
//!
//! [`Engine`] holds the layers, each of which calls only those below it, and [`Engine::progress`] carries what one has taken in
//! to those that it concerns: words of members about their groups, and losses of tasks. All that concerns messages and groups alone
//! is asked of [`Groups`] and [`PointToPoint`](crate::PointToPoint), to which an engine dereferences.

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

/// A process's engine over one transport.
pub struct Engine<T: Transport> {
    pub(crate) groups: Groups<T>,
    schedules: Schedules,
    makings: Makings,
    pub(crate) agreements: Agreements,
    revocations: Revocations,
    closings: Closings,
    /// Whether revocations, agreements or the ends of groups have something to do.
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
    /// An engine over a transport.
    pub fn new(transport: T, settings: Settings) -> Engine<T> {
        Engine::with_spaces(transport, settings, Spaces::default())
    }

    /// An engine that uses contexts again after this many groups; tests have few.
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

    /// Makes progress: does whatever can be done now. Returns whether anything moved.
    pub fn progress(&mut self) -> bool {
        let mut moved = self.groups.arrivals();
        if self.has_words() {
            // A revocation of which word has come ends messages that would be complete now.
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
        // What has come up meanwhile is for the next step.
        moved |= self.has_words() || self.losses().has_fresh();
        self.note_moves(moved);
        moved
    }

    /// Hands the words of members about their groups to those that they concern. Returns whether there were any.
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

    /// Carries on revocations, agreements, ends of groups and epochs: word has come, somebody is gone, or an agreement is not over.
    #[cold]
    fn run_stirred(&mut self) -> bool {
        self.is_stirred = false;
        let mut moved = self.run_revocations();
        moved |= self.agreements.run(&mut self.groups);
        moved |= self.closings.run(&mut self.groups, &mut self.agreements);
        self.is_stirred |= !self.agreements.are_at_rest();
        let changes = self.with_epochs(Epochs::run);
        if let Some(epoch) = changes.entered {
            // All that are there have heard of these by now: the part was used many epochs ago.
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
            self.closings.forget_early(is_old);
            self.groups.p2p.drop_old_messages(None, u64::MAX, is_old);
        }
        moved | changes.moved
    }

    /// Does something with the epochs, which know all uses of contexts meanwhile.
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

    /// Handles word of revocations that has come.
    pub(crate) fn run_revocations(&mut self) -> bool {
        self.revocations.run(&mut self.groups) && {
            self.end_revoked();
            true
        }
    }

    /// Ends what is done in groups that are revoked now, beside messages. Returns whether there was anything.
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

    /// Ends all that depends on tasks that are gone.
    #[cold]
    pub(crate) fn end_losses(&mut self) -> bool {
        if !self.has_counted_losses() {
            self.groups.note_losses();
        }
        while let Some(peer) = self.take_loss() {
            // Its word of a group that is revoked explains more than that it is gone.
            self.handle_words();
            self.run_revocations();
            self.schedules.run(&mut self.groups);
            self.groups.end_peer(peer);
            self.groups.fail_receives_from_any();
            self.groups.break_by(peer);
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

    /// Starts a receive. The memory belongs to the engine until the request is complete.
    #[inline(always)]
    pub fn start_receive(&mut self, select: Select, into: Views) -> Result<Handle> {
        if select.source.is_none() {
            self.check_hopes(&select)?;
        }
        let context = select.context;
        let started = self.groups.start_receive_of(select, into);
        started.map_err(|error| self.explain(context, error))
    }

    /// Returns why nothing can be received: the word that a group is revoked explains more than that a member is gone, and may be among the last that has
    /// come of that member.
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

    /// Fails if a receive can neither find a message nor be pending.
    fn check_hopes(&mut self, select: &Select) -> Result<()> {
        if self.peek(select).is_some() {
            return Ok(());
        }
        let checked = self.check_pending(select);
        if checked.is_err() {
            // Frames sent between the last look and the end of their senders are there now.
            self.look(select);
        }
        match self.peek(select) {
            Some(_) => Ok(()),
            None => checked.map_err(|error| self.explain(select.context, error)),
        }
    }

    /// Takes in what those that a receive selects have sent.
    pub(crate) fn look(&mut self, select: &Select) {
        match select.source {
            Some(source) => self.groups.drain_peer(source),
            None => {
                self.progress();
            }
        }
    }

    /// Looks for a message that this would receive among what has arrived. Fails if there is none and never will be.
    fn look_for_message(&mut self, select: &Select) -> Result<()> {
        self.look(select);
        self.check_hopes(select)
    }

    /// Returns the message that this would receive, if there is one. Looks only; the message stays.
    pub fn probe(&mut self, select: &Select) -> Result<Option<Status>> {
        self.look_for_message(select)?;
        Ok(self.peek(select))
    }

    /// As [`probe`](Engine::probe), and the message is taken out of matching.
    pub fn match_probe(&mut self, select: &Select) -> Result<Option<(Status, Message)>> {
        self.look_for_message(select)?;
        Ok(self.set_aside(select))
    }

    /// Takes a message that came as a loan, in place: its place and length. `None` if the message
    /// that would be received next did not (or there is none).
    pub fn take_loan(&mut self, select: &Select) -> Result<Option<(Status, u64, Views)>> {
        self.look_for_message(select)?;
        self.take_waiting_loan(select)
    }

    /// Takes in what has arrived. Returns the place in the list of the context whose waiting message arrived first.
    pub fn first_arrived(&mut self, contexts: &[u32]) -> Option<usize> {
        self.progress();
        self.oldest_of(contexts)
    }

    /// Takes in what has arrived. All of it that waits for a receive counts as passed over.
    pub fn pass_over(&mut self) {
        self.progress();
        self.pass_over_waiting();
    }

    /// Forgets a request, of which nobody will ask any more, and whose memory goes. A message that has not been sent is
    /// not sent; a receive is withdrawn; the other members of a collective wait in vain.
    pub fn forget(&mut self, handle: Handle) {
        if let Some(request) = self.withdraw(handle) {
            self.schedules.give_up(&mut self.groups, request);
            self.makings.drop_request(request);
            self.agreements.drop_vote(request);
            self.release(request);
        }
    }

    /// Returns whether nothing is under way that a later call must push. (Receives that merely wait do not count.)
    pub fn is_idle(&self) -> bool {
        self.is_still() && self.schedules.is_empty() && self.makings.is_empty()
    }

    /// Starts the steps of a collective.
    pub(crate) fn start_schedule(&mut self, id: GroupId, steps: Steps) -> Result<Handle> {
        let (_, tag) = self.next_collective(id)?;
        self.run_schedule(id, tag, steps)
    }

    /// Starts the steps of a collective that has begun already, as number `tag` of its group.
    pub(crate) fn run_schedule(&mut self, id: GroupId, tag: i32, steps: Steps) -> Result<Handle> {
        self.schedules.start(&mut self.groups, id, tag, steps)
    }

    /// Begins an agreement.
    pub(crate) fn start_agreement(&mut self, id: GroupId, subject: Subject) -> Result<u64> {
        self.is_stirred = true;
        self.agreements.start(&mut self.groups, id, subject)
    }

    /// Returns the number of a call in which all members of a group take part, and by which they make groups from it.
    pub fn next_call(&mut self, id: GroupId) -> Result<Call> {
        self.handle_words();
        self.makings.next_call(&mut self.groups, id)
    }

    /// Returns how many further groups this task has places for.
    pub fn room_for_groups(&self) -> usize {
        self.groups.table.room()
    }

    /// Starts to make a group of these members, which all make this call of `old`. The group can be used when the request is complete,
    /// and not at all if that ends with an error.
    pub fn start_group(
        &mut self,
        old: GroupId,
        members: Vec<Peer>,
        call: Call,
    ) -> Result<(GroupId, Handle)> {
        let (made, handle) = self.start_groups(old, members, call, 1)?;
        Ok((made[0], handle))
    }

    /// Starts to make `count` groups of these members at once, one or more, as [`Engine::start_group`] does: all of them can be used, or none. All
    /// members make as many.
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

    /// Adds a group all of whose members add it with the same members and context, which is free
    /// in all of them.
    pub fn add_group(&mut self, members: Vec<Peer>, context: u32) -> Result<GroupId> {
        let id = self.groups.add(members, context)?;
        self.is_stirred |= self.revocations.made(context);
        Ok(id)
    }

    /// Forgets a group. Messages still on their way in it will never be received.
    pub fn free_group(&mut self, id: GroupId) -> Result<()> {
        let freed = self.groups.free(id)?;
        let context = freed.context;
        self.is_stirred |= self.closings.add(&self.agreements, freed);
        self.makings.note_freed(&mut self.groups, context);
        Ok(())
    }

    /// Revokes a group: all its members will know. One of them calls, or several.
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

    /// Ties two groups: from now on they are revoked together.
    pub fn tie(&mut self, one: GroupId, other: GroupId) -> Result<()> {
        self.revocations.tie(&mut self.groups, one, other)?;
        self.end_revoked();
        Ok(())
    }
}
