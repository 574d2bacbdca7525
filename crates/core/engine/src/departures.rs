//! Groups in which the departure of a member ends only calls that wait.
//!
//! Elsewhere a departure ends every request that depends on the task that left ([`crate::losses`]). An interface may say that such a request can still
//! be of use: its receive may be cancelled, or take a message of another member, or one that this task sends to itself. In a group that
//! *tolerates departures* a request stays pending therefore, and a look for messages finds none. A call that blocks ends all the same, as soon
//! as it is certain that nothing can complete what it waits for ([`Engine::end_hopeless`]). Deaths end requests there as everywhere.
//!
//! A send that its receiver will not take is *stranded*: it moves no more, and waits to be cancelled or given up.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::matching::Select;
use crate::request::{Handle, Stage, Status};
use crate::transport::Transport;
use regatta_memory::views::Views;

/// A send that its receiver will not take.
#[derive(Debug)]
pub(crate) struct Stranded {
    request: u32,
    context: u32,
    error: Error,
}

/// The effect of a member's departure on requests of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departures {
    /// Requests that depend on a member end when it leaves.
    End,
    /// They stay pending. With `threads`, other threads of this task may send to the task itself.
    Tolerate {
        /// Whether the task has them.
        threads: bool,
    },
}

impl<T: Transport> Engine<T> {
    /// From now on departures of members end only calls that wait for messages of this group; collectives end as before. `threads`: whether other
    /// threads of this task may call, and so send to the task itself.
    pub fn tolerate_departures(&mut self, id: GroupId, threads: bool) -> Result<()> {
        self.closed(id)?;
        self.group_mut(id)?.departures = Departures::Tolerate { threads };
        Ok(())
    }

    fn tolerates_departures(&self, context: u32) -> bool {
        let is_of_collective = !context.is_multiple_of(2);
        let group = self.groups.by_context(context);
        !is_of_collective && group.is_some_and(|group| group.departures != Departures::End)
    }

    /// Whether other threads of this task may send messages in this context.
    fn has_threads(&self, context: u32) -> bool {
        let group = self.groups.by_context(context);
        group.is_none_or(|group| group.departures != Departures::Tolerate { threads: false })
    }

    /// Whether requests for messages of this context stay pending when their peer is gone for this reason.
    pub(crate) fn outlasts(&self, context: u32, loss: &Error) -> bool {
        matches!(loss, Error::Left(_)) && self.tolerates_departures(context)
    }

    /// Whether a receive of these messages may be pending, though its sources may be gone.
    pub(crate) fn check_pending(&mut self, select: &Select) -> Result<()> {
        match self.check_source(select) {
            Ok(()) => Ok(()),
            Err(Error::Revoked) => Err(Error::Revoked),
            Err(_) if select.source.is_none() => self.check_pending_any(select.context),
            Err(error) if self.outlasts(select.context, &error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether a receive from any source in this context may be pending.
    pub(crate) fn check_pending_any(&self, context: u32) -> Result<()> {
        if !self.tolerates_departures(context) {
            return self.check_any_source(context);
        }
        match self.unacknowledged_death(context) {
            Some(peer) => Err(self.loss(peer)),
            None => Ok(()),
        }
    }

    /// Ends a send whose receiver is gone: it is complete with this error, or stranded. One that has been asked back is cancelled instead of that.
    pub(crate) fn end_send(
        &mut self,
        request: u32,
        context: u32,
        is_asked_back: bool,
        error: Error,
    ) {
        let failed = self.requests.get(request);
        // Nobody can cancel one that calls back: it ends now.
        let is_stranded = failed.callback.is_none() && self.outlasts(context, &error);
        match is_stranded {
            true if is_asked_back => self.requests.complete(request, Some(Error::Cancelled)),
            true => self.strand(request, context, error),
            false => self.requests.complete(request, Some(error)),
        }
    }

    /// The request of a send that cannot be started for this reason, if it may be stranded.
    pub fn start_stranded(&mut self, context: u32, error: Error) -> Result<Handle> {
        if !self.outlasts(context, &error) {
            return Err(error);
        }
        let id = self
            .requests
            .add(Stage::Moving, Status::EMPTY, Views::none());
        self.strand(id, context, error);
        Ok(self.requests.handle(id))
    }

    fn strand(&mut self, request: u32, context: u32, error: Error) {
        self.stranded.push(Stranded {
            request,
            context,
            error,
        });
    }

    /// Whether this is the request of a stranded send.
    pub(crate) fn is_stranded(&self, request: u32) -> bool {
        self.stranded.iter().any(|send| send.request == request)
    }

    /// Ends stranded sends of groups that are revoked.
    pub(crate) fn end_stranded(&mut self, ends: &impl Fn(u32, i32) -> bool) {
        let is_over = |send: &mut Stranded| ends(send.context, 0);
        let over: Vec<Stranded> = self.stranded.extract_if(.., is_over).collect();
        for send in over {
            self.requests.complete(send.request, Some(Error::Revoked));
        }
    }

    /// A stranded send is stranded no more: its error. `None`: it is none.
    pub(crate) fn take_stranded(&mut self, request: u32) -> Option<Error> {
        let mut stranded = self.stranded.iter();
        let at = stranded.position(|send| send.request == request)?;
        Some(self.stranded.swap_remove(at).error)
    }

    /// Ends one of these requests with its error if none of them can be completed by anybody any more. `is_alone`: whether this task has no other thread,
    /// which might send to the task itself; asked only where it matters. Whether one has ended.
    pub fn end_hopeless(
        &mut self,
        handles: impl Iterator<Item = Handle>,
        mut is_alone: impl FnMut(&Self) -> bool,
    ) -> bool {
        if self.gone.is_empty() {
            return false;
        }
        let mut first = None;
        for handle in handles {
            let Some(found) = self.hopeless(handle, &mut is_alone) else {
                return false;
            };
            first.get_or_insert(found);
        }
        let Some((id, error)) = first else {
            return false;
        };
        // A look for a later one may have ended it otherwise.
        let is_pending = match self.requests.get(id).stage {
            Stage::Posted(number) => {
                self.posted.remove(number);
                true
            }
            _ => self.take_stranded(id).is_some(),
        };
        if is_pending {
            self.requests.complete(id, Some(error));
        }
        true
    }

    /// A pending request that nobody can complete, and why.
    fn hopeless(
        &mut self,
        handle: Handle,
        is_alone: &mut impl FnMut(&Self) -> bool,
    ) -> Option<(u32, Error)> {
        let id = self.find(handle).ok()?;
        match self.requests.get(id).stage {
            Stage::Posted(number) => {
                let select = self.posted.select(number)?;
                let error = self.check_hope(&select, is_alone).err()?;
                // The look may have found the message among the last ones of those that left.
                let is_pending = self.requests.get(id).stage == Stage::Posted(number);
                is_pending.then_some((id, error))
            }
            Stage::Sending(_) | Stage::Moving => {
                let mut stranded = self.stranded.iter();
                let send = stranded.find(|send| send.request == id)?;
                Some((id, send.error.clone()))
            }
            _ => None,
        }
    }

    /// An error if no message can come any more that such a receive would take.
    pub fn check_hope(
        &mut self,
        select: &Select,
        mut is_alone: impl FnMut(&Self) -> bool,
    ) -> Result<()> {
        if self.gone.is_empty() || !self.tolerates_departures(select.context) {
            return Ok(());
        }
        self.look(select);
        // The look may have brought the word that the group is revoked.
        self.run_revocations();
        match self.check_source(select) {
            Err(Error::Revoked) => Err(Error::Revoked),
            // This task itself may send what this receive takes.
            Err(_)
                if select.source.is_none()
                    && self.has_threads(select.context)
                    && !is_alone(self) =>
            {
                Ok(())
            }
            checked => checked,
        }
    }
}
