//! Non-blocking operations that own their memory.
//!
//! The memory lives in the operation until it is over. A caller that drops the operation leaves the memory
//! to the engine, which frees it at completion; who forgets it, leaks it. Either way the engine
//! never touches memory that is somebody else's by now.
#![deny(unsafe_code)]

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use regatta_process::{self as process, Handle, Mode, Parts, Reduction, TagSelect};

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
    Open::new(process::start_barrier(group.id()), ())
}

pub(crate) fn broadcast<'g, T: Data>(
    group: &'g Group<'_>,
    root: u32,
    mut buffer: Vec<T>,
) -> Result<Open<'g, Vec<T>>> {
    outside()?;
    let views = Takes::slice(&mut buffer).views;
    Open::new(process::start_broadcast(group.id(), root, views), buffer)
}

/// The three reductions; input and output are the same.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fold {
    To(u32),
    ToAll,
    Scan,
}

pub(crate) fn reduce<'g, T: Data, O>(
    group: &'g Group<'_>,
    fold: Fold,
    mut buffer: Vec<T>,
    operator: O,
) -> Result<Open<'g, Vec<T>>>
where
    O: OperatorReduction<T> + Send + Sync + 'static,
{
    outside()?;
    let count = buffer.len();
    let operator = Arc::new(operator);
    let what: Reduction = operator.reduction(count);
    let output = Takes::slice(&mut buffer).views;
    let input = output.clone();
    let started = match fold {
        Fold::To(root) => process::start_reduce(group.id(), root, input, output, what),
        Fold::ToAll => process::start_allreduce(group.id(), input, output, what),
        Fold::Scan => process::start_scan(group.id(), input, output, what),
    };
    Open::keeping(started, buffer, Some(Box::new(operator)))
}

pub(crate) fn gather<'g, T: Data>(
    group: &'g Group<'_>,
    root: u32,
    input: Vec<T>,
    mut output: Vec<T>,
    parts: &Parts,
) -> Result<Open<'g, Vec<T>>> {
    outside()?;
    let (from, into) = (Gives::slice(&input).views, Takes::slice(&mut output).views);
    let started = process::start_gather(group.id(), root, Some(from), into, parts);
    Open::keeping(started, output, Some(Box::new(input)))
}

pub(crate) fn scatter<'g, T: Data>(
    group: &'g Group<'_>,
    root: u32,
    input: Vec<T>,
    parts: &Parts,
    mut output: Vec<T>,
) -> Result<Open<'g, Vec<T>>> {
    outside()?;
    let (from, into) = (Gives::slice(&input).views, Takes::slice(&mut output).views);
    let started = process::start_scatter(group.id(), root, from, parts, Some(into));
    Open::keeping(started, output, Some(Box::new(input)))
}

pub(crate) fn allgather<'g, T: Data>(
    group: &'g Group<'_>,
    input: Vec<T>,
    mut output: Vec<T>,
    parts: &Parts,
) -> Result<Open<'g, Vec<T>>> {
    outside()?;
    let (from, into) = (Gives::slice(&input).views, Takes::slice(&mut output).views);
    let started = process::start_allgather(group.id(), Some(from), into, parts);
    Open::keeping(started, output, Some(Box::new(input)))
}

pub(crate) fn alltoall<'g, T: Data>(
    group: &'g Group<'_>,
    input: Vec<T>,
    gives: &Parts,
    mut output: Vec<T>,
    gets: &Parts,
) -> Result<Open<'g, Vec<T>>> {
    outside()?;
    let (from, into) = (Gives::slice(&input).views, Takes::slice(&mut output).views);
    let started = process::start_alltoall(group.id(), from, gives, into, gets);
    Open::keeping(started, output, Some(Box::new(input)))
}
