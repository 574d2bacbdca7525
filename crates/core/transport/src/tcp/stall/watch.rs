//! The watch over unacknowledged parcels: each tick asks the kernel how far the peer's kernel has acknowledged,
//! reports silences, and tries new connections (see [`super`]).

use std::time::{Duration, Instant};

use regatta_connection::channel::Channel;
use regatta_connection::dial;
use regatta_connection::handshake::{Handshake, Outcome};
use regatta_engine::{Peer, Reach};
use rustix::event::epoll;

use super::{FIRST_SPARE_TOKEN, Liveness, Stall};
use crate::tcp::Tcp;
use crate::tcp::link::{Link, Trouble};

impl Link {
    /// Returns the round-trip time of the connection, if there is one that has measured it.
    fn round_trip(&self) -> Option<Duration> {
        let channel = self.state.channel().or(self.state.resuming_channel());
        let channel = channel.or(self.state.call().map(Handshake::channel));
        let trip = channel?.progress()?.round_trip;
        (!trip.is_zero()).then_some(trip)
    }

    fn liveness(&self) -> Liveness {
        if self.state.is_shut_out() || self.state.is_gone() {
            return Liveness::Quiet;
        }
        if let Some(channel) = self.state.channel() {
            return match channel.progress() {
                // Parcels that may not have arrived by a bypass may still have to go by the connection.
                Some(progress) if progress.idle && self.outbox.is_unsure() => Liveness::Moving,
                Some(progress) if progress.idle => Liveness::Quiet,
                Some(progress) if progress.repeated > 0 => Liveness::Silent(progress.acknowledged),
                _ => Liveness::Moving,
            };
        }
        if !self.needs_connection() {
            return Liveness::Quiet;
        }
        // A peer whose host has accepted the call and that does not answer is busy, possibly for hours.
        let call = self.state.call().filter(|shake| shake.has_sent_hello());
        let asking = call
            .map(Handshake::channel)
            .or(self.state.resuming_channel());
        let is_unconnected = self.state.is_unconnected();
        match asking {
            Some(channel) => liveness_of_call(channel),
            None if self.state.is_refused() => Liveness::Moving,
            None if is_unconnected && self.stall.short.is_some() => Liveness::Moving,
            None => Liveness::Silent(0),
        }
    }
}

/// Returns the liveness of a connection that is being made, on which the kernel sends keepalive probes. If a probe is
/// unanswered, makes the kernel send the next one soon.
fn liveness_of_call(channel: &Channel) -> Liveness {
    match channel.progress() {
        Some(progress) if progress.repeated == 0 => Liveness::Moving,
        Some(progress) if progress.idle => {
            let _ = dial::set_keepalive(channel, true);
            Liveness::Unanswered
        }
        Some(_) => Liveness::Silent(0),
        None => Liveness::Moving,
    }
}

impl Tcp {
    /// Starts watching a link to which something has been written.
    #[cold]
    pub(in crate::tcp) fn begin_watch(&mut self, peer: Peer) {
        self.make_progress_thread();
        let Some(progress) = &mut self.progress else {
            return;
        };
        progress.watch(true);
        if let Some(link) = self.link(peer) {
            link.stall.watched = true;
        }
    }

    /// Handles a tick of the watch.
    #[cold]
    pub(in crate::tcp) fn watch_over(&mut self) {
        let now = Instant::now();
        let mut watched = false;
        for index in 0..self.known.len() {
            let peer = self.known[index];
            let lost = self.is_lost(peer);
            let Some(link) = self.link(peer).filter(|link| link.stall.watched) else {
                continue;
            };
            watched = true;
            link.try_bypass_again();
            let found = match lost {
                true => Liveness::Quiet,
                false => link.liveness(),
            };
            if matches!(found, Liveness::Silent(_) | Liveness::Unanswered) {
                link.stall.round_trip = link.round_trip().or(link.stall.round_trip);
            }
            let stall = &mut link.stall;
            let silent = stall.note(&found, now);
            if silent >= stall.silence() {
                if stall.is_due(silent, now) {
                    let silent = Some(silent);
                    self.reaches.push(Reach { peer, silent });
                }
                if self.link(peer).is_some_and(|link| link.stall.may_call(now)) {
                    self.call_anew(peer);
                }
            } else if stall.since.is_none() {
                // The peer stays on the old connection as long as this side does.
                stall.spare = None;
                let ended = lost || link.state.is_cut_for_good();
                if link.stall.told.take().is_some() && !ended {
                    let silent = None;
                    self.reaches.push(Reach { peer, silent });
                }
            }
        }
        if let Some(progress) = self.progress.as_mut().filter(|_| !watched) {
            progress.watch(false);
        }
    }

    /// Tries a new connection to a silent peer, unless one has been accepted by the peer's host.
    pub(in crate::tcp) fn call_anew(&mut self, peer: Peer) {
        let Some(link) = self.link(peer) else {
            return;
        };
        if !link.is_open() {
            // The call in progress may have been lost in the network, and the kernel retransmits it late.
            link.trouble(Trouble::Lost);
            let _ = self.reach(peer);
            return;
        }
        let under_way = |spare: &Handshake| spare.has_sent_hello() && !spare.is_silent();
        if link.stall.spare.as_ref().is_some_and(under_way) {
            return;
        }
        link.stall.spare = None;
        let Some(address) = self.job.address(peer) else {
            return;
        };
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT;
        let called = dial::dial(address).and_then(|socket| {
            dial::set_keepalive(&socket, true)?;
            let mut shake = Handshake::caller(socket, peer).patient();
            shake.watch(&self.epoll, FIRST_SPARE_TOKEN | peer as u64, flags)?;
            Ok(shake)
        });
        if let (Ok(shake), Some(link)) = (called, self.link(peer)) {
            link.stall.spare = Some(shake);
        }
    }

    /// Handles an event on a link's spare connection.
    #[cold]
    pub(in crate::tcp) fn handle_spare_event(&mut self, peer: Peer) {
        let own = &self.own;
        let link = self.links.get_mut(peer as usize);
        let Some(link) = link.and_then(Option::as_deref_mut) else {
            return;
        };
        let Some(shake) = &mut link.stall.spare else {
            return;
        };
        match shake.advance(own) {
            Some(Outcome::Authenticated(_)) => {
                if let Some(shake) = link.stall.spare.take() {
                    self.adopt(peer, shake.into_channel(), true);
                }
            }
            Some(_) => link.stall.spare = None,
            None if shake.has_sent_hello() => {
                // A socket that has room would be reported in a loop.
                let data = epoll::EventData::new_u64(FIRST_SPARE_TOKEN | peer as u64);
                let _ = epoll::modify(&self.epoll, shake.fd(), data, epoll::EventFlags::IN);
            }
            None => {}
        }
    }

    /// Gives up an unreachable peer: it is dead for this task from now on.
    pub(crate) fn give_up(&mut self, peer: Peer) {
        if let Ok(link) = self.link_to(peer)
            && !link.state.is_gone()
        {
            link.stall = Stall {
                refuses: link.stall.refuses,
                ..Stall::default()
            };
            link.read_out();
            link.trouble(Trouble::Disowned);
            self.restless = true;
        }
    }
}
