//! Collective buffers, which are always in the memory of this host.

use std::ops::Range;

use regatta_engine::{CollectiveBuffers, Fault, Part, Peer};
use regatta_memory::views::Views;

use super::{Composite, Far, Near};

impl<N: Near, F: Far> CollectiveBuffers for Composite<N, F> {
    type CollectiveBuffer = N::CollectiveBuffer;

    fn world_collective_buffer(&mut self) -> Option<N::CollectiveBuffer> {
        self.near.world_collective_buffer()
    }

    fn new_collective_buffer(
        &mut self,
        members: u32,
    ) -> Result<Option<(N::CollectiveBuffer, u64)>, Fault> {
        self.near.new_collective_buffer(members)
    }

    fn enter_collective_buffer(
        &mut self,
        name: u64,
        members: u32,
    ) -> Result<Option<N::CollectiveBuffer>, Fault> {
        self.near.enter_collective_buffer(name, members)
    }

    fn leave_collective_buffer(&mut self, name: u64, members: u32) {
        self.near.leave_collective_buffer(name, members);
    }

    fn give_up_collective_buffer(&mut self, name: u64, members: u32) {
        self.near.give_up_collective_buffer(name, members);
    }

    fn is_collective_buffer_used(&self, name: u64) -> bool {
        self.near.is_collective_buffer_used(name)
    }

    fn collective_buffer_capacity(&self, buffer: &N::CollectiveBuffer) -> usize {
        self.near.collective_buffer_capacity(buffer)
    }

    fn contribution_limit(&self, members: u32) -> usize {
        self.near.contribution_limit(members)
    }

    #[inline(always)]
    fn contribute(
        &self,
        buffer: &N::CollectiveBuffer,
        index: u32,
        round: u32,
        from: &Views,
        listeners: Range<u32>,
        peer_of: &impl Fn(u32) -> Peer,
    ) {
        self.near
            .contribute(buffer, index, round, from, listeners, peer_of);
    }

    #[inline(always)]
    fn contributed(&self, buffer: &N::CollectiveBuffer, index: u32, round: u32) -> bool {
        self.near.contributed(buffer, index, round)
    }

    fn contributed_round(&self, buffer: &N::CollectiveBuffer, index: u32, round: u32) -> u32 {
        self.near.contributed_round(buffer, index, round)
    }

    #[inline(always)]
    fn collect(
        &self,
        buffer: &N::CollectiveBuffer,
        index: u32,
        round: u32,
        part: Part,
        into: &Views,
    ) {
        self.near.collect(buffer, index, round, part, into);
    }

    #[inline(always)]
    fn contribution(
        &self,
        buffer: &N::CollectiveBuffer,
        index: u32,
        round: u32,
        total: usize,
    ) -> Option<Views> {
        self.near.contribution(buffer, index, round, total)
    }

    fn await_contribution(
        &self,
        buffer: &N::CollectiveBuffer,
        index: u32,
        target: Option<u32>,
    ) -> bool {
        self.near.await_contribution(buffer, index, target)
    }
}
