//! Contributions of the members of a group to its rounds, as the collective buffer shows them. `round` says what they mean.
//!
//! *Rules:* no lock, no allocation, no system call but to wake a member that sleeps; one line is read for each member looked at.
//! (docs/hot-paths.md names the test.)

use regatta_memory::views::Views;

use crate::group::Group;
use crate::transport::{CollectiveBuffers, Part, Peer};

/// Number of rounds whose contributions a collective buffer keeps.
pub const COLLECTIVE_BUFFER_DEPTH: u32 = 8;

/// Returns whether a member in whose place `word` stands is done with round `number`. One that is ahead may have put a later contribution there.
pub(crate) fn is_past(word: u32, number: u32) -> bool {
    word == number || word == number.wrapping_add(COLLECTIVE_BUFFER_DEPTH)
}

/// Members that may wait for a contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listeners {
    All,
    /// The member of rank 0, unless that contributes.
    Leader,
    None,
}

impl<B: CollectiveBuffers> Group<B> {
    /// Returns whether there is room for contributions of `bytes` bytes.
    #[inline(always)]
    pub(crate) fn has_room_for(&self, buffers: &B, bytes: usize) -> bool {
        self.collective_buffer
            .as_ref()
            .is_some_and(|buffer| bytes <= buffers.collective_buffer_capacity(buffer))
    }

    /// Contributes `gives` to round `number` as task `me`, and wakes whoever waits for it.
    #[inline(always)]
    pub(crate) fn contribute(
        &self,
        buffers: &B,
        me: Peer,
        number: u32,
        gives: &Views,
        listeners: Listeners,
    ) {
        if let Some(buffer) = &self.collective_buffer {
            let peer = |rank| self.peer(rank).unwrap_or(me);
            let listeners = match listeners {
                Listeners::Leader if self.rank != 0 => 0..1,
                Listeners::None => 0..0,
                _ => 0..self.size(),
            };
            buffers.contribute(buffer, self.rank, number, gives, listeners, &peer);
        }
    }

    /// Returns whether a member has contributed to round `number`.
    #[inline(always)]
    pub(crate) fn has_contributed(&self, buffers: &B, rank: u32, number: u32) -> bool {
        let buffer = self.collective_buffer.as_ref();
        buffer.is_some_and(|buffer| buffers.contributed(buffer, rank, number))
    }

    /// Returns whether all others have contributed to round `number`. Looks from member `at` on, and goes on from there the next time.
    #[inline(always)]
    pub(crate) fn all_contributed(&self, buffers: &B, at: &mut u32, number: u32) -> bool {
        let Some(buffer) = &self.collective_buffer else {
            return false;
        };
        while *at < self.size() {
            if *at != self.rank && !buffers.contributed(buffer, *at, number) {
                return false;
            }
            *at += 1;
        }
        true
    }

    /// As `all_contributed`, of a round to which some may have contributed long ago.
    pub(crate) fn all_past(&self, buffers: &B, at: &mut u32, number: u32) -> bool {
        let Some(buffer) = &self.collective_buffer else {
            return false;
        };
        while *at < self.size() {
            let word = buffers.contributed_round(buffer, *at, number);
            if *at != self.rank && !is_past(word, number) {
                return false;
            }
            *at += 1;
        }
        true
    }

    /// Returns the round of the contribution of a member that lies where that to round `number` goes; `None`: there is no
    /// collective buffer.
    pub(crate) fn contributed_round(&self, buffers: &B, rank: u32, number: u32) -> Option<u32> {
        let buffer = self.collective_buffer.as_ref()?;
        Some(buffers.contributed_round(buffer, rank, number))
    }

    /// Copies bytes from what a member has contributed to round `number`.
    #[inline(always)]
    pub(crate) fn collect(&self, buffers: &B, rank: u32, number: u32, part: Part, into: &Views) {
        if let Some(buffer) = &self.collective_buffer {
            buffers.collect(buffer, rank, number, part, into);
        }
    }

    /// Returns the memory of what a member has contributed to round `number`, if it can be read where it lies.
    #[inline(always)]
    pub(crate) fn contribution(
        &self,
        buffers: &B,
        rank: u32,
        number: u32,
        total: usize,
    ) -> Option<Views> {
        let buffer = self.collective_buffer.as_ref()?;
        buffers.contribution(buffer, rank, number, total)
    }

    /// Notes that this member is about to sleep until `target` contributes (`None`: it is not). Returns false if it had asked another one to wake it: then a
    /// look must come before the sleep.
    pub(crate) fn await_contribution(&self, buffers: &B, target: Option<u32>) -> bool {
        let buffer = self.collective_buffer.as_ref();
        buffer.is_none_or(|buffer| buffers.await_contribution(buffer, self.rank, target))
    }
}
