//! Peers that are gone: their rings and loans stay theirs until this task has read everything that they sent.
//!
//! A full message buffer can leave frames in the ring of a peer that is gone, for as long as the program makes no receives. A
//! frame can name a loan, which is under way until the frame is read. So this task takes nothing over from the peer before it
//! has seen the ring empty.

use regatta_engine::Peer;

use super::Shm;
use crate::shm_channel::In;

impl Shm {
    /// A peer is gone: this task needs the rings between the two no more, once it has taken in everything the peer sent.
    pub(super) fn let_go_of(&mut self, peer: Peer) {
        if self.closed.contains(&peer) {
            // A ring that was found damaged stays where it is: nobody may use it again. None of its frames will be read.
            return self.take_in_loans(peer);
        }
        if let Some(out) = self.outs.get_mut(peer as usize).and_then(Option::take) {
            out.let_go();
        }
        self.leaving.push(peer);
        self.let_go_of_read_out();
    }

    /// Lets go of the rings from peers that are gone, and takes in what these had lent to this task and not sent, when all
    /// that they sent has been read.
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
