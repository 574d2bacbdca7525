//! Sleeping, leaving and unreachable peers, for the process that owns the transport; and the trait that
//! [`Composite`](crate::paths::Composite) requires of a transport to other hosts.

use std::time::Duration;

use regatta_engine::{Peer, Presence, Reach, Shortage, Upkeep, WaitState};
use regatta_memory::uncancelled::Uncancelled;
use rustix::event::epoll;

use super::Tcp;
use super::link::Trouble;
use super::socket_waiter::SocketWaiter;
use crate::paths::Far;

/// Interval at which a sleeping task checks deadlines.
const TICK: Duration = Duration::from_millis(5);

impl Upkeep for Tcp {
    fn path(&mut self, peer: Peer) -> String {
        let secrecy = match self.own.encrypted {
            true => "encrypted",
            false => "not encrypted, the network is trusted",
        };
        let state = match self.links.get(peer as usize).and_then(Option::as_deref) {
            None => "not used yet",
            Some(link) if link.is_open() => "connected",
            Some(link) if link.state.is_idle() => "not connected",
            Some(_) => "being connected",
        };
        match self.job.address(peer) {
            Some(address) => format!(
                "tcp to {address}: up to {} bytes in one piece, larger ones as streams; {secrecy}; {state}{}",
                Tcp::EAGER,
                self.bypass_in_words(peer)
            ),
            None => "none: the job's table has no address for that task".into(),
        }
    }

    fn go_on(&mut self) {
        self.poll();
    }

    fn arm(&mut self) {
        if !self.job.is_scattered() {
            return;
        }
        let mut holds_back = false;
        for &peer in &self.known {
            let Some(link) = self
                .links
                .get_mut(peer as usize)
                .and_then(Option::as_deref_mut)
            else {
                continue;
            };
            holds_back |= link.holds_back();
            let Some(channel) = link.state.channel() else {
                continue;
            };
            if !link.state.awaits_room() && link.wants_room() {
                let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT;
                let data = epoll::EventData::new_u64(peer as u64);
                let is_asked = epoll::modify(&self.epoll, channel, data, flags).is_ok();
                link.state.set_awaits_room(is_asked);
            }
        }
        // An engine whose buffer is full polls no frames, and a parcel behind them may be what it waits for.
        self.restless |= holds_back;
        if self.waiter.is_none() {
            // Without a waiter the task polls from time to time.
            self.waiter = SocketWaiter::new(&self.epoll, self.job.clone(), self.own.me).ok();
        }
        if let Some(waiter) = &self.waiter {
            let limit = self.timed.then_some(TICK);
            // Records that have already been received are reported by no socket.
            waiter.arm(match holds_back {
                true => Some(Duration::ZERO),
                false => limit,
            });
        }
    }

    fn deliver(&mut self, leaves: bool) -> bool {
        let _whole = Uncancelled::begin();
        self.poll();
        let mut done = true;
        for index in 0..self.known.len() {
            let peer = self.known[index];
            let gone = self.is_lost(peer);
            let Some(link) = self.link(peer) else {
                continue;
            };
            if gone || link.state.is_shut_out() {
                continue;
            }
            link.repeat_by_connection();
            if leaves {
                link.send_bye();
            }
            link.receive();
            if leaves && link.state.is_mute() {
                // Nothing else that may have arrived will be received.
                link.trouble(Trouble::Lost);
            }
            done &= match link.state.channel() {
                Some(channel) => link.outbox.is_written() && channel.is_delivered(),
                None => !link.needs_connection(),
            };
            self.restless = true;
        }
        done
    }

    fn threads(&self) -> usize {
        usize::from(self.waiter.is_some()) + usize::from(self.progress.is_some())
    }

    #[inline]
    fn has_reaches(&self) -> bool {
        !self.reaches.is_empty()
    }

    fn take_reaches(&mut self) -> Vec<Reach> {
        std::mem::take(&mut self.reaches)
    }

    #[inline]
    fn has_shortages(&self) -> bool {
        !self.shortages.is_empty()
    }

    fn take_shortages(&mut self) -> Vec<Shortage> {
        std::mem::take(&mut self.shortages)
    }

    fn give_up(&mut self, peer: Peer) {
        Tcp::give_up(self, peer);
    }

    fn is_disowned_by(&self, peer: Peer) -> bool {
        let link = self.links.get(peer as usize).and_then(Option::as_deref);
        link.is_some_and(|link| link.state.is_disowned())
    }

    fn inquire(&mut self, peer: Peer) -> Option<WaitState> {
        Tcp::inquire(self, peer)
    }

    fn send_state(&mut self, peer: Peer) {
        self.answer_probe(peer, 0);
    }

    fn send_circle(&mut self, peer: Peer, word: u64, members: &[Peer]) -> bool {
        Tcp::send_circle(self, peer, word, members)
    }
}

impl Far for Tcp {
    fn end_of_look(&self) -> usize {
        self.known.len()
    }

    #[inline]
    fn is_in_use(&self) -> bool {
        !self.known.is_empty()
    }

    #[inline]
    fn begin_look(&mut self, polls: bool) {
        self.free_parted();
        if polls {
            self.poll();
        }
    }

    #[inline]
    fn losses(&self) -> u32 {
        self.ended
    }

    #[inline]
    fn presence(&self, peer: Peer, told: Presence) -> Presence {
        match told == Presence::Here && self.disowners == 0 {
            true => told,
            false => self.presence_at_end(peer, told),
        }
    }

    fn close(&mut self, peer: Peer) {
        let _whole = Uncancelled::begin();
        self.condemn(peer, "this task has closed the connection");
        if let Some(link) = self.link(peer) {
            link.state.close();
        }
    }

    fn forget(&mut self, peer: Peer) {
        self.part(peer);
    }
}
