//! Collective buffers that check that every contribution which is read is still there.

use std::ops::Range;

use regatta_engine::{COLLECTIVE_BUFFER_DEPTH, CollectiveBuffers, Fault, Part, Peer, Peers};
use regatta_memory::views::Views;

use super::End;

/// A member's slot in a collective buffer: rounds and bytes.
pub(super) type Place = [(u32, Vec<u8>); COLLECTIVE_BUFFER_DEPTH as usize];

/// Number of members that have entered a buffer, and that have left it.
#[derive(Default)]
pub(super) struct Users {
    entered: u32,
    left: u32,
    are_given_up: bool,
}

impl Users {
    /// Returns whether the buffer can be reused.
    pub(super) fn are_gone(&self, members: u32) -> bool {
        self.left == members || self.are_given_up && self.left == self.entered
    }
}

/// Maximum size of a contribution, in bytes.
const CONTRIBUTION: usize = 64;

impl CollectiveBuffers for End {
    type CollectiveBuffer = usize;

    fn world_collective_buffer(&mut self) -> Option<usize> {
        None
    }

    fn new_collective_buffer(&mut self, members: u32) -> Result<Option<(usize, u64)>, Fault> {
        let host = self.host(self.me);
        let mut net = self.net.0.borrow_mut();
        if net.without_buffers == Some(host) {
            net.refused_buffers += 1;
            return Ok(None);
        }
        net.buffers.push(vec![Place::default(); members as usize]);
        net.users.push(Users {
            entered: 1,
            ..Users::default()
        });
        let number = net.buffers.len();
        Ok(Some((number - 1, number as u64)))
    }

    fn enter_collective_buffer(&mut self, name: u64, members: u32) -> Result<Option<usize>, Fault> {
        let number = name as usize - 1;
        let mut net = self.net.0.borrow_mut();
        assert_eq!(
            net.buffers[number].len(),
            members as usize,
            "the members disagree about their collective buffer"
        );
        let users = &mut net.users[number];
        let is_open = !users.are_gone(members);
        users.entered += u32::from(is_open);
        Ok(is_open.then_some(number))
    }

    fn leave_collective_buffer(&mut self, name: u64, members: u32) {
        let users = &mut self.net.0.borrow_mut().users[name as usize - 1];
        assert!(!users.are_gone(members), "one has left twice");
        users.left += 1;
    }

    fn give_up_collective_buffer(&mut self, name: u64, _members: u32) {
        self.net.0.borrow_mut().users[name as usize - 1].are_given_up = true;
    }

    fn is_collective_buffer_used(&self, name: u64) -> bool {
        let net = self.net.0.borrow();
        let number = name as usize - 1;
        !net.users[number].are_gone(net.buffers[number].len() as u32)
    }

    fn collective_buffer_capacity(&self, _buffer: &usize) -> usize {
        CONTRIBUTION
    }

    fn contribution_limit(&self, _members: u32) -> usize {
        CONTRIBUTION
    }

    fn contribute(
        &self,
        buffer: &usize,
        index: u32,
        round: u32,
        from: &Views,
        _: Range<u32>,
        _: &impl Fn(u32) -> Peer,
    ) {
        let mut net = self.net.0.borrow_mut();
        let place = &mut net.buffers[*buffer][index as usize];
        place[(round % COLLECTIVE_BUFFER_DEPTH) as usize] = (round, from.to_vec());
    }

    fn contributed(&self, buffer: &usize, index: u32, round: u32) -> bool {
        self.contributed_round(buffer, index, round) == round
    }

    fn contributed_round(&self, buffer: &usize, index: u32, round: u32) -> u32 {
        let net = self.net.0.borrow();
        net.buffers[*buffer][index as usize][(round % COLLECTIVE_BUFFER_DEPTH) as usize].0
    }

    fn collect(&self, buffer: &usize, index: u32, round: u32, part: Part, into: &Views) {
        let net = self.net.0.borrow();
        let (contributed, bytes) =
            &net.buffers[*buffer][index as usize][(round % COLLECTIVE_BUFFER_DEPTH) as usize];
        assert_eq!(
            *contributed, round,
            "a contribution is read that is not there"
        );
        assert_eq!(
            bytes.len(),
            part.total,
            "a contribution is read that has another length"
        );
        into.fill(&bytes[part.offset..part.offset + into.len()]);
    }

    fn contribution(&self, _: &usize, _: u32, _: u32, _: usize) -> Option<Views> {
        None
    }

    fn await_contribution(&self, _buffer: &usize, _index: u32, _target: Option<u32>) -> bool {
        true
    }
}
