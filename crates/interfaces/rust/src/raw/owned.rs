//! Non-blocking operations that own their memory.
//!
//! The operation owns the memory until it is over. If the caller drops the operation, the engine frees the memory at
//! completion. If the caller forgets the operation, the memory is leaked. In both cases the engine never uses memory that
//! has been freed.
#![deny(unsafe_code)]

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use regatta_process::{self as process, Handle, Kind, Mode, Operation, TagSelect};

use super::blocking::told;
use super::{Gives, Takes, outside};
use crate::error::{Result, ours};
use crate::memory::Data;
use crate::operator::OperatorReduction;
use crate::{Group, Status};

/// The memory that an operation keeps alive: the buffer to return, and all other memory that it uses.
struct Kept<B> {
    buffer: B,
    _rest: Option<Box<dyn Any + Send>>,
}

/// A started operation in a group, with the memory that it keeps alive. Since the type implements `Drop`, the compiler
/// ensures that an operation is dropped before its group, after which its handle would be invalid.
pub(crate) struct Open<'g, B: Send + 'static> {
    group: PhantomData<&'g Group<'g>>,
    handle: Handle,
    /// `None` after `wait`, `on_complete` or `drop` has taken it.
    kept: Option<Kept<B>>,
}

impl<B: Send + 'static> Open<'_, B> {
    fn new(started: process::Result<Handle>, buffer: B) -> Result<Self> {
        Open::keeping(started, buffer, None)
    }

    fn keeping(
        started: process::Result<Handle>,
        buffer: B,
        rest: Option<Box<dyn Any + Send>>,
    ) -> Result<Self> {
        let kept = Kept {
            buffer,
            _rest: rest,
        };
        Ok(Open {
            group: PhantomData,
            handle: ours(started)?,
            kept: Some(kept),
        })
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn test(&self) -> Result<bool> {
        outside()?;
        ours(process::all_done(std::iter::once(self.handle)))
    }

    /// Blocks until the operation is over. If the wait itself fails, the operation is not over, and is dropped.
    pub(crate) fn wait(mut self) -> Result<(B, Status)> {
        outside()?;
        let outcome = ours(process::wait(self.handle))?;
        let Some(kept) = self.kept.take() else {
            unreachable!("only `wait`, `on_complete` and `drop` take it, and each is the last call")
        };
        Ok((kept.buffer, Status::of(&told(outcome)?)))
    }

    /// Makes the engine call `done` with the outcome, from a later call of any thread.
    pub(crate) fn on_complete<F>(mut self, done: F) -> Result<()>
    where
        F: FnOnce(Result<(B, Status)>) + Send + 'static,
    {
        outside()?;
        let Some(kept) = self.kept.take() else {
            return Ok(());
        };
        let called = move |status, error| {
            let outcome = told((status, error));
            unharmed(move || done(outcome.map(|status| (kept.buffer, Status::of(&status)))));
        };
        ours(process::on_complete(self.handle, Box::new(called)))
    }
}

impl<B: Send + 'static> Drop for Open<'_, B> {
    fn drop(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        if self.handle == Handle::COMPLETE {
            return;
        }
        if outside().is_err() {
            // The engine cannot be entered here, so the memory is leaked.
            std::mem::forget(kept);
            return;
        }
        let _ = process::cancel_receive(self.handle);
        // If `on_complete` fails, the operation is over, and dropping the closure frees the buffer at once.
        let freed = move |_, _| unharmed(move || drop(kept));
        let _ = process::on_complete(self.handle, Box::new(freed));
    }
}

/// Runs a user's callback inside another call of Regatta. A panic in it aborts the process: it must not unwind through that
/// call, whose memory is borrowed.
fn unharmed(callback: impl FnOnce()) {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            std::process::abort();
        }
    }
    let ends = Ends;
    callback();
    std::mem::forget(ends);
}

pub(crate) fn send<'g, T: Data>(
    buffer: Vec<T>,
    to: i32,
    tag: i32,
    group: &'g Group<'_>,
    mode: Mode,
) -> Result<Open<'g, Vec<T>>> {
    outside()?;
    let views = Gives::slice(&buffer).views;
    Open::new(
        process::start_send(views, to, tag, group.id(), mode),
        buffer,
    )
}

pub(crate) fn receive<'g, T: Data>(
    mut buffer: Vec<T>,
    from: i32,
    tag: TagSelect,
    group: &'g Group<'_>,
) -> Result<Open<'g, Vec<T>>> {
    outside()?;
    let views = Takes::slice(&mut buffer).views;
    Open::new(process::start_receive(views, from, tag, group.id()), buffer)
}

pub(crate) fn barrier<'g>(group: &'g Group<'_>) -> Result<Open<'g, ()>> {
    outside()?;
    let barrier = Operation::of(Kind::Barrier);
    Open::new(process::start(group.id(), &barrier), ())
}

/// Starts a collective with this input, if any, and output; `rest` has all other fields of the operation. `operator` is kept
/// alive until the operation is over.
pub(crate) fn collective<'g, T: Data>(
    group: &'g Group<'_>,
    input: Option<Vec<T>>,
    mut output: Vec<T>,
    rest: Operation,
    operator: Option<Box<dyn Any + Send>>,
) -> Result<Open<'g, Vec<T>>> {
    outside()?;
    let operation = Operation {
        input: input.as_ref().map(|input| Gives::slice(input).views),
        output: Some(Takes::slice(&mut output).views),
        ..rest
    };
    let started = process::start(group.id(), &operation);
    Open::keeping(started, output, Some(Box::new((input, operator))))
}

/// Starts a reduction of the elements of the input, or of the output if there is no input.
pub(crate) fn reduction<'g, T: Data, O>(
    group: &'g Group<'_>,
    input: Option<Vec<T>>,
    output: Vec<T>,
    operator: O,
    rest: Operation,
) -> Result<Open<'g, Vec<T>>>
where
    O: OperatorReduction<T> + Send + Sync + 'static,
{
    let operator = Arc::new(operator);
    let rest = Operation {
        reduction: Some(operator.reduction(input.as_ref().unwrap_or(&output).len())),
        ..rest
    };
    collective(group, input, output, rest, Some(Box::new(operator)))
}
