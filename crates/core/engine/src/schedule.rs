//! Schedules: collectives as lists of sends, receives, copies and combinations.
//!
//! A schedule is made when the collective starts and runs as far as it can at every progress, so
//! the blocking and the non-blocking form of a collective are the same thing. Steps between two
//! waits run at once; a wait holds until all sends and receives before it are complete.
//!
//! Of many that are under way in a group progress runs the oldest [`MAX_RUNNING_SCHEDULES`] alone, so to start one more costs the same however many there are.
//! That is enough: all members start them in the same order, so the oldest one that is not complete everywhere is among the oldest of each member.

use std::collections::VecDeque;

use regatta_memory::combine::{Element, Operator};
use regatta_memory::views::{Refused, Scratch, Views};

use crate::error::{Error, Result};
use crate::group::{Group, GroupId};
use crate::groups::Groups;
use crate::matching::{Select, TagSelect};
use crate::request::{Handle, Mode};
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

    /// Adds a send or receive. Returns its number, for [`Step::Until`].
    pub(crate) fn start(&mut self, step: Step) -> u32 {
        self.push(step);
        self.started
    }

    pub(crate) fn extend(&mut self, steps: impl IntoIterator<Item = Step>) {
        steps.into_iter().for_each(|step| self.push(step));
    }

    /// Returns memory for intermediate results.
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
struct Schedule {
    group: GroupId,
    context: u32,
    tag: i32,
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

/// Number of a group's collectives that progress runs, as long as nobody is gone.
const MAX_RUNNING_SCHEDULES: usize = 32;
/// Number of groups whose queue is kept when it is empty: the next collective needs no allocation.
const MAX_EMPTY_QUEUES: usize = 16;

/// All collectives on their way.
#[derive(Default)]
pub(crate) struct Schedules {
    /// By context, in the order in which they were started.
    queues: Vec<(u32, VecDeque<Schedule>)>,
    count: usize,
}

impl Schedules {
    /// Returns whether no collective is on its way.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Starts the steps of a collective that has begun already, as number `tag` of its group.
    pub(crate) fn start<T: Transport>(
        &mut self,
        groups: &mut Groups<T>,
        id: GroupId,
        tag: i32,
        steps: Steps,
    ) -> Result<Handle> {
        let context = groups.group(id)?.context + 1;
        if let Some(error) = steps.refused {
            groups.notify_failed(id, tag, &error);
            return Err(error);
        }
        let request = groups.add_request();
        let handle = groups.handle(request);
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
        match schedule.advance(groups) {
            Ok(false) => self.push(schedule),
            outcome => schedule.end(groups, outcome.err()),
        }
        Ok(handle)
    }

    fn push(&mut self, schedule: Schedule) {
        self.count += 1;
        let context = schedule.context;
        match self.queues.iter_mut().find(|(of, _)| *of == context) {
            Some((_, queue)) => queue.push_back(schedule),
            None => self.queues.push((context, VecDeque::from([schedule]))),
        }
    }

    /// Runs the oldest schedules of each group as far as they go. Returns whether anything moved.
    pub(crate) fn run<T: Transport>(&mut self, groups: &mut Groups<T>) -> bool {
        let mut moved = false;
        for (_, queue) in &mut self.queues {
            let mut at = 0;
            while at < queue.len() && (at < MAX_RUNNING_SCHEDULES || !groups.is_nobody_gone()) {
                let schedule = &mut queue[at];
                let before = (schedule.steps.len(), schedule.pending.len());
                let outcome = match schedule.advance(groups) {
                    Ok(false) => match schedule.is_over(groups) {
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
                if let Some(schedule) = queue.remove(at) {
                    self.count -= 1;
                    schedule.end(groups, outcome);
                }
            }
        }
        if self.queues.len() > MAX_EMPTY_QUEUES {
            self.queues.retain(|(_, queue)| !queue.is_empty());
        }
        moved
    }

    /// Gives up the collective of a request, if it is one; the request is then complete.
    pub(crate) fn give_up<T: Transport>(&mut self, groups: &mut Groups<T>, request: u32) {
        let mut queues = self.queues.iter_mut().map(|(_, queue)| queue);
        let found = queues.find_map(|queue| {
            let at = queue.iter().position(|one| one.request == request)?;
            queue.remove(at)
        });
        if let Some(schedule) = found {
            self.count -= 1;
            schedule.end(groups, Some(Error::Cancelled));
        }
    }
}

impl Schedule {
    /// Takes steps as far as that goes. Returns true when all are over.
    fn advance<T: Transport>(&mut self, groups: &mut Groups<T>) -> Result<bool> {
        loop {
            let Some(step) = self.steps.as_slice().first() else {
                return self.settled(groups);
            };
            let ready = match *step {
                Step::Wait => self.settled(groups)?,
                Step::Until(number) => self.is_through(groups, number)?,
                _ => true,
            };
            if !ready {
                return Ok(false);
            }
            let Some(step) = self.steps.next() else {
                return Ok(true);
            };
            self.take_step(groups, step)?;
        }
    }

    /// Returns whether all started sends and receives are complete.
    fn settled<T: Transport>(&mut self, groups: &mut Groups<T>) -> Result<bool> {
        while let Some(last) = self.pending.len().checked_sub(1) {
            if !self.settle_one(groups, last)? {
                return Ok(false);
            }
        }
        Ok(!self.stalled)
    }

    /// Returns whether the one with this number is.
    fn is_through<T: Transport>(&mut self, groups: &mut Groups<T>, number: u32) -> Result<bool> {
        let mut pending = self.pending.iter();
        if let Some(at) = pending.position(|&(one, _)| one == number)
            && !self.settle_one(groups, at)?
        {
            return Ok(false);
        }
        Ok(!self.stalled)
    }

    /// Takes one off the pending ones, if it is complete. Returns whether it was.
    fn settle_one<T: Transport>(&mut self, groups: &mut Groups<T>, at: usize) -> Result<bool> {
        let Some((_, error)) = groups.finish(self.pending[at].1)? else {
            return Ok(false);
        };
        self.pending.remove(at);
        match error {
            None => {}
            // The others rely on what this member does next.
            Some(error @ Error::Truncated { .. }) => {
                self.truncated.get_or_insert(error);
            }
            // Its sender goes no further. Why, the death or the notice will tell, which
            // names the culprit and may still be on its way.
            Some(Error::Cancelled) => self.stalled = true,
            Some(error) => return Err(error),
        }
        Ok(true)
    }

    fn take_step<T: Transport>(&mut self, groups: &mut Groups<T>, step: Step) -> Result<()> {
        self.started += matches!(step, Step::Send(..) | Step::Receive(..)) as u32;
        match step {
            Step::Wait | Step::Until(_) => {}
            Step::Send(rank, views) => {
                let to = self.member(groups, rank)?;
                self.send(groups, to, views)?;
            }
            Step::SendToAll(ranks, views) => {
                let to = ranks.iter().map(|&rank| self.member(groups, rank));
                let to = to.collect::<Result<Vec<Peer>>>()?;
                for some in to.chunks(u64::BITS as usize) {
                    let gone = groups.try_send_to_all(some, self.context, self.tag, &views);
                    for (place, &to) in some.iter().enumerate() {
                        if gone & 1 << place == 0 {
                            self.send(groups, to, views.clone())?;
                        }
                    }
                }
            }
            Step::Receive(rank, views) => {
                let select = Select {
                    context: self.context,
                    source: Some(self.member(groups, rank)?),
                    tag: TagSelect::Exactly(self.tag),
                };
                let handle = groups.start_receive_of(select, views)?;
                self.pending.push((self.started, handle));
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

    fn send<T: Transport>(&mut self, groups: &mut Groups<T>, to: Peer, views: Views) -> Result<()> {
        let (context, tag) = (self.context, self.tag);
        let sent = groups.start_send(to, context, tag, views, Mode::Standard)?;
        if sent != Handle::COMPLETE {
            self.pending.push((self.started, sent));
        }
        Ok(())
    }

    fn member<T: Transport>(&self, groups: &Groups<T>, rank: u32) -> Result<Peer> {
        let peer = groups.group(self.group)?.peer(rank);
        peer.ok_or(Error::Task(rank as i64))
    }

    fn end<T: Transport>(mut self, groups: &mut Groups<T>, error: Option<Error>) {
        if let Some(error) = &error {
            groups.notify_failed(self.group, self.tag, error);
        }
        // After an error the user's memory must not be touched any more.
        for (_, handle) in self.pending {
            groups.withdraw(handle);
        }
        let error = error.or(self.truncated.take());
        groups.complete(self.request, error);
    }

    /// Returns why a collective that is not complete never will be, if that is so: a member has died, or
    /// one has said that it goes no further. (After one that left in good order only those fail
    /// that still wait for it; they tell the rest.)
    fn is_over<T: Transport>(&self, groups: &mut Groups<T>) -> Option<Error> {
        let died = groups.group(self.group).and_then(Group::usable).err();
        died.or_else(|| groups.failed(self.group, self.tag))
    }
}
