//! The tasks of the job, from its table in the segment.

use regatta_engine::{Peer, Peers, Presence};

use super::{Shm, place};
use regatta_segment::job::TaskState;

impl Peers for Shm {
    fn me(&self) -> Peer {
        self.me
    }

    fn peers(&self) -> u32 {
        self.job.tasks()
    }

    fn world(&self) -> (Peer, u32) {
        let member = self.job.membership(self.me);
        member.map_or((self.me, 1), |member| (member.first, member.count))
    }

    fn presence(&self, peer: Peer) -> Presence {
        match self.job.state(peer) {
            TaskState::Expected | TaskState::Joined => Presence::Here,
            TaskState::Left => Presence::Left,
            TaskState::Dead => Presence::Dead,
        }
    }

    #[inline(always)]
    fn losses(&self) -> u32 {
        // SAFETY: the word is in the job's header, which `self.job` keeps mapped.
        unsafe { self.losses.as_ref() }.count()
    }

    fn host(&self, peer: Peer) -> u32 {
        self.job.host_of(peer)
    }

    fn shares_memory(&self, peer: Peer) -> bool {
        self.job.is_here(peer)
    }

    fn close(&mut self, peer: Peer) {
        if place(&mut self.outs, peer).is_none() && self.presence(peer) == Presence::Here {
            // Without memory for a ring the peer is not notified, and may wait until this task ends.
            let _ = self.open_out(peer);
        }
        if let Some(channel) = place(&mut self.outs, peer) {
            channel.close();
        }
        self.closed.insert(peer);
        *place(&mut self.ins, peer) = None;
        self.open.remove(peer);
    }

    fn forget(&mut self, peer: Peer) {
        self.let_go_of(peer);
    }
}
