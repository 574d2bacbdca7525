//! The end of a peer, which takes effect after everything that it sent.
//!
//! The job's table says that a task has died or left; its connection carries what it sent before. The table's entry
//! may change first, and a connection that was closed at the other end still holds unread bytes: frames, and pieces
//! of messages that were never completed. So a peer that the table calls gone stays [`Presence::Here`] until one of
//! these is true:
//!
//! * The end of its connection has been *read*, with everything before it. A hang-up event of the kernel is not
//!   sufficient: the kernel reports it as soon as it has received the end, however much is unread.
//! * There is no connection, so nothing is in transit.
//! * Nothing has been received for [`DRAIN_IDLE_TIMEOUT`](super::link::farewell): a host that was cut off does not
//!   send the end of a connection.
//! * [`MAX_DRAIN_TIME`](super::link::farewell) has passed. A living task that the table calls dead, because its host
//!   was cut off from the launcher, could go on sending.
//!
//! Reading never has to wait for the engine: an inbox has room for every frame that an honest peer sends before it
//! receives the acknowledgement of earlier ones, and streams are limited by their windows. Frames in the inbox can
//! still be taken after the peer is gone.

use std::time::Instant;

use regatta_engine::{Peer, Presence};

use super::Tcp;
use super::link::Link;
use regatta_segment::job::TaskState;

/// Maximum number of reads in one call, each of up to 64 KiB: together more than the kernel's buffers hold. A living
/// peer may send more meanwhile.
const MAX_DRAIN_READS: usize = 256;

impl Link {
    /// Receives everything that is available, including what the drain of a stream would take.
    pub(crate) fn read_out(&mut self) {
        for _ in 0..MAX_DRAIN_READS {
            match self.try_receive() {
                Ok(true) => {}
                Ok(false) => return,
                Err(trouble) => return self.trouble(trouble),
            }
        }
    }
}

impl Tcp {
    /// Records that a peer is gone, once all that it sent has been received. Returns true if that is not the case
    /// yet.
    pub(super) fn end(&mut self, peer: Peer, gone: bool, now: Instant) -> bool {
        let ends = |link: &&mut Link| gone && !link.state.is_gone();
        let Some(link) = self.link(peer).filter(ends) else {
            return false;
        };
        if link.bypass.is_some() {
            self.take_all_frames();
        }
        let Some(link) = self.link(peer) else {
            return false;
        };
        if link.state.is_resuming() {
            self.resume(peer);
        }
        let Some(link) = self.link(peer) else {
            return false;
        };
        link.read_out();
        if link.bypass.is_some() {
            // These include frames that had to wait for the connection.
            self.take_all_frames();
        }
        let Some(link) = self.link(peer) else {
            return false;
        };
        let heard = link.receipts.heard_bytes();
        if link.state.may_receive_more(now, heard) {
            return true;
        }
        if link.state.go() {
            let disowned = link.state.is_disowned();
            self.ended = self.ended.wrapping_add(1);
            self.disowners += u32::from(disowned);
        }
        false
    }

    /// Returns whether the table says that a peer is gone.
    pub(super) fn is_lost(&self, peer: Peer) -> bool {
        matches!(self.job.state(peer), TaskState::Left | TaskState::Dead)
    }

    /// Returns the presence of a peer for which the table says `told`: the peer is not gone before all that it sent
    /// has been received.
    pub(super) fn presence_at_end(&self, peer: Peer, told: Presence) -> Presence {
        match self.links.get(peer as usize) {
            Some(Some(link)) if !link.state.is_gone() => Presence::Here,
            // A disowned peer stays dead, whatever becomes of that task.
            Some(Some(link)) if link.state.is_disowned() => Presence::Dead,
            _ => told,
        }
    }

    /// Ends the link to a peer that is gone. The engine has no more use for the peer.
    pub(crate) fn part(&mut self, peer: Peer) {
        let dead = self.job.state(peer) == TaskState::Dead;
        let Some(link) = self.link(peer) else {
            return;
        };
        if dead {
            link.part();
            self.restless = true;
        }
        self.parted.push(peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::link::farewell::{DRAIN_IDLE_TIMEOUT, MAX_DRAIN_TIME};
    use regatta_connection::channel::Channel;
    use regatta_wire::link::{Head, Parcel};
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_peer_that_is_gone_has_more_time_while_something_comes_but_not_without_end() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut link = Link::over(Channel::plain(OwnedFd::from(ours)));
        let may_receive_more = |link: &mut Link, now| {
            let heard = link.receipts.heard_bytes();
            link.state.may_receive_more(now, heard)
        };
        let word = Head::bare(Parcel::Taken, 0, 0).encode();
        let start = Instant::now();
        let tick = DRAIN_IDLE_TIMEOUT * 3 / 4;
        let (mut now, mut ticks) = (start, 0);
        while may_receive_more(&mut link, now) {
            theirs.write_all(&word).unwrap();
            // Any poll of the connection does this.
            link.receive();
            (now, ticks) = (now + tick, ticks + 1);
        }
        assert!(
            now >= start + MAX_DRAIN_TIME && now < start + MAX_DRAIN_TIME + tick,
            "{ticks}"
        );
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut link = Link::over(Channel::plain(OwnedFd::from(ours)));
        assert!(may_receive_more(&mut link, now) && may_receive_more(&mut link, now + tick));
        assert!(
            !may_receive_more(&mut link, now + DRAIN_IDLE_TIMEOUT),
            "nothing came"
        );
    }
}
