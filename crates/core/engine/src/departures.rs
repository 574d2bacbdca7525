//! Groups in which the departure of a member ends only calls that wait.
//!
//! Elsewhere a departure ends every request that depends on the task that left (`losses`). An interface may say that such a request can still
//! be of use: its receive may be cancelled, or take a message of another member, or one that this task sends to itself. In a group that
//! *tolerates departures* a request stays pending therefore, and a look for messages finds none. A call that blocks ends all the same, as soon
//! as it is certain that nothing can complete what it waits for ([`Engine::end_hopeless`]). Deaths end requests there as everywhere.
//!
//! A send that its receiver will not take is *stranded*: it moves no more, and waits to be cancelled or given up.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::matching::Select;
use crate::request::Handle;
use crate::transport::Transport;

impl<T: Transport> Engine<T> {
    /// Lets departures of members end only calls that wait for messages of this group; collectives end as before. `threads`: whether other
    /// threads of this task may call, and so send to the task itself.
    pub fn tolerate_departures(&mut self, id: GroupId, threads: bool) -> Result<()> {
        let context = self.closed(id)?.context;
        self.groups.tolerate_departures(context, threads);
        Ok(())
    }

    /// Ends one of these requests with its error if none of them can be completed by anybody any more. `is_alone`: whether this task has no other thread,
    /// which might send to the task itself; asked only where it matters. Returns whether one has ended.
    pub fn end_hopeless(
        &mut self,
        handles: impl Iterator<Item = Handle>,
        mut is_alone: impl FnMut(&Self) -> bool,
    ) -> bool {
        if self.is_nobody_gone() {
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
        self.groups.p2p.fail_pending(id, error);
        true
    }

    /// Returns a pending request that nobody can complete, and why.
    fn hopeless(
        &mut self,
        handle: Handle,
        is_alone: &mut impl FnMut(&Self) -> bool,
    ) -> Option<(u32, Error)> {
        let pending = self.find_pending(handle)?;
        let (id, Some(select)) = pending else {
            return Some((pending.0, self.stranded(pending.0)?.clone()));
        };
        let error = self.check_hope(&select, is_alone).err()?;
        // The look may have found the message among the last ones of those that left.
        (self.find_pending(handle) == Some(pending)).then_some((id, error))
    }

    /// Fails if no message can come any more that such a receive would take.
    pub fn check_hope(
        &mut self,
        select: &Select,
        mut is_alone: impl FnMut(&Self) -> bool,
    ) -> Result<()> {
        if self.is_nobody_gone() || !self.contexts().is_tolerant(select.context) {
            return Ok(());
        }
        self.look(select);
        // The look may have brought the word that the group is revoked.
        self.handle_words();
        self.run_revocations();
        match self.groups.check_source(select) {
            // This task itself may send what this receive takes.
            Err(error)
                if error != Error::Revoked
                    && select.source.is_none()
                    && self.contexts().has_threads(select.context)
                    && !is_alone(self) =>
            {
                Ok(())
            }
            checked => checked,
        }
    }
}
