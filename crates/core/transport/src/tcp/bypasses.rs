//! The bypasses of a task: one socket on one Ethernet segment for all of them, opened when the first bypass is
//! offered, and the ring that receives their frames. [`super::bypass`] describes how a bypass works.
//!
//! The number of bypasses, and of unanswered frames on each, are limited so that frames of honest peers always find
//! room in the ring. Checking for frames is a single load. Each poll takes a bounded number of frames, whichever
//! peers have sent them.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Instant;

use regatta_connection::packet_socket::{MAX_PACKET_BYTES, PacketSocket, RING_FRAMES};
use regatta_engine::Peer;
use regatta_wire::bypass::{ETHERNET_HEAD_BYTES, Offer, entry_for, split};
use rustix::event::epoll;

use super::bypass::{WINDOW_FRAMES, WINDOW_WORDS};
use super::link::Link;
use super::{BYPASSES_TOKEN, Tcp};

/// Maximum number of bypasses at a time.
const MAX_BYPASSES: usize = RING_FRAMES / (WINDOW_FRAMES + WINDOW_WORDS) as usize;
/// Maximum number of tasks per core on a host for bypasses to be used: every frame passes the socket filters of all
/// these tasks.
const MAX_TASKS_PER_CORE: u32 = 8;
/// Maximum number of frames taken in one poll.
const FRAMES_PER_POLL: usize = 32;

/// The bypasses of a task.
#[derive(Debug)]
pub(super) struct Bypasses {
    /// Whether bypasses are allowed.
    wanted: bool,
    pub(super) socket: Option<PacketSocket>,
    /// The error of the last attempt to open the socket, if it failed.
    refused: Option<ErrorKind>,
    peers: [Option<Peer>; MAX_BYPASSES],
    /// Whether the progress thread ticks.
    ticks: bool,
    /// Whether a frame has been received or sent since the last tick.
    stirred: bool,
    /// Buffer in which a frame for several tasks is built.
    pub(super) out: Box<[u8]>,
}

impl Bypasses {
    pub(super) fn new() -> Bypasses {
        Bypasses {
            wanted: false,
            socket: None,
            refused: None,
            peers: [None; MAX_BYPASSES],
            ticks: false,
            stirred: false,
            out: vec![0; ETHERNET_HEAD_BYTES + MAX_PACKET_BYTES].into_boxed_slice(),
        }
    }

    /// Returns whether a frame has arrived.
    #[inline]
    pub(super) fn has_frame(&self) -> bool {
        self.socket.as_ref().is_some_and(PacketSocket::has_frame)
    }
}

impl Tcp {
    /// Allows small messages to other hosts to bypass TCP/IP.
    pub(crate) fn want_bypasses(&mut self) {
        self.bypasses.wanted = true;
    }

    /// Takes frames that have arrived by bypasses, up to a bound.
    #[inline]
    pub(super) fn look_at_bypasses(&mut self) {
        if self.bypasses.has_frame() {
            self.take_frames();
        }
    }

    /// Takes up to [`FRAMES_PER_POLL`] frames.
    fn take_frames(&mut self) {
        let (bypasses, links) = (&mut self.bypasses, &mut self.links);
        let Some(socket) = &mut bypasses.socket else {
            return;
        };
        let (group, tag) = (socket.group(), socket.tag());
        let mut taken = false;
        for _ in 0..FRAMES_PER_POLL {
            let Some(frame) = socket.front() else {
                break;
            };
            let own = entry_for(frame, group, tag).or_else(|| split(frame));
            if let Some((slot, number, sealed)) = own
                && let Some(Some(peer)) = bypasses.peers.get(slot as usize)
                && let Some(Some(link)) = links.get_mut(*peer as usize)
            {
                link.take_frame(slot, number, sealed);
                self.restless |= link.state.is_lost();
            }
            taken |= own.is_some();
            socket.release();
        }
        if taken {
            self.tick_bypasses();
        }
    }

    /// Handles an event on the socket of the bypasses. If the interface goes down, the socket reports an error until
    /// it is read.
    #[cold]
    pub(super) fn handle_bypass_event(&mut self) {
        self.take_all_frames();
        if let Some(socket) = &self.bypasses.socket {
            let _ = rustix::net::sockopt::socket_error(socket);
        }
    }

    /// Takes all frames in the ring, because a connection or a task is about to end.
    #[cold]
    pub(super) fn take_all_frames(&mut self) {
        for _ in 0..RING_FRAMES.div_ceil(FRAMES_PER_POLL) {
            self.look_at_bypasses();
        }
    }

    /// Starts the ticks, because something was sent or taken by a bypass: they go on until it is confirmed.
    #[inline]
    pub(super) fn tick_bypasses(&mut self) {
        self.bypasses.stirred = true;
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

    /// Calls `what` for each link that has a bypass.
    fn for_bypasses(&mut self, mut what: impl FnMut(&mut Link)) {
        for (slot, peer) in self.bypasses.peers.into_iter().enumerate() {
            let Some(link) = peer.and_then(|peer| self.link(peer)) else {
                continue;
            };
            // A peer that had another slot before is visited only once.
            let bypass = link.bypass.as_ref();
            if bypass.is_some_and(|bypass| usize::from(bypass.slot) == slot) {
                what(link);
                let restless = link.is_restless();
                self.restless |= restless;
            }
        }
    }

    /// Handles a tick of the progress thread.
    #[cold]
    pub(super) fn bypasses_ticked(&mut self) {
        self.take_all_frames();
        // Ticks continue while there are frames: a needless tick costs less than stopping and restarting the ticks.
        let (mut more, now) = (std::mem::take(&mut self.bypasses.stirred), Instant::now());
        self.for_bypasses(|link| {
            link.confirm_taken();
            more |= link.tick_bypass(now);
        });
        if !more {
            self.set_ticks(false);
        }
    }

    /// Offers a bypass to a peer, or completes one with the peer's offer.
    #[cold]
    pub(super) fn tend_bypass(&mut self, peer: Peer) {
        let Some(link) = self.link(peer) else {
            return;
        };
        link.negotiation.begin();
        if link.bypass.is_none() && self.offer_bypass(peer).is_none() {
            return;
        }
        let Some(link) = self.link(peer) else {
            return;
        };
        if let Some(offer) = link.negotiation.take_offer() {
            link.meet_bypass(&offer);
            self.tick_bypasses();
        }
    }

    /// Offers a bypass to a peer. Returns `None` if there can be none.
    fn offer_bypass(&mut self, peer: Peer) -> Option<()> {
        let may = self.bypasses.wanted
            && self.progress.is_some()
            && self.job.tasks_per_core() <= MAX_TASKS_PER_CORE;
        let link = self.link(peer).filter(|_| may)?;
        let channel = link.state.channel()?;
        let (local, remote) = channel.ends().ok().filter(|_| channel.is_secure())?;
        let slot = self.free_slot()?;
        self.open_socket(local, remote)?;
        let socket = self.bypasses.socket.as_ref()?;
        let (sender, interface) = (socket.sender(), socket.interface());
        let offer = Offer {
            mac: interface.mac,
            mtu: interface.mtu,
            tag: socket.tag(),
            slot,
        };
        self.link(peer)?.set_up_bypass(sender, &offer)?;
        self.bypasses.peers[slot as usize] = Some(peer);
        self.retry_words(peer);
        Some(())
    }

    /// Returns the number of a slot without a bypass, or `None` if all are in use.
    fn free_slot(&self) -> Option<u8> {
        let is_free = |slot: &usize| {
            let peer = self.bypasses.peers[*slot];
            let link = peer.and_then(|peer| self.links.get(peer as usize)?.as_ref());
            let bypass = link.and_then(|link| link.bypass.as_ref());
            bypass.is_none_or(|bypass| usize::from(bypass.slot) != *slot)
        };
        Some((0..MAX_BYPASSES).find(is_free)? as u8)
    }

    /// Opens the socket on the Ethernet segment of a peer, or checks that the open one reaches the peer. Returns
    /// `None` if that is not possible, or if the task's socket is on another segment.
    fn open_socket(&mut self, local: IpAddr, remote: IpAddr) -> Option<()> {
        if let Some(socket) = &self.bypasses.socket {
            return socket.reaches(local, remote).then_some(());
        }
        // A task that lacks the permission now will not get it later.
        if self.bypasses.refused == Some(ErrorKind::PermissionDenied) {
            return None;
        }
        let opened = PacketSocket::open(local, remote, self.own.group_tag());
        self.bypasses.refused = opened.as_ref().err().map(std::io::Error::kind);
        let socket = opened.ok()?;
        let (data, flags) = (
            epoll::EventData::new_u64(BYPASSES_TOKEN),
            epoll::EventFlags::IN,
        );
        epoll::add(&self.epoll, &socket, data, flags).ok()?;
        self.bypasses.socket = Some(socket);
        Some(())
    }

    /// Returns the part about bypasses of the description of the path to a peer.
    pub(super) fn bypass_in_words(&self, peer: Peer) -> String {
        let link = self.links.get(peer as usize).and_then(Option::as_deref);
        let link = link.filter(|link| link.is_open());
        let bypass = link.and_then(|link| link.bypass.as_ref());
        match &self.bypasses.socket {
            Some(socket) if bypass.is_some_and(|bypass| bypass.is_used()) => format!(
                "; small messages bypass TCP/IP, as frames of {}",
                socket.interface().name
            ),
            _ => format!("; no bypass: {}", self.why_no_bypass(bypass.is_some())),
        }
    }

    fn why_no_bypass(&self, offered: bool) -> &'static str {
        match self.bypasses.refused {
            _ if !self.bypasses.wanted => "REGATTA_BYPASS=off, or a trusted network",
            _ if self.job.tasks_per_core() > MAX_TASKS_PER_CORE => {
                "this host has too many tasks for its cores"
            }
            _ if offered => "the other task has not offered one, or does not answer through it",
            Some(ErrorKind::PermissionDenied) => {
                "this task may not open packet sockets (it has no CAP_NET_RAW)"
            }
            Some(_) => "the hosts share no Ethernet segment",
            None => "the two tasks have not exchanged enough messages",
        }
    }
}
