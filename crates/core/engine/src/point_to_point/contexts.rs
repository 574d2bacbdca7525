//! Contexts with special rules: those that are closed because their group is revoked, and those that tolerate departures.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Error;
use crate::numbers;

/// The contexts with special rules. A group's second context has the rules of its first.
#[derive(Default)]
pub(crate) struct Contexts {
    closed: FxHashSet<u32>,
    /// Contexts that tolerate departures. The value says whether other threads of this task may send to the task itself.
    tolerant: FxHashMap<u32, bool>,
}

impl Contexts {
    /// Returns whether the context is closed. Usually none is.
    #[inline(always)]
    pub(crate) fn is_closed(&self, context: u32) -> bool {
        !self.closed.is_empty() && self.closed.contains(&(context & !1))
    }

    /// Returns whether no context is closed.
    #[inline(always)]
    pub(super) fn are_open(&self) -> bool {
        self.closed.is_empty()
    }

    /// Fails if the context is closed, except for messages of agreements.
    pub(super) fn check(&self, context: u32, tag: i32) -> Result<(), Error> {
        match self.is_closed(context) && !numbers::is_kept(context, tag) {
            true => Err(Error::Revoked),
            false => Ok(()),
        }
    }

    pub(super) fn close(&mut self, context: u32) {
        self.closed.insert(context);
    }

    /// Reopens contexts for which `is` returns true, since they will be reused.
    pub(super) fn reopen(&mut self, is: impl Fn(u32) -> bool) {
        self.closed.retain(|&context| !is(context));
    }

    /// Lets requests in this context stay pending when their peer leaves. `threads` says whether other threads of this task may send to the task
    /// itself.
    pub(super) fn tolerate_departures(&mut self, context: u32, threads: bool) {
        self.tolerant.insert(context, threads);
    }

    /// Forgets the context of a freed group.
    pub(super) fn forget(&mut self, context: u32) {
        self.tolerant.remove(&context);
    }

    /// Returns whether requests in this context stay pending when their peer leaves. Those of collectives never do.
    pub(crate) fn is_tolerant(&self, context: u32) -> bool {
        self.tolerant.contains_key(&context)
    }

    /// Returns whether other threads of this task may send messages in this context.
    pub(crate) fn has_threads(&self, context: u32) -> bool {
        self.tolerant.get(&context).is_none_or(|&threads| threads)
    }
}

/// A send that its receiver will not take.
#[derive(Debug)]
pub(super) struct Stranded {
    pub(super) request: u32,
    pub(super) context: u32,
    pub(super) error: Error,
}
