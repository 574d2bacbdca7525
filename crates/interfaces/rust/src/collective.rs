//! Collectives: operations of all members of a group together.
//!
//! For each collective one function checks lengths and root and makes the [`Operation`] from them. The blocking and the
//! non-blocking form both use this function, and add their memory.
//!
//! | file | collectives |
//! |---|---|
//! | `reduction` | those that combine elements |
//! | `gathering` | those that move parts: gathers, scatters, complete exchanges |

mod gathering;
mod reduction;

use regatta_process::{Kind, Operation};

use crate::error::Result;
use crate::memory::Data;
use crate::raw::{Gives, Takes, blocking, owned};
use crate::{Group, Request};

pub use gathering::parts;

/// Returns the operation of a collective with this root.
fn rooted(kind: Kind, root: usize) -> Operation {
    Operation {
        root: u32::try_from(root).unwrap_or(u32::MAX),
        ..Operation::of(kind)
    }
}

fn zeros<T: Data>(len: usize) -> Vec<T> {
    vec![T::zeroed(); len]
}

/// # Collectives
///
/// Every member of the group calls all collectives of the group in the same order, with the same root and the same lengths,
/// except where a collective allows a different length for each member. Counts are in elements.
///
/// All collectives block, except those whose names start with `i`: these return at once with a [`Request`], which owns the
/// memory and returns the result at completion. They may complete in any order. Every member must start blocking and
/// non-blocking collectives in the same order.
///
/// If a member dies, every member that cannot finish gets [`ErrorKind::Dead`](crate::ErrorKind::Dead) with the dead task's
/// id. Arguments that do not fit together fail before this member takes part; the other members then wait for it.
impl Group<'_> {
    #[inline(always)]
    fn run<T: Data>(
        &self,
        input: Option<&[T]>,
        output: Option<&mut [T]>,
        rest: Operation,
    ) -> Result<()> {
        let (input, output) = (input.map(Gives::slice), output.map(Takes::slice));
        blocking::collective(self.id(), input, output, rest)
    }

    /// Starts a collective with this member's input and output; `rest` has all other fields of the operation.
    fn start<T: Data>(
        &self,
        input: Option<Vec<T>>,
        output: Vec<T>,
        rest: Operation,
    ) -> Result<Request<'_, Vec<T>>> {
        owned::collective(self, input, output, rest, None).map(Request::of)
    }

    /// Waits until all members have called it.
    pub fn barrier(&self) -> Result<()> {
        self.run::<u8>(None, None, Operation::of(Kind::Barrier))
    }

    /// Starts a barrier. The request is complete when all members have started it.
    pub fn ibarrier(&self) -> Result<Request<'_, ()>> {
        owned::barrier(self).map(Request::of)
    }

    /// Copies the root's `data` to all members' `data`.
    pub fn broadcast<T: Data>(&self, data: &mut [T], root: usize) -> Result<()> {
        self.run(None, Some(data), rooted(Kind::Broadcast, root))
    }

    /// Starts a broadcast of the root's `data`. All members pass a vector of the same length. The request returns the vector,
    /// filled with the root's elements.
    pub fn ibroadcast<T: Data>(&self, data: Vec<T>, root: usize) -> Result<Request<'_, Vec<T>>> {
        self.start(None, data, rooted(Kind::Broadcast, root))
    }
}
