//! Peers that are gone: their rings and loans remain theirs until this task has read everything that they sent.
//!
//! If the message buffer is full, frames can remain in the ring of a peer that is gone for as long as the program
//! makes no receives. A frame can name a loan, which is in transit until the frame is read. So this task takes
//! nothing over from the peer before it has seen the ring empty.

use regatta_engine::Peer;

use super::Shm;
use crate::shm_channel::In;

impl Shm {
    /// Gives up the rings between this task and a peer that is gone: the ring to the peer at once, the ring from it
    /// once all its frames have been read.
    pub(super) fn let_go_of(&mut self, peer: Peer) {
        if self.closed.contains(&peer) {
            // A damaged ring stays allocated, so that it is not reused. None of its frames will be read.
            return self.take_in_loans(peer);
        }
        if let Some(out) = self.outs.get_mut(peer as usize).and_then(Option::take) {
            out.let_go();
        }
        self.leaving.push(peer);
        self.let_go_of_read_out();
    }

    /// For each peer that is gone and whose frames have all been read: gives up the ring from it, and takes over the
    /// loans that it had handed to this task and not sent.
    pub(super) fn let_go_of_read_out(&mut self) {
        let heard_out = |channel: &mut In| !channel.has_line();
        for at in (0..self.leaving.len()).rev() {
            let peer = self.leaving[at];
            if let Some(place @ Some(_)) = self.ins.get_mut(peer as usize) {
                let Some(channel) = place.take_if(heard_out) else {
                    continue;
                };
                channel.let_go();
                self.open.remove(peer);
            }
            self.leaving.swap_remove(at);
            self.take_in_loans(peer);
        }
    }

    fn take_in_loans(&mut self, peer: Peer) {
        self.with_loans(|loans, around| loans.take_in(around, peer));
    }
}
