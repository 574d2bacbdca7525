//! Schedules: collectives as lists of sends, receives, copies and combinations.
//!
//! A schedule is made when the collective starts and runs as far as it can at every progress, so
//! the blocking and the non-blocking form of a collective are the same thing. Steps between two
//! waits run at once; a wait holds until all sends and receives before it are complete.

use regatta_memory::combine::{Element, Operator};
use regatta_memory::views::{Refused, Scratch, Views};
use regatta_wire::{Frame, Kind};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::{Group, GroupId};
use crate::matching::{Select, TagSelect};
use crate::request::{Handle, Stage, Status};
use crate::send::Mode;
use crate::transport::{Peer, Transport};

/// One step.
#[derive(Debug)]
pub(crate) enum Step {
    /// Send to the member with a rank.
    Send(u32, Views),
    /// Send the same to the members with these ranks.
    SendToAll(Vec<u32>, Views),
    /// Receive from the member with a rank.
    Receive(u32, Views),
    /// Until everything before is complete.
    Wait,
    /// Until one is complete of the sends and receives before, by number.
    Until(u32),
    /// From one memory to another.
    Copy(Views, Views),
    /// `inout = from op inout`.
    Combine {
        operator: Operator,
        element: Element,
        count: usize,
        from: Views,
        inout: Views,
    },
}

/// The steps of a collective that is to start, and the memory they need. Memory that is not to be had is
/// remembered until the start, so that the other members can be told.
#[derive(Default)]
pub(crate) struct Steps {
    list: Vec<Step>,
    /// Sends and receives among them.
    started: u32,
    refused: Option<Error>,
}

impl Steps {
    pub(crate) fn push(&mut self, step: Step) {
        self.started += matches!(step, Step::Send(..) | Step::Receive(..)) as u32;
        match self.list.try_reserve(1) {
            Ok(()) => self.list.push(step),
            Err(_) => self.refuse(Refused((self.list.len() + 1) * size_of::<Step>())),
        }
    }

    /// A send or receive; its number, for [`Step::Until`].
    pub(crate) fn start(&mut self, step: Step) -> u32 {
        self.push(step);
        self.started
    }

    pub(crate) fn extend(&mut self, steps: impl IntoIterator<Item = Step>) {
        steps.into_iter().for_each(|step| self.push(step));
    }

    /// Memory for intermediate results.
    pub(crate) fn scratch(&mut self, bytes: usize) -> Views {
        match Scratch::new(bytes) {
            Ok(scratch) => scratch.part(0, bytes),
            Err(refused) => {
                self.refuse(refused);
                Views::none()
            }
        }
    }

    fn refuse(&mut self, refused: Refused) {
        self.refused.get_or_insert(refused.into());
    }
}

/// A collective on its way.
pub(crate) struct Schedule {
    pub(crate) group: GroupId,
    context: u32,
    pub(crate) tag: i32,
    request: u32,
    steps: std::vec::IntoIter<Step>,
    /// Sends and receives so far; those that are not complete, by number.
    started: u32,
    pending: Vec<(u32, Handle)>,
    /// A message did not fit: the outcome, once the schedule has run to its end for the others.
    truncated: Option<Error>,
    /// A message was taken back: this ends when it is known why.
    stalled: bool,
}

impl<T: Transport> Engine<T> {
    /// Start a collective.
    pub(crate) fn start_schedule(&mut self, id: GroupId, steps: Steps) -> Result<Handle> {
        let (_, tag) = self.next_collective(id)?;
        self.run_schedule(id, tag, steps)
    }

    /// Start the steps of a collective that has begun already, as number `tag` of its group.
    pub(crate) fn run_schedule(&mut self, id: GroupId, tag: i32, steps: Steps) -> Result<Handle> {
        let context = self.group(id)?.context + 1;
        if let Some(error) = steps.refused {
            self.notify_failed(id, tag, &error);
            return Err(error);
        }
        let request = self
            .requests
            .add(Stage::Collective, Status::EMPTY, Views::none());
        let handle = self.requests.handle(request);
        let mut schedule = Schedule {
            group: id,
            context,
            tag,
            request,
            steps: steps.list.into_iter(),
            started: 0,
            pending: Vec::new(),
            truncated: None,
            stalled: false,
        };
        match self.advance(&mut schedule) {
            Ok(false) => self.schedules.push(schedule),
            outcome => self.end_schedule(schedule, outcome.err()),
        }
        Ok(handle)
    }

    /// In a group of two: this task's rank, the other one, and context and tag of the next collective between them, unless something
    /// is in the way of that one. `None`: nothing has happened.
    #[inline(always)]
    pub fn pair_now(&mut self, id: GroupId) -> Option<(u32, Peer, u32, i32)> {
        // Messages that wait may tell that collectives of the group fail.
        if !self.unexpected.is_empty() {
            return None;
        }
        let group = self.groups.at_mut(id)?;
        if group.size() != 2 || group.broken.is_some() || group.failed.is_some() {
            return None;
        }
        let peer = group.peer(1 - group.rank.min(1))?;
        group.sequence = (group.sequence + 1) & 0x3fff_ffff;
        Some((group.rank, peer, group.context + 1, group.sequence))
    }

    /// In a group of two: the other one, and context and tag of the next collective between them.
    pub fn pair(&mut self, id: GroupId) -> Result<(Peer, u32, i32)> {
        let (context, tag) = self.next_collective(id)?;
        let group = self.group(id)?;
        let peer = group.peer(1 - group.rank.min(1)).ok_or(Error::Task(1))?;
        Ok((peer, context, tag))
    }

    /// Context and tag of the next collective of a group, if it can be complete.
    pub(crate) fn next_collective(&mut self, id: GroupId) -> Result<(u32, i32)> {
        let group = self.group_mut(id)?;
        let next = (group.sequence + 1) & 0x3fff_ffff;
        if let Err(error) = group.usable() {
            if matches!(error, Error::Dead(_)) {
                // Members that still reach the one that is dead for this task wait for this one.
                self.notify_failed(id, next, &error);
            }
            return Err(error);
        }
        group.sequence = next;
        if let (0, Some((from, _))) = (group.sequence, &mut group.failed) {
            // The numbers begin again, and what has failed stays so.
            *from = crate::failed::ALL;
        }
        let (context, tag) = (group.context + 1, group.sequence);
        match self.failed(id, tag) {
            Some(error) => Err(error),
            None => Ok((context, tag)),
        }
    }

    /// Run every schedule as far as it goes.
    pub(crate) fn run_schedules(&mut self) -> bool {
        let mut moved = false;
        // Taken out while it runs: a step may complete at once and touch the engine.
        let mut running = std::mem::take(&mut self.schedules);
        let mut at = 0;
        while at < running.len() {
            let schedule = &mut running[at];
            let before = (schedule.steps.len(), schedule.pending.len());
            let outcome = match self.advance(schedule) {
                Ok(false) => match self.is_over(schedule) {
                    None => {
                        moved |= before != (schedule.steps.len(), schedule.pending.len());
                        at += 1;
                        continue;
                    }
                    error => error,
                },
                outcome => outcome.err(),
            };
            moved = true;
            let schedule = running.remove(at);
            self.end_schedule(schedule, outcome);
        }
        // The room for them stays: the next collective needs no allocation for its place.
        running.append(&mut self.schedules);
        self.schedules = running;
        moved
    }

    /// True: complete.
    fn advance(&mut self, schedule: &mut Schedule) -> Result<bool> {
        loop {
            let Some(step) = schedule.steps.as_slice().first() else {
                return self.settled(schedule);
            };
            let ready = match *step {
                Step::Wait => self.settled(schedule)?,
                Step::Until(number) => self.is_through(schedule, number)?,
                _ => true,
            };
            if !ready {
                return Ok(false);
            }
            let Some(step) = schedule.steps.next() else {
                return Ok(true);
            };
            self.take_step(schedule, step)?;
        }
    }

    /// Are all started sends and receives complete?
    fn settled(&mut self, schedule: &mut Schedule) -> Result<bool> {
        while let Some(last) = schedule.pending.len().checked_sub(1) {
            if !self.settle_one(schedule, last)? {
                return Ok(false);
            }
        }
        Ok(!schedule.stalled)
    }

    /// Is the one with this number?
    fn is_through(&mut self, schedule: &mut Schedule, number: u32) -> Result<bool> {
        let mut pending = schedule.pending.iter();
        if let Some(at) = pending.position(|&(one, _)| one == number)
            && !self.settle_one(schedule, at)?
        {
            return Ok(false);
        }
        Ok(!schedule.stalled)
    }

    /// Is one of those that were pending complete? Then it is so no more.
    fn settle_one(&mut self, schedule: &mut Schedule, at: usize) -> Result<bool> {
        let Some((_, error)) = self.finish(schedule.pending[at].1)? else {
            return Ok(false);
        };
        schedule.pending.remove(at);
        match error {
            None => {}
            // The others rely on what this member does next.
            Some(error @ Error::Truncated { .. }) => {
                schedule.truncated.get_or_insert(error);
            }
            // Its sender goes no further. Why, the death or the notice will tell, which
            // names the culprit and may still be on its way.
            Some(Error::Cancelled) => schedule.stalled = true,
            Some(error) => return Err(error),
        }
        Ok(true)
    }

    fn take_step(&mut self, schedule: &mut Schedule, step: Step) -> Result<()> {
        schedule.started += matches!(step, Step::Send(..) | Step::Receive(..)) as u32;
        match step {
            Step::Wait | Step::Until(_) => {}
            Step::Send(rank, views) => {
                let to = self.member(schedule.group, rank)?;
                self.send_in_schedule(schedule, to, views)?;
            }
            Step::SendToAll(ranks, views) => {
                let group = schedule.group;
                let to = ranks.iter().map(|&rank| self.member(group, rank));
                let to = to.collect::<Result<Vec<Peer>>>()?;
                for some in to.chunks(u64::BITS as usize) {
                    let gone = self.send_to_all_now(some, schedule.context, schedule.tag, &views);
                    for (place, &to) in some.iter().enumerate() {
                        if gone & 1 << place == 0 {
                            self.send_in_schedule(schedule, to, views.clone())?;
                        }
                    }
                }
            }
            Step::Receive(rank, views) => {
                let select = Select {
                    context: schedule.context,
                    source: Some(self.member(schedule.group, rank)?),
                    tag: TagSelect::Exactly(schedule.tag),
                };
                let handle = self.start_receive(select, views)?;
                schedule.pending.push((schedule.started, handle));
            }
            Step::Copy(from, into) => {
                from.copy_to(&into);
            }
            Step::Combine {
                operator,
                element,
                count,
                from,
                inout,
            } => operator.apply(element, &from, &inout, count),
        }
        Ok(())
    }

    /// Sends a message at once to several peers, where [`Frames::send_to_all`](crate::Frames::send_to_all) can and nothing is queued before it. Returns what
    /// that does.
    fn send_to_all_now(&mut self, to: &[Peer], context: u32, tag: i32, message: &Views) -> u64 {
        if message.len() > self.eager_limit
            || !self.queued.is_empty()
            || self.losses_seen != self.transport.losses()
            || to.iter().any(|&peer| peer == self.me || self.is_gone(peer))
        {
            return 0;
        }
        let frame = Frame {
            kind: Kind::Eager,
            context,
            tag,
        };
        self.transport.send_to_all(to, frame, message)
    }

    fn send_in_schedule(&mut self, schedule: &mut Schedule, to: Peer, views: Views) -> Result<()> {
        let (context, tag) = (schedule.context, schedule.tag);
        let sent = self.start_send(to, context, tag, views, Mode::Standard)?;
        if sent != Handle::COMPLETE {
            schedule.pending.push((schedule.started, sent));
        }
        Ok(())
    }

    fn member(&self, group: GroupId, rank: u32) -> Result<Peer> {
        let peer = self.group(group)?.peer(rank);
        peer.ok_or(Error::Task(rank as i64))
    }

    fn end_schedule(&mut self, mut schedule: Schedule, error: Option<Error>) {
        if let Some(error) = &error {
            self.notify_failed(schedule.group, schedule.tag, error);
        }
        // After an error the user's memory must not be touched any more.
        for (_, handle) in schedule.pending {
            self.forget(handle);
        }
        let error = error.or(schedule.truncated.take());
        self.requests.complete(schedule.request, error);
    }

    /// Give up a collective; its request is then complete.
    pub(crate) fn drop_schedule(&mut self, request: u32) {
        let found = self.schedules.iter().position(|one| one.request == request);
        if let Some(at) = found {
            let schedule = self.schedules.swap_remove(at);
            self.end_schedule(schedule, Some(Error::Cancelled));
        }
    }

    /// Why a collective that is not complete never will be, if that is so: a member has died, or
    /// one has said that it goes no further. (After one that left in good order only those fail
    /// that still wait for it; they tell the rest.)
    fn is_over(&mut self, schedule: &Schedule) -> Option<Error> {
        let died = self.group(schedule.group).and_then(Group::usable).err();
        died.or_else(|| self.failed(schedule.group, schedule.tag))
    }
}
