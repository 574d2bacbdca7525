//! Collectives: what all members of a group do together.
//!
//! Each is described once, by a function that makes the [`Operation`] of lengths and roots and refuses what does not fit. Both forms,
//! the one that blocks and the one that does not, bring it their memory.
//!
//! | file | has |
//! |---|---|
//! | `reduction` | what combines elements |
//! | `gathering` | what moves parts: gathers, scatters, complete exchanges |

mod gathering;
mod reduction;

use regatta_process::{Kind, Operation};

use crate::error::Result;
use crate::memory::Data;
use crate::raw::{Gives, Takes, blocking, owned};
use crate::{Group, Request};

pub use gathering::parts;

/// A collective with this root.
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
/// All block; all are called by every member of the group, in the same order, with the same root
/// and the same lengths (except where each member has its own). Counts are elements. If a member
/// dies, every member that cannot finish gets [`ErrorKind::Dead`](crate::ErrorKind::Dead) with its
/// name. Arguments that do not fit are errors before anything has happened; the other members then
/// wait for this one.
///
/// Forms that start with `i` do not block: they return at once with a [`Request`] that owns the memory
/// and gives the result at completion. All members start them in the same order, mixed with
/// blocking ones as they like; they may complete in any order.
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

    /// Starts a collective of which this member gives and gets this memory, of whose parts `rest` tells.
    fn start<T: Data>(
        &self,
        input: Option<Vec<T>>,
        output: Vec<T>,
        rest: Operation,
    ) -> Result<Request<'_, Vec<T>>> {
        owned::collective(self, input, output, rest, None).map(Request::of)
    }

    /// Waits until all members have come.
    pub fn barrier(&self) -> Result<()> {
        self.run::<u8>(None, None, Operation::of(Kind::Barrier))
    }

    /// Starts a barrier: complete when all members have started it.
    pub fn ibarrier(&self) -> Result<Request<'_, ()>> {
        owned::barrier(self).map(Request::of)
    }

    /// Gives the root's `data` to all members.
    pub fn broadcast<T: Data>(&self, data: &mut [T], root: usize) -> Result<()> {
        self.run(None, Some(data), rooted(Kind::Broadcast, root))
    }

    /// Starts a broadcast of the root's `data`; the other members' is as long. Gives it back.
    pub fn ibroadcast<T: Data>(&self, data: Vec<T>, root: usize) -> Result<Request<'_, Vec<T>>> {
        self.start(None, data, rooted(Kind::Broadcast, root))
    }
}
