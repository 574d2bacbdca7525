//! The bypasses of a task: one socket on one Ethernet segment for all of them, made when the first one is offered, and the ring in which their
//! frames come. How a bypass carries what is in [`super::bypass`].
//!
//! There are so many bypasses at most, and so many frames without an answer on each, that frames of honest peers always find
//! room in the ring. A look for frames is a load; each look takes a bounded number, whoever has sent them.

use std::net::IpAddr;

use regatta_connection::segment::{FRAMES, Segment};
use regatta_engine::Peer;
use regatta_wire::bypass::{Offer, split};
use rustix::event::epoll;

use super::bypass::{WINDOW, WORDS};
use super::link::Link;
use super::phase::Phase;
use super::{BYPASSES, Tcp};

/// Bypasses at a time.
const MOST: usize = FRAMES / (WINDOW + WORDS) as usize;
/// Frames taken in one look.
const TURN: usize = 32;

/// The bypasses of a task.
#[derive(Debug)]
pub(super) struct Bypasses {
    /// Whether there are to be any: the user may not want them, and tasks without cores of their own are helped by none.
    pub(super) wanted: bool,
    pub(super) crowded: bool,
    segment: Option<Segment>,
    peers: [Option<Peer>; MOST],
    /// The progress thread ticks.
    ticks: bool,
}

impl Bypasses {
    pub(super) fn new() -> Bypasses {
        Bypasses {
            wanted: false,
            crowded: false,
            segment: None,
            peers: [None; MOST],
            ticks: false,
        }
    }

    /// Has a frame come?
    #[inline]
    pub(super) fn has_frame(&self) -> bool {
        self.segment.as_ref().is_some_and(Segment::has_frame)
    }
}

impl Tcp {
    /// Small messages to other hosts may go past TCP/IP.
    pub(crate) fn want_bypasses(&mut self) {
        self.bypasses.wanted = true;
    }

    /// There are more tasks than cores, or no longer.
    pub(crate) fn set_crowded(&mut self, crowded: bool) {
        self.bypasses.crowded = crowded;
    }

    /// Takes the frames that have come by bypasses.
    #[inline]
    pub(super) fn look_aside(&mut self) {
        if self.bypasses.has_frame() {
            self.take_frames();
        }
    }

    /// So many of them at most.
    fn take_frames(&mut self) {
        let (bypasses, links) = (&mut self.bypasses, &mut self.links);
        let Some(segment) = &mut bypasses.segment else {
            return;
        };
        for _ in 0..TURN {
            let Some(frame) = segment.front() else {
                return;
            };
            if let Some((slot, number, sealed)) = split(frame)
                && let Some(Some(peer)) = bypasses.peers.get(slot as usize)
                && let Some(Some(link)) = links.get_mut(*peer as usize)
            {
                link.take_frame(slot, number, sealed);
                self.restless |= link.lost;
            }
            segment.release();
        }
    }

    /// Something has happened on the socket of the bypasses. An interface that goes down is an error there until somebody asks for it.
    #[cold]
    pub(super) fn stir_bypasses(&mut self) {
        self.take_all_frames();
        if let Some(segment) = &self.bypasses.segment {
            let _ = rustix::net::sockopt::socket_error(segment);
        }
    }

    /// All frames that are in the ring: something is about to end.
    #[cold]
    pub(super) fn take_all_frames(&mut self) {
        for _ in 0..FRAMES.div_ceil(TURN) {
            self.look_aside();
        }
    }

    /// Something has been sent by a bypass: there is to be a tick until it is confirmed.
    #[inline]
    pub(super) fn tick_bypasses(&mut self) {
        if !self.bypasses.ticks {
            self.set_ticks(true);
        }
    }

    #[cold]
    fn set_ticks(&mut self, ticks: bool) {
        if let Some(progress) = &mut self.progress {
            progress.tick(ticks);
            self.bypasses.ticks = ticks;
        }
    }

    /// Calls this for the links that may have bypasses.
    fn for_bypasses(&mut self, mut what: impl FnMut(&mut Link)) {
        for (slot, peer) in self.bypasses.peers.into_iter().enumerate() {
            let Some(link) = peer.and_then(|peer| self.link(peer)) else {
                continue;
            };
            // A peer that has had another slot before is called once.
            let bypass = link.bypass.as_ref();
            if bypass.is_some_and(|bypass| usize::from(bypass.slot) == slot) {
                what(link);
                let restless = link.is_restless();
                self.restless |= restless;
            }
        }
    }

    /// A tick of the progress thread.
    #[cold]
    pub(super) fn bypasses_ticked(&mut self) {
        self.take_all_frames();
        let mut more = false;
        self.for_bypasses(|link| more |= link.tick_aside());
        if !more {
            self.set_ticks(false);
        }
    }

    /// The task has looked around, and may look on for a while.
    #[inline]
    pub(super) fn pay_bypasses(&mut self) {
        if self.bypasses.segment.is_some() {
            self.for_bypasses(Link::pay_aside);
        }
    }

    /// The task is about to sleep: nobody is to wait for a tick.
    pub(super) fn settle_bypasses(&mut self) {
        if self.bypasses.segment.is_some() {
            self.for_bypasses(|link| {
                link.pay_aside();
                link.repeat_aside();
            });
        }
    }

    /// There is something to do about the bypass to a peer: to offer one, or to take an offer.
    #[cold]
    pub(super) fn tend_bypass(&mut self, peer: Peer) {
        let Some(link) = self.link(peer) else {
            return;
        };
        link.wants_bypass = false;
        if link.bypass.is_none() && self.offer_bypass(peer).is_none() {
            return;
        }
        let Some(link) = self.link(peer) else {
            return;
        };
        if let Some(offer) = link.offer.take() {
            link.meet_aside(&offer);
            self.tick_bypasses();
        }
    }

    /// Offers a bypass to a peer. None: there can be none.
    fn offer_bypass(&mut self, peer: Peer) -> Option<()> {
        let may = self.bypasses.wanted && !self.bypasses.crowded && self.progress.is_some();
        let link = self.link(peer).filter(|link| may && link.is_open())?;
        let Phase::Open(channel) = &link.phase else {
            return None;
        };
        let (local, remote) = channel.ends().ok().filter(|_| channel.is_secure())?;
        let slot = self.free_slot()?;
        self.open_segment(local, remote)?;
        let segment = self.bypasses.segment.as_ref()?;
        let (sender, interface) = (segment.sender(), segment.interface());
        let offer = Offer {
            mac: interface.mac,
            mtu: interface.mtu,
            tag: segment.tag(),
            slot,
        };
        self.link(peer)?.offer_aside(sender, &offer)?;
        self.bypasses.peers[slot as usize] = Some(peer);
        self.mind(peer);
        Some(())
    }

    /// The number of a bypass that is not there any more, or never was.
    fn free_slot(&self) -> Option<u8> {
        let is_free = |slot: &usize| {
            let peer = self.bypasses.peers[*slot];
            let link = peer.and_then(|peer| self.links.get(peer as usize)?.as_ref());
            let bypass = link.and_then(|link| link.bypass.as_ref());
            bypass.is_none_or(|bypass| usize::from(bypass.slot) != *slot)
        };
        Some((0..MOST).find(is_free)? as u8)
    }

    /// The segment on which a peer is, if it is the one that the task uses.
    fn open_segment(&mut self, local: IpAddr, remote: IpAddr) -> Option<()> {
        if let Some(segment) = &self.bypasses.segment {
            return segment.reaches(local, remote).then_some(());
        }
        let segment = Segment::open(local, remote).ok()?;
        let (data, flags) = (epoll::EventData::new_u64(BYPASSES), epoll::EventFlags::IN);
        epoll::add(&self.epoll, &segment, data, flags).ok()?;
        self.bypasses.segment = Some(segment);
        Some(())
    }

    /// Of the path to a peer, for people.
    pub(super) fn bypass_in_words(&self, peer: Peer) -> String {
        let link = self.links.get(peer as usize).and_then(Option::as_deref);
        let used = link.is_some_and(|link| {
            let bypass = link.bypass.as_ref();
            link.is_open() && bypass.is_some_and(|bypass| bypass.is_used())
        });
        match &self.bypasses.segment {
            Some(segment) if used => format!(
                "; small messages past TCP/IP, as frames of {}",
                segment.interface().name
            ),
            _ => String::new(),
        }
    }
}
