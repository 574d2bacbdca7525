//! Collective buffers: memory in which tasks that share it contribute a few bytes each to a round, which all the others read.
//! Small blocking collectives are rounds of such contributions; `round` says how.
//!
//! *Order.* A member that sees the round of a contribution sees its bytes. A contribution to a round takes the place of one to an earlier
//! round ([`COLLECTIVE_BUFFER_DEPTH`](crate::COLLECTIVE_BUFFER_DEPTH)): that nobody still reads that is for the engine to know.
//! *Blocking.* No call waits. Contributing may wake a member that sleeps, and is otherwise some stores.
//! *Faults.* A name that is no collective buffer is a [`Fault`]. Rounds are words of other tasks and can be anything.
//! *Ownership.* Each member has its own place, which only it writes. A buffer made for a group is used again when all of
//! its members have left it; if one has given it up, when all have that have entered it.

use std::ops::Range;

use regatta_memory::views::Views;

use super::{Fault, Peer};

/// Which bytes of a contribution to read.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// From this byte on.
    pub offset: usize,
    /// Length of the whole contribution, which all members know.
    pub total: usize,
}

/// Collective buffers of the groups of this task.
pub trait CollectiveBuffers {
    /// The shared memory in which small collectives happen.
    type CollectiveBuffer;

    /// The collective buffer all tasks share, if they share memory.
    fn world_collective_buffer(&mut self) -> Option<Self::CollectiveBuffer>;
    /// Makes a collective buffer for `members` tasks, and enters it; the number names it to the others. `None`: there are too many already.
    fn new_collective_buffer(
        &mut self,
        members: u32,
    ) -> Result<Option<(Self::CollectiveBuffer, u64)>, Fault>;
    /// Enters a collective buffer another member made. `None`: the others have given it up.
    fn enter_collective_buffer(
        &mut self,
        name: u64,
        members: u32,
    ) -> Result<Option<Self::CollectiveBuffer>, Fault>;
    /// This member will not touch a collective buffer any more that it has entered. `gives_up`: its group is of no use any more, so others may never enter.
    fn leave_collective_buffer(&mut self, name: u64, members: u32, gives_up: bool);
    /// Most bytes of a contribution.
    fn collective_buffer_capacity(&self, buffer: &Self::CollectiveBuffer) -> usize;
    /// Most bytes of a contribution in any collective buffer of a group of so many, wherever it is.
    fn contribution_limit(&self, members: u32) -> usize;
    /// Contribute the bytes of `from` to round `round` as member `index`, and wake whoever of the `listeners` waits for
    /// it. `peer_of` tells which task a member is.
    fn contribute(
        &self,
        buffer: &Self::CollectiveBuffer,
        index: u32,
        round: u32,
        from: &Views,
        listeners: Range<u32>,
        peer_of: &impl Fn(u32) -> Peer,
    );
    /// Has member `index` contributed to round `round`, and to no later one in its place?
    fn contributed(&self, buffer: &Self::CollectiveBuffer, index: u32, round: u32) -> bool;
    /// The round whose contribution of member `index` lies where that of `round` goes; 0: none yet.
    fn contributed_round(&self, buffer: &Self::CollectiveBuffer, index: u32, round: u32) -> u32;
    /// Copy from byte `offset` of the `total` bytes member `index` contributed to `round`.
    fn collect(
        &self,
        buffer: &Self::CollectiveBuffer,
        index: u32,
        round: u32,
        part: Part,
        into: &Views,
    );
    /// The memory of the `total` bytes that member `index` contributed to `round`, to be read where they lie until this task contributes to a later
    /// one, and aligned for every type; `None`: they have to be collected. All members read the same memory.
    fn contribution(
        &self,
        buffer: &Self::CollectiveBuffer,
        index: u32,
        round: u32,
        total: usize,
    ) -> Option<Views>;
    /// Say that this member, `index`, is about to sleep until `target` contributes (`None`: it is not). False: it had
    /// said something else before, so it must look once more before it sleeps.
    fn await_contribution(
        &self,
        buffer: &Self::CollectiveBuffer,
        index: u32,
        target: Option<u32>,
    ) -> bool;
}
