//! Non-blocking operations on memory borrowed for a scope.
//!
//! The handle of an operation may be dropped or forgotten, so the handle cannot guarantee that the borrow outlives the
//! operation. The scope does: it registers every operation that it starts, and [`scope`] ends all of them before it returns or
//! unwinds.
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

/// The operations of a scope. `'scope` is invariant, so that a borrow for `'scope` lasts until the end of the scope.
#[derive(Debug, Default)]
pub(crate) struct Registry<'scope, 'env: 'scope> {
    table: Table,
    scope: PhantomData<Cell<&'scope ()>>,
    env: PhantomData<Cell<&'env ()>>,
}

/// Operations that are not over, by slot.
#[derive(Debug, Default)]
struct Table {
    open: RefCell<Vec<Option<Handle>>>,
    free: RefCell<Vec<usize>>,
}

/// Calls `body`. When this function returns or unwinds, all operations of the registry are over.
///
/// If `body` fails, receives without a message are cancelled, and all other operations are waited for. If `body` panics, all
/// operations are abandoned, because waiting could take forever.
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
            // Returns the body's error, which came first and explains more.
            let _ = registry.table.finish();
            Err(error)
        }
        // Dropping the table abandons the operations.
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

    /// Waits for all operations. Abandons those that cannot be waited for. Returns the first error.
    fn finish(&self) -> Result<()> {
        let mut first = Ok(());
        let slots = self.open.borrow().len();
        for slot in 0..slots {
            let Some(handle) = self.open.borrow()[slot] else {
                continue;
            };
            let outcome = ours(process::wait(handle)).and_then(told);
            if let Err(error) = outcome {
                // If the operation itself has failed, it is over, and this has no effect.
                let _ = process::forget(handle);
                first = first.and(Err(error));
            }
            self.open.borrow_mut()[slot] = None;
        }
        first
    }
}

impl Drop for Table {
    /// Abandons the operations that are not over. There are some only after a panic.
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

    /// Blocks until the operation is over. If the wait itself fails, the operation is not over, and the end of the scope waits
    /// for it.
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

/// A receive in a registry, with the borrow of its memory.
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

    /// Blocks until the receive is over, and returns its memory. See [`Entry::outcome`] for failed waits.
    pub(crate) fn wait(self) -> Result<(&'scope mut M, Status)> {
        let outcome = self.entry.outcome()?;
        let memory = self.memory.back();
        Ok((memory, Status::of(&told(outcome)?)))
    }
}
