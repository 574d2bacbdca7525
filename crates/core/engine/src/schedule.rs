//! Schedules: collectives as lists of sends, receives, copies and combinations.
//!
//! A schedule is created when the collective starts, and runs as far as it can at every progress call. So the blocking and the nonblocking form of a
//! collective are the same. Steps between two waits run without waiting; a wait holds until all sends and receives before it are complete.
//!
//! Of the schedules of a group, progress runs only the [`MAX_RUNNING_SCHEDULES`] oldest, so the cost of starting another one does not depend on
//! their number. That suffices: all members start them in the same order, so the oldest one that is not complete everywhere is among the oldest of
//! each member.

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
    /// Sends to the member with this rank.
    Send(u32, Views),
    /// Sends the same to the members with these ranks.
    SendToAll(Vec<u32>, Views),
    /// Receives from the member with this rank.
    Receive(u32, Views),
    /// Waits until all previous sends and receives are complete.
    Wait,
    /// Waits until the send or receive with this number is complete.
    Until(u32),
    /// Copies from the first memory to the second.
    Copy(Views, Views),
    /// Computes `inout = from op inout`.
    Combine {
        operator: Operator,
        element: Element,
        count: usize,
        from: Views,
        inout: Views,
    },
}

/// The steps of a collective that is to start, and the memory they need. A failed allocation is recorded and reported at the start, so that the
/// other members can be notified.
#[derive(Default)]
pub(crate) struct Steps {
    list: Vec<Step>,
    /// Number of sends and receives among the steps.
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

    /// Returns memory for intermediate results. If there is none, returns empty memory and records the error.
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

/// A collective in progress.
struct Schedule {
    group: GroupId,
    context: u32,
    tag: i32,
    request: u32,
    steps: std::vec::IntoIter<Step>,
    /// Number of sends and receives so far; and those that are not complete, with their numbers.
    started: u32,
    pending: Vec<(u32, Handle)>,
    /// A message was too long for its buffer. Becomes the result once the schedule has run to its end for the other members.
    truncated: Option<Error>,
    /// A message was withdrawn by its sender. The schedule ends once the reason is known.
    stalled: bool,
}

/// Maximum number of a group's collectives that progress runs while no task is gone.
const MAX_RUNNING_SCHEDULES: usize = 32;
/// Number of groups whose queue is kept when it is empty, so that the next collective needs no allocation.
const MAX_EMPTY_QUEUES: usize = 16;

/// All collectives in progress.
#[derive(Default)]
pub(crate) struct Schedules {
    /// By context, in the order in which they were started.
    queues: Vec<(u32, VecDeque<Schedule>)>,
    count: usize,
}

impl Schedules {
    /// Returns whether no collective is in progress.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Starts the steps of a collective that has already begun, as number `tag` of its group.
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

    /// Runs the oldest schedules of each group as far as possible. Returns whether anything changed.
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

    /// Gives up the collective of a request, if the request is one. The request is then complete.
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
    /// Takes steps as far as possible. Returns true when all are done.
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

    /// Returns whether the send or receive with this number is complete.
    fn is_through<T: Transport>(&mut self, groups: &mut Groups<T>, number: u32) -> Result<bool> {
        let mut pending = self.pending.iter();
        if let Some(at) = pending.position(|&(one, _)| one == number)
            && !self.settle_one(groups, at)?
        {
            return Ok(false);
        }
        Ok(!self.stalled)
    }

    /// Removes a pending send or receive if it is complete. Returns whether it was.
    fn settle_one<T: Transport>(&mut self, groups: &mut Groups<T>, at: usize) -> Result<bool> {
        let Some((_, error)) = groups.finish(self.pending[at].1)? else {
            return Ok(false);
        };
        self.pending.remove(at);
        match error {
            None => {}
            // Continue: the other members depend on the next steps of this one.
            Some(error @ Error::Truncated { .. }) => {
                self.truncated.get_or_insert(error);
            }
            // The sender cannot complete the collective. The reason is known from its death or from its notice, which names the culprit and may
            // still be in flight.
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
        // After an error the user's memory must not be accessed any more.
        for (_, handle) in self.pending {
            groups.withdraw(handle);
        }
        let error = error.or(self.truncated.take());
        groups.complete(self.request, error);
    }

    /// Returns the error of a collective that never will be complete: a member has died, or a member has notified this one that it cannot complete
    /// it. (If a member left in good order, only those that still wait for it fail, and notify the others.)
    fn is_over<T: Transport>(&self, groups: &mut Groups<T>) -> Option<Error> {
        let died = groups.group(self.group).and_then(Group::usable).err();
        died.or_else(|| groups.failed(self.group, self.tag))
    }
}
