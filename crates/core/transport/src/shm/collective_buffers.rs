//! Collective buffers in the segment.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use regatta_engine::{COLLECTIVE_BUFFER_DEPTH, CollectiveBuffers, Fault, Part, Peer};
use regatta_memory::LINE;
use regatta_memory::ticks::{cost_of_kib, ticks};
use regatta_memory::views::Views;

use super::Shm;
use crate::by_length::ByLength;
use crate::footprint::{self, Footprint};
use regatta_segment::collective_buffer::{self, CollectiveBuffer};
use regatta_segment::free_collective_buffers::place_of;

// The engine relies on the number of rounds that a collective buffer keeps.
const _: () = assert!(collective_buffer::DEPTH == COLLECTIVE_BUFFER_DEPTH as usize);

/// Minimum size in bytes of a contribution whose stores are timed. The cost of smaller ones cannot be measured, since
/// a core need not wait for so few stores.
const MIN_LEARNED_BYTES: usize = 3 << 10;
/// Estimated cost for the member that reads non-temporal stores from memory, in percent of the writer's cost.
const NON_TEMPORAL_READ_PERCENT: u64 = 150;

/// Maximum number of wide areas of 2 MiB that a task makes. It equals the maximum number of wide rings of a task:
/// groups that are faster with wide areas must not take memory that others need.
const MAX_WIDE_AREAS: u32 = 7;

/// A collective buffer as one member uses it, with the member's way of storing its contributions.
#[derive(Debug)]
pub struct MemberBuffer {
    memory: CollectiveBuffer,
    stores: RefCell<Stores>,
}

/// The state of how a task stores its contributions.
#[derive(Debug)]
struct Stores {
    learners: ByLength,
    /// The task's wide area, once it has one; `at` is the position of the next contribution in it.
    area: Option<u64>,
    at: u64,
    /// Whether a wide area was requested and not available.
    refused: bool,
}

impl Shm {
    /// Returns a group's buffer by its name.
    fn named_buffer(&self, name: u64, members: u32) -> Result<MemberBuffer, Fault> {
        let memory = CollectiveBuffer::at(self.job.segment(), place_of(name), members);
        Ok(self.buffer(memory.map_err(self.fault(self.me))?))
    }

    /// Returns a buffer as this task uses it. Members of a pair learn how to store if there is a core for each task;
    /// larger groups were not measured, and stay narrow.
    fn buffer(&self, memory: CollectiveBuffer) -> MemberBuffer {
        let mut learners = ByLength::new(
            footprint::MAX_SHORT_BYTES,
            [collective_buffer::WIDE; 2],
            self.policy,
        );
        if memory.members() != 2 || self.crowded || self.job.geometry().wide == 0 {
            learners.stay_narrow();
        }
        MemberBuffer {
            memory,
            stores: RefCell::new(Stores {
                learners,
                area: None,
                at: 0,
                refused: false,
            }),
        }
    }
}

impl MemberBuffer {
    fn contribute(&self, areas: &Cell<u32>, index: u32, round: u32, from: &Views) {
        let stores = &mut *self.stores.borrow_mut();
        let footprint = stores.learners.choice(from.len());
        let non_temporal = footprint == Footprint::NonTemporal;
        let wide = match footprint {
            Footprint::Wide => stores.next_place(&self.memory, areas, index, from.len()),
            Footprint::Narrow | Footprint::NonTemporal => None,
        };
        let learner = stores.learners.of(from.len());
        let as_chosen = footprint != Footprint::Wide || wide.is_some();
        let timed = learner.is_timing() && as_chosen;
        let start = if timed { ticks() } else { 0 };
        self.memory
            .contribute(index, round, from, wide, non_temporal);
        if timed {
            let took = ticks().wrapping_sub(start);
            let reads = if non_temporal {
                NON_TEMPORAL_READ_PERCENT
            } else {
                0
            };
            learner.read(cost_of_kib(from.len(), took) * reads / 100);
            learner.timed(from.len(), took);
        }
        learner.copied(from.len());
    }
}

impl Stores {
    /// Returns the offset in the wide area for a contribution of `len` bytes, or `None` if there is no area. `areas`
    /// counts the areas that the task has made.
    fn next_place(
        &mut self,
        memory: &CollectiveBuffer,
        areas: &Cell<u32>,
        index: u32,
        len: usize,
    ) -> Option<u64> {
        if self.area.is_none() && !self.refused {
            let found = memory.wide_area(index, areas.get() < MAX_WIDE_AREAS);
            let made = found.is_some_and(|(_, made)| made);
            areas.set(areas.get() + made as u32);
            self.area = found.map(|(area, _)| area);
            self.refused = found.is_none();
        }
        let area = self.area?;
        let room = len.next_multiple_of(LINE) as u64;
        if self.at + room > collective_buffer::WIDE {
            self.at = 0;
        }
        let place = area + self.at;
        self.at += room;
        Some(place)
    }
}

impl CollectiveBuffers for Shm {
    type CollectiveBuffer = MemberBuffer;

    fn world_collective_buffer(&mut self) -> Option<MemberBuffer> {
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

    fn new_collective_buffer(
        &mut self,
        members: u32,
    ) -> Result<Option<(MemberBuffer, u64)>, Fault> {
        let buffers = self.job.free_collective_buffers();
        let taken = buffers.take_for_group(members, self.job.tasks_here());
        let taken = taken.map_err(|error| {
            Fault::Memory(format!(
                "no collective buffer can be allocated for a group: {error}"
            ))
        })?;
        let Some(name) = taken else { return Ok(None) };
        Ok(Some((self.named_buffer(name, members)?, name)))
    }

    fn enter_collective_buffer(
        &mut self,
        name: u64,
        members: u32,
    ) -> Result<Option<MemberBuffer>, Fault> {
        let buffer = self.named_buffer(name, members)?;
        let entered = self.job.free_collective_buffers().enter(name);
        let is_in = entered.map_err(self.fault(self.me))?;
        Ok(is_in.then_some(buffer))
    }

    // An invalid name was already refused by `enter_collective_buffer`.
    fn leave_collective_buffer(&mut self, name: u64, members: u32) {
        let _ = self.job.free_collective_buffers().leave(name, members);
    }

    fn give_up_collective_buffer(&mut self, name: u64, members: u32) {
        let _ = self.job.free_collective_buffers().give_up(name, members);
    }

    fn is_collective_buffer_used(&self, name: u64) -> bool {
        let used = self.job.free_collective_buffers().is_used(name);
        used.unwrap_or(false)
    }

    fn collective_buffer_capacity(&self, buffer: &MemberBuffer) -> usize {
        buffer.memory.capacity()
    }

    fn contribution_limit(&self, members: u32) -> usize {
        collective_buffer::capacity(members)
    }

    #[inline(always)]
    fn contribute(
        &self,
        buffer: &MemberBuffer,
        index: u32,
        round: u32,
        from: &Views,
        listeners: Range<u32>,
        peer_of: &impl Fn(u32) -> Peer,
    ) {
        match from.len() >= MIN_LEARNED_BYTES && !self.crowded {
            true => buffer.contribute(&self.areas, index, round, from),
            false => buffer.memory.contribute(index, round, from, None, false),
        }
        self.fencing.before_look();
        for other in listeners {
            if other != index && buffer.memory.awaits(other).names(index) {
                self.job.bell(peer_of(other)).wake();
            }
        }
    }

    #[inline(always)]
    fn contributed(&self, buffer: &MemberBuffer, index: u32, round: u32) -> bool {
        buffer.memory.contributed(index, round)
    }

    fn contributed_round(&self, buffer: &MemberBuffer, index: u32, round: u32) -> u32 {
        buffer.memory.contributed_round(index, round)
    }

    #[inline(always)]
    fn collect(&self, buffer: &MemberBuffer, index: u32, round: u32, part: Part, into: &Views) {
        buffer
            .memory
            .collect(index, round, part.offset, part.total, into);
    }

    #[inline(always)]
    fn contribution(
        &self,
        buffer: &MemberBuffer,
        index: u32,
        round: u32,
        total: usize,
    ) -> Option<Views> {
        buffer.memory.contribution(index, round, total)
    }

    fn await_contribution(&self, buffer: &MemberBuffer, index: u32, target: Option<u32>) -> bool {
        buffer.memory.awaits(index).name(target)
    }
}
