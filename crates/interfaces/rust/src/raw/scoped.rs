//! Non-blocking operations on memory borrowed for a scope.
//!
//! A handle of an operation may be dropped or forgotten, so the handle cannot be what keeps the
//! memory lent. The scope is: it writes down every operation it starts, and no way out of
//! [`scope`] leads past the end of all of them.
#![deny(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use regatta_process::{self as process, GroupId, Handle, Mode, TagSelect};

use super::blocking::{Outcome, told};
use super::{Gives, Parked, outside};
use crate::Status;
use crate::error::{Result, ours};
use crate::memory::ScatterMemory;

/// The operations of a scope. `'scope` is invariant: a borrow for it lasts until the scope's end.
#[derive(Debug, Default)]
pub(crate) struct Registry<'scope, 'env: 'scope> {
    table: Table,
    scope: PhantomData<Cell<&'scope ()>>,
    env: PhantomData<Cell<&'env ()>>,
}

/// Open operations, by slot.
#[derive(Debug, Default)]
struct Table {
    open: RefCell<Vec<Option<Handle>>>,
    free: RefCell<Vec<usize>>,
}

/// Run `body`; when this returns (or unwinds), no operation of the registry is open any more.
///
/// After an error of the body, receives without a message are cancelled and the rest is waited
/// for. After a panic everything is withdrawn, because waiting could take forever.
pub(crate) fn scope<'env, R, F>(body: F) -> Result<R>
where
    F: for<'scope> FnOnce(&'scope Registry<'scope, 'env>) -> Result<R>,
{
    outside()?;
    let registry = Registry::default();
    match catch_unwind(AssertUnwindSafe(|| body(&registry))) {
        Ok(Ok(value)) => registry.table.finish().map(|()| value),
        Ok(Err(error)) => {
            registry.table.cancel_receives();
            // The body's error came first and tells more.
            let _ = registry.table.finish();
            Err(error)
        }
        // Dropping the table withdraws them.
        Err(panic) => resume_unwind(panic),
    }
}

impl<'scope, 'env> Registry<'scope, 'env> {
    pub(crate) fn send(
        &'scope self,
        from: Gives<'scope>,
        to: i32,
        tag: i32,
        group: GroupId,
        mode: Mode,
    ) -> Result<Entry<'scope>> {
        outside()?;
        let handle = ours(process::start_send(from.views, to, tag, group, mode))?;
        Ok(self.table.add(handle))
    }

    pub(crate) fn receive<M: ScatterMemory + ?Sized>(
        &'scope self,
        into: &'scope mut M,
        from: i32,
        tag: TagSelect,
        group: GroupId,
    ) -> Result<Lent<'scope, M>> {
        outside()?;
        let mut memory = Parked::new(into);
        let views = memory.takes()?.views;
        let handle = ours(process::start_receive(views, from, tag, group))?;
        Ok(Lent {
            entry: self.table.add(handle),
            memory,
        })
    }
}

impl Table {
    fn add(&self, handle: Handle) -> Entry<'_> {
        let mut open = self.open.borrow_mut();
        let slot = self.free.borrow_mut().pop().unwrap_or_else(|| {
            open.push(None);
            open.len() - 1
        });
        open[slot] = Some(handle);
        Entry {
            table: self,
            slot,
            handle,
        }
    }

    fn cancel_receives(&self) {
        for handle in self.open.borrow().iter().flatten() {
            let _ = process::cancel_receive(*handle);
        }
    }

    /// Wait for everything. An operation that cannot be waited for is withdrawn.
    fn finish(&self) -> Result<()> {
        let mut first = Ok(());
        let slots = self.open.borrow().len();
        for slot in 0..slots {
            let Some(handle) = self.open.borrow()[slot] else {
                continue;
            };
            let outcome = ours(process::wait(handle)).and_then(told);
            if let Err(error) = outcome {
                // After the operation's own error it is over, and there is nothing to forget.
                let _ = process::forget(handle);
                first = first.and(Err(error));
            }
            self.open.borrow_mut()[slot] = None;
        }
        first
    }
}

impl Drop for Table {
    /// Withdraw what is still open: there is something only when a panic has come in between.
    fn drop(&mut self) {
        for handle in self.open.get_mut().drain(..).flatten() {
            let _ = process::forget(handle);
        }
    }
}

/// An operation in a registry.
#[derive(Debug)]
pub(crate) struct Entry<'scope> {
    table: &'scope Table,
    slot: usize,
    handle: Handle,
}

impl Entry<'_> {
    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    /// Blocks until the operation is over. After an error of waiting itself it is still open, and
    /// the scope's end will see to it.
    fn outcome(self) -> Result<Outcome> {
        outside()?;
        let outcome = ours(process::wait(self.handle))?;
        self.table.open.borrow_mut()[self.slot] = None;
        self.table.free.borrow_mut().push(self.slot);
        Ok(outcome)
    }

    pub(crate) fn wait(self) -> Result<Status> {
        Ok(Status::of(&told(self.outcome()?)?))
    }
}

/// A receive in a registry, and the borrow it holds.
pub(crate) struct Lent<'scope, M: ?Sized> {
    entry: Entry<'scope>,
    memory: Parked<'scope, M>,
}

impl<'scope, M: ?Sized> Lent<'scope, M> {
    pub(crate) fn handle(&self) -> Handle {
        self.entry.handle
    }

    pub(crate) fn cancel(&self) -> Result<bool> {
        outside()?;
        ours(process::cancel(self.entry.handle))
    }

    /// As for an entry; then the memory is its borrower's again.
    pub(crate) fn wait(self) -> Result<(&'scope mut M, Status)> {
        let outcome = self.entry.outcome()?;
        let memory = self.memory.back();
        Ok((memory, Status::of(&told(outcome)?)))
    }
}
