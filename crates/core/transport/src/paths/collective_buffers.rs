//! Collective buffers: in the memory of this host.

use std::ops::Range;

use regatta_engine::{CollectiveBuffers, Fault, Part, Peer};
use regatta_memory::views::Views;

use super::Paths;
use crate::shm::collective_buffers::MemberBuffer;

impl CollectiveBuffers for Paths {
    type CollectiveBuffer = MemberBuffer;

    fn world_collective_buffer(&mut self) -> Option<MemberBuffer> {
        self.shm.world_collective_buffer()
    }

    fn new_collective_buffer(
        &mut self,
        members: u32,
    ) -> Result<Option<(MemberBuffer, u64)>, Fault> {
        self.shm.new_collective_buffer(members)
    }

    fn enter_collective_buffer(&mut self, name: u64, members: u32) -> Result<MemberBuffer, Fault> {
        self.shm.enter_collective_buffer(name, members)
    }

    fn leave_collective_buffer(&mut self, name: u64, members: u32) {
        self.shm.leave_collective_buffer(name, members);
    }

    fn collective_buffer_capacity(&self, buffer: &MemberBuffer) -> usize {
        self.shm.collective_buffer_capacity(buffer)
    }

    fn contribution_limit(&self, members: u32) -> usize {
        self.shm.contribution_limit(members)
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
        self.shm
            .contribute(buffer, index, round, from, listeners, peer_of);
    }

    #[inline(always)]
    fn contributed(&self, buffer: &MemberBuffer, index: u32, round: u32) -> bool {
        self.shm.contributed(buffer, index, round)
    }

    fn contributed_round(&self, buffer: &MemberBuffer, index: u32, round: u32) -> u32 {
        self.shm.contributed_round(buffer, index, round)
    }

    #[inline(always)]
    fn collect(&self, buffer: &MemberBuffer, index: u32, round: u32, part: Part, into: &Views) {
        self.shm.collect(buffer, index, round, part, into);
    }

    #[inline(always)]
    fn contribution(
        &self,
        buffer: &MemberBuffer,
        index: u32,
        round: u32,
        total: usize,
    ) -> Option<Views> {
        self.shm.contribution(buffer, index, round, total)
    }

    fn await_contribution(&self, buffer: &MemberBuffer, index: u32, target: Option<u32>) -> bool {
        self.shm.await_contribution(buffer, index, target)
    }
}
