//! Collective buffers in the segment.

use std::ops::Range;

use regatta_engine::{COLLECTIVE_BUFFER_DEPTH, CollectiveBuffers, Fault, Part, Peer};
use regatta_memory::views::Views;

use super::Shm;
use regatta_segment::collective_buffer::{self, CollectiveBuffer};

// The engine knows how many rounds a collective buffer keeps.
const _: () = assert!(collective_buffer::DEPTH == COLLECTIVE_BUFFER_DEPTH as usize);

impl CollectiveBuffers for Shm {
    type CollectiveBuffer = CollectiveBuffer;

    fn world_collective_buffer(&mut self) -> Option<CollectiveBuffer> {
        let first = self.job.first();
        if self.me >= first {
            let member = self.job.membership(self.me).ok()?;
            let name = (member.collective_buffer != 0).then_some(member.collective_buffer)?;
            return CollectiveBuffer::at(self.job.segment(), name, member.count).ok();
        }
        if self.job.tasks_here() != first {
            return None;
        }
        self.job.world_collective_buffer().ok()
    }

    fn new_collective_buffer(
        &mut self,
        members: u32,
    ) -> Result<Option<(CollectiveBuffer, u64)>, Fault> {
        let taken = self.job.free_collective_buffers().take(members);
        let name = taken
            .map_err(|error| Fault::Memory(format!("no collective buffer for a group: {error}")))?;
        Ok(Some((self.enter_collective_buffer(name, members)?, name)))
    }

    fn enter_collective_buffer(
        &mut self,
        name: u64,
        members: u32,
    ) -> Result<CollectiveBuffer, Fault> {
        CollectiveBuffer::at(self.job.segment(), name, members).map_err(self.fault(self.me))
    }

    fn leave_collective_buffer(&mut self, name: u64, members: u32) {
        // A name that makes no sense has been refused by `enter_collective_buffer`.
        let _ = self.job.free_collective_buffers().leave(name, members);
    }

    fn collective_buffer_capacity(&self, buffer: &CollectiveBuffer) -> usize {
        buffer.capacity()
    }

    fn contribution_limit(&self, members: u32) -> usize {
        collective_buffer::capacity(members)
    }

    #[inline(always)]
    fn contribute(
        &self,
        buffer: &CollectiveBuffer,
        index: u32,
        round: u32,
        from: &Views,
        listeners: Range<u32>,
        peer_of: &impl Fn(u32) -> Peer,
    ) {
        buffer.contribute(index, round, from);
        self.fencing.before_look();
        for other in listeners {
            if other != index && buffer.awaits(other).names(index) {
                self.job.bell(peer_of(other)).wake();
            }
        }
    }

    #[inline(always)]
    fn contributed(&self, buffer: &CollectiveBuffer, index: u32, round: u32) -> bool {
        buffer.contributed(index, round)
    }

    fn contributed_round(&self, buffer: &CollectiveBuffer, index: u32, round: u32) -> u32 {
        buffer.contributed_round(index, round)
    }

    #[inline(always)]
    fn collect(&self, buffer: &CollectiveBuffer, index: u32, round: u32, part: Part, into: &Views) {
        buffer.collect(index, round, part.offset, part.total, into);
    }

    #[inline(always)]
    fn contribution(
        &self,
        buffer: &CollectiveBuffer,
        index: u32,
        round: u32,
        total: usize,
    ) -> Option<Views> {
        buffer.contribution(index, round, total)
    }

    fn await_contribution(
        &self,
        buffer: &CollectiveBuffer,
        index: u32,
        target: Option<u32>,
    ) -> bool {
        buffer.awaits(index).name(target)
    }
}
