//! Groups in which the departure of a member ends only blocking calls.
//!
//! Elsewhere a departure ends every request that depends on the task that left (`losses`). An interface may need such a request to stay pending: a
//! receive may be cancelled, or take a message of another member or one that this task sends to itself. So in a group that *tolerates departures* a
//! request stays pending, and a probe finds no message. A blocking call still fails as soon as it is certain that nothing can complete it
//! ([`Engine::end_hopeless`]). Deaths end requests as in all other groups.
//!
//! A send that its receiver will not take is *stranded*: it makes no progress, and waits until it is cancelled or given up.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::matching::Select;
use crate::request::Handle;
use crate::transport::Transport;

impl<T: Transport> Engine<T> {
    /// Sets that the departure of a member ends calls that wait for messages of this group, and no others. Collectives still fail. `threads` says whether other threads
    /// of this task may make calls, and so send to the task itself.
    pub fn tolerate_departures(&mut self, id: GroupId, threads: bool) -> Result<()> {
        let context = self.closed(id)?.context;
        self.groups.tolerate_departures(context, threads);
        Ok(())
    }

    /// Fails one of these requests if none of them can complete any more. `is_alone` returns whether this task has no other thread that might send
    /// to the task itself; it is called only if that matters. Returns whether a request has failed.
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
        // Checking a later request may have completed this one.
        self.groups.p2p.fail_pending(id, error);
        true
    }

    /// Returns a pending request that can never complete, and its error.
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
        // The check may have found the message among the last ones of the tasks that left.
        (self.find_pending(handle) == Some(pending)).then_some((id, error))
    }

    /// Fails if no message that such a receive would take can arrive any more.
    pub fn check_hope(
        &mut self,
        select: &Select,
        mut is_alone: impl FnMut(&Self) -> bool,
    ) -> Result<()> {
        if self.is_nobody_gone() || !self.contexts().is_tolerant(select.context) {
            return Ok(());
        }
        self.look(select);
        // The check may have received a revocation of the group.
        self.handle_words();
        self.run_revocations();
        match self.groups.check_source(select) {
            // This task itself may send a message that this receive takes.
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
