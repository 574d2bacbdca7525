//! Collective buffers: memory to which tasks that share it contribute a few bytes each per round, which all others read. Small blocking collectives
//! are rounds of such contributions; see `round`.
//!
//! *Order.* A member that sees the round number of a contribution sees its bytes. A contribution to a round overwrites one to an earlier round
//! ([`COLLECTIVE_BUFFER_DEPTH`](crate::COLLECTIVE_BUFFER_DEPTH)). The engine makes sure that no member still reads the earlier one.
//! *Blocking.* No call blocks. Contributing may wake a sleeping member; otherwise it consists of a few stores.
//! *Faults.* A name that is not that of a collective buffer is a [`Fault`]. Round numbers are written by other tasks and can have any value.
//! *Ownership.* Each member has its own slot, which only it writes. A buffer made for a group is reused when all members have left it. If a member
//! has given it up, it is reused when all members that have entered it have left.

use std::ops::Range;

use regatta_memory::views::Views;

use super::{Fault, Peer};

/// The part of a contribution to read.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// First byte to read.
    pub offset: usize,
    /// Length of the whole contribution in bytes, which all members know.
    pub total: usize,
}

/// Collective buffers of the groups of this task.
pub trait CollectiveBuffers {
    /// The shared memory of small collectives.
    type CollectiveBuffer;

    /// Returns the collective buffer of all tasks, if they share memory.
    fn world_collective_buffer(&mut self) -> Option<Self::CollectiveBuffer>;
    /// Allocates a collective buffer for `members` tasks and enters it. Returns it and the name by which the other members enter it. Returns `None`
    /// if too many exist already.
    fn new_collective_buffer(
        &mut self,
        members: u32,
    ) -> Result<Option<(Self::CollectiveBuffer, u64)>, Fault>;
    /// Enters a collective buffer that another member has allocated. Returns `None` if the other members have given it up.
    fn enter_collective_buffer(
        &mut self,
        name: u64,
        members: u32,
    ) -> Result<Option<Self::CollectiveBuffer>, Fault>;
    /// Leaves a collective buffer that this member has entered: it will not access the buffer any more.
    fn leave_collective_buffer(&mut self, name: u64, members: u32);
    /// Gives up a collective buffer that this member has entered, and may have left: other members may never enter.
    fn give_up_collective_buffer(&mut self, name: u64, members: u32);
    /// Returns whether other members may still enter or leave a collective buffer that this member has left.
    fn is_collective_buffer_used(&self, name: u64) -> bool;
    /// Returns the maximum size of a contribution, in bytes.
    fn collective_buffer_capacity(&self, buffer: &Self::CollectiveBuffer) -> usize;
    /// Returns the maximum size of a contribution in any collective buffer of a group with this many members, on any host, in bytes.
    fn contribution_limit(&self, members: u32) -> usize;
    /// Contributes the bytes of `from` to round `round` as member `index`, and wakes those of the `listeners` that wait for it. `peer_of` returns
    /// the task of a member.
    fn contribute(
        &self,
        buffer: &Self::CollectiveBuffer,
        index: u32,
        round: u32,
        from: &Views,
        listeners: Range<u32>,
        peer_of: &impl Fn(u32) -> Peer,
    );
    /// Returns whether the last contribution in that part of member `index`'s slot which round `round` uses is the one to `round`.
    fn contributed(&self, buffer: &Self::CollectiveBuffer, index: u32, round: u32) -> bool;
    /// Returns the round number in the part of member `index`'s slot that round `round` uses, or 0 if there is no contribution yet.
    fn contributed_round(&self, buffer: &Self::CollectiveBuffer, index: u32, round: u32) -> u32;
    /// Copies from the contribution of member `index` to `round`, beginning at byte `part.offset` of `part.total`.
    fn collect(
        &self,
        buffer: &Self::CollectiveBuffer,
        index: u32,
        round: u32,
        part: Part,
        into: &Views,
    );
    /// Returns the memory of the `total` bytes that member `index` has contributed to `round`, aligned for every type. It can be read in place until
    /// this task contributes to a later round. Returns `None` if the bytes have to be copied with `collect`. All members read the same memory.
    fn contribution(
        &self,
        buffer: &Self::CollectiveBuffer,
        index: u32,
        round: u32,
        total: usize,
    ) -> Option<Views>;
    /// Asks member `target` to wake this member, `index`, which is about to sleep. `None` withdraws that request. Returns false if this member had
    /// asked a different member before: then it must check the round again before it sleeps.
    fn await_contribution(
        &self,
        buffer: &Self::CollectiveBuffer,
        index: u32,
        target: Option<u32>,
    ) -> bool;
}
