//! Collective buffers in the segment.

use std::cell::RefCell;
use std::ops::Range;

use regatta_engine::{COLLECTIVE_BUFFER_DEPTH, CollectiveBuffers, Fault, Part, Peer};
use regatta_memory::ticks::{cost_of_kib, ticks};
use regatta_memory::views::Views;

use super::Shm;
use crate::footprint::{self, Footprint, Learner};
use regatta_segment::collective_buffer::{self, CollectiveBuffer};

// The engine knows how many rounds a collective buffer keeps.
const _: () = assert!(collective_buffer::DEPTH == COLLECTIVE_BUFFER_DEPTH as usize);

/// Stores past the caches cost the other member so many times as much as this one, when it reads them from memory.
const READ_OF_PAST: u64 = 2;

/// A collective buffer, and how this task stores its contributions.
#[derive(Debug)]
pub struct Buffer {
    memory: CollectiveBuffer,
    stores: RefCell<Learner>,
}

impl Shm {
    /// A buffer as this task uses it. Stores past the caches are tried by pairs with a core each: others have not been measured.
    fn buffer(&self, memory: CollectiveBuffer) -> Buffer {
        let mut learner = Learner::without_wide(self.policy);
        if memory.members() != 2 || self.crowded || self.job.geometry().wide == 0 {
            learner.stay_narrow();
        }
        Buffer {
            memory,
            stores: RefCell::new(learner),
        }
    }
}

impl Buffer {
    fn contribute(&self, index: u32, round: u32, from: &Views) {
        let mut learner = self.stores.borrow_mut();
        let past_caches = learner.choice() == Footprint::NonTemporal;
        let start = if learner.is_timing() { ticks() } else { 0 };
        self.memory.contribute(index, round, from, past_caches);
        if start != 0 {
            let ticks = ticks().wrapping_sub(start);
            let reads = if past_caches { READ_OF_PAST } else { 0 };
            learner.read(reads * cost_of_kib(from.len(), ticks));
            learner.timed(from.len(), ticks);
        }
        learner.copied(from.len());
    }
}

impl CollectiveBuffers for Shm {
    type CollectiveBuffer = Buffer;

    fn world_collective_buffer(&mut self) -> Option<Buffer> {
        let first = self.job.first();
        if self.me >= first {
            let member = self.job.membership(self.me).ok()?;
            let name = (member.collective_buffer != 0).then_some(member.collective_buffer)?;
            let memory = CollectiveBuffer::at(self.job.segment(), name, member.count).ok()?;
            return Some(self.buffer(memory));
        }
        if self.job.tasks_here() != first {
            return None;
        }
        let memory = self.job.world_collective_buffer().ok()?;
        Some(self.buffer(memory))
    }

    fn new_collective_buffer(&mut self, members: u32) -> Result<Option<(Buffer, u64)>, Fault> {
        let taken = self.job.free_collective_buffers().take(members);
        let name = taken
            .map_err(|error| Fault::Memory(format!("no collective buffer for a group: {error}")))?;
        Ok(Some((self.enter_collective_buffer(name, members)?, name)))
    }

    fn enter_collective_buffer(&mut self, name: u64, members: u32) -> Result<Buffer, Fault> {
        let memory = CollectiveBuffer::at(self.job.segment(), name, members);
        Ok(self.buffer(memory.map_err(self.fault(self.me))?))
    }

    fn leave_collective_buffer(&mut self, name: u64, members: u32) {
        // A name that makes no sense has been refused by `enter_collective_buffer`.
        let _ = self.job.free_collective_buffers().leave(name, members);
    }

    fn collective_buffer_capacity(&self, buffer: &Buffer) -> usize {
        buffer.memory.capacity()
    }

    fn contribution_limit(&self, members: u32) -> usize {
        collective_buffer::capacity(members)
    }

    #[inline(always)]
    fn contribute(
        &self,
        buffer: &Buffer,
        index: u32,
        round: u32,
        from: &Views,
        listeners: Range<u32>,
        peer_of: &impl Fn(u32) -> Peer,
    ) {
        match from.len() >= footprint::SHORTEST && !self.crowded {
            true => buffer.contribute(index, round, from),
            false => buffer.memory.contribute(index, round, from, false),
        }
        self.fencing.before_look();
        for other in listeners {
            if other != index && buffer.memory.awaits(other).names(index) {
                self.job.bell(peer_of(other)).wake();
            }
        }
    }

    #[inline(always)]
    fn contributed(&self, buffer: &Buffer, index: u32, round: u32) -> bool {
        buffer.memory.contributed(index, round)
    }

    fn contributed_round(&self, buffer: &Buffer, index: u32, round: u32) -> u32 {
        buffer.memory.contributed_round(index, round)
    }

    #[inline(always)]
    fn collect(&self, buffer: &Buffer, index: u32, round: u32, part: Part, into: &Views) {
        buffer
            .memory
            .collect(index, round, part.offset, part.total, into);
    }

    #[inline(always)]
    fn contribution(&self, buffer: &Buffer, index: u32, round: u32, total: usize) -> Option<Views> {
        buffer.memory.contribution(index, round, total)
    }

    fn await_contribution(&self, buffer: &Buffer, index: u32, target: Option<u32>) -> bool {
        buffer.memory.awaits(index).name(target)
    }
}
