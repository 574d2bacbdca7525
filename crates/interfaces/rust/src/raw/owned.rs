//! Non-blocking operations that own their memory.
//!
//! The memory lives in the operation until it is over. A caller that drops the operation leaves the memory
//! to the engine, which frees it at completion; who forgets it, leaks it. Either way the engine
//! never touches memory that is somebody else's by now.
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

/// The memory that an operation keeps alive: the buffer to give back, and all else that it uses.
struct Kept<B> {
    buffer: B,
    _rest: Option<Box<dyn Any + Send>>,
}

/// An operation that has been started in a group, and what it keeps. As it has a `drop` of its
/// own, the compiler sees to it that it is dropped while the group is there: handles mean nothing
/// afterwards.
pub(crate) struct Open<'g, B: Send + 'static> {
    group: PhantomData<&'g Group<'g>>,
    handle: Handle,
    /// `None` once the operation is over or has been handed on.
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

    /// Blocks until the operation is over. After an error of waiting itself it is still open, and
    /// is dropped.
    pub(crate) fn wait(mut self) -> Result<(B, Status)> {
        outside()?;
        let outcome = ours(process::wait(self.handle))?;
        let Some(kept) = self.kept.take() else {
            unreachable!("only `wait`, `on_complete` and `drop` take it, and each is the last call")
        };
        Ok((kept.buffer, Status::of(&told(outcome)?)))
    }

    /// Have `done` called with the outcome, from a later call of some thread.
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
            // No way to tell the engine from here.
            std::mem::forget(kept);
            return;
        }
        let _ = process::cancel_receive(self.handle);
        // An error means that the operation is over: then the buffer may go at once.
        let freed = move |_, _| unharmed(move || drop(kept));
        let _ = process::on_complete(self.handle, Box::new(freed));
    }
}

/// Run what a user left to be run from inside some other call of Regatta, whose memory is
/// borrowed: a panic cannot unwind through that call, and ends the process.
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

/// A collective whose input, if it has one of its own, and output are these; all else is in `rest`, of whose reduction the operator is
/// kept as long.
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

/// A reduction of the elements of the input, or without one of those in the output.
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
