//! Contributions of a group's members to its rounds, as stored in the collective buffer. `round` defines their meaning.
//!
//! *Rules:* no lock, no allocation, and no system call except to wake a sleeping member. One cache line is read per member checked.
//! (docs/hot-paths.md names the test.)

use regatta_memory::views::Views;

use crate::group::Group;
use crate::transport::{CollectiveBuffers, Part, Peer};

/// Number of rounds whose contributions a collective buffer keeps.
pub const COLLECTIVE_BUFFER_DEPTH: u32 = 8;

/// Returns whether a member whose slot contains round number `word` is done with round `number`. A member that is ahead may have overwritten
/// `number` with a later one.
pub(crate) fn is_past(word: u32, number: u32) -> bool {
    word == number || word == number.wrapping_add(COLLECTIVE_BUFFER_DEPTH)
}

/// The members that may be waiting for a contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listeners {
    All,
    /// The member of rank 0. All members if rank 0 itself contributes.
    Leader,
    None,
}

impl<B: CollectiveBuffers> Group<B> {
    /// Returns whether the group has a collective buffer for contributions of `bytes` bytes.
    #[inline(always)]
    pub(crate) fn has_room_for(&self, buffers: &B, bytes: usize) -> bool {
        self.collective_buffer
            .as_ref()
            .is_some_and(|buffer| bytes <= buffers.collective_buffer_capacity(buffer))
    }

    /// Contributes `gives` to round `number` as task `me`, and wakes waiting members.
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

    /// Returns whether all other members have contributed to round `number`. Starts at member `at`, and advances `at` so that the next call
    /// continues there.
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

    /// Does the same as `all_contributed`, for a round to which some members may have contributed long ago.
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

    /// Returns the round number in the part of a member's slot that round `number` uses. Returns `None` if there is no collective buffer.
    pub(crate) fn contributed_round(&self, buffers: &B, rank: u32, number: u32) -> Option<u32> {
        let buffer = self.collective_buffer.as_ref()?;
        Some(buffers.contributed_round(buffer, rank, number))
    }

    /// Returns whether a member has contributed to any round.
    pub(crate) fn has_ever_contributed(&self, buffers: &B, rank: u32) -> bool {
        let mut rounds = 0..COLLECTIVE_BUFFER_DEPTH;
        rounds.any(|round| matches!(self.contributed_round(buffers, rank, round), Some(1..)))
    }

    /// Copies part of a member's contribution to round `number`.
    #[inline(always)]
    pub(crate) fn collect(&self, buffers: &B, rank: u32, number: u32, part: Part, into: &Views) {
        if let Some(buffer) = &self.collective_buffer {
            buffers.collect(buffer, rank, number, part, into);
        }
    }

    /// Returns the memory of a member's contribution to round `number`, if it can be read in place.
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

    /// Asks member `target` to wake this member, which is about to sleep. `None` withdraws that request. Returns false if this member had asked a
    /// different member before: then it must check the round again before it sleeps.
    pub(crate) fn await_contribution(&self, buffers: &B, target: Option<u32>) -> bool {
        let buffer = self.collective_buffer.as_ref();
        buffer.is_none_or(|buffer| buffers.await_contribution(buffer, self.rank, target))
    }
}
