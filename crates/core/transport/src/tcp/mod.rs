//! Messages to tasks on other hosts: one connection for each pair of tasks that communicate.
//!
//! The task that sends first opens the connection. If both do so at the same time, the connection opened by the lower
//! rank is kept. `regatta_wire::link` describes the protocol on it, and `regatta_connection::handshake` how both
//! sides prove that they belong to the job. A [`Link`] is the state between this task and a peer. Connections can be
//! lost and replaced below it without loss, duplication or reordering: what was sent is kept until the peer
//! acknowledges that it has taken it. The job's table decides whether a peer is gone, not a connection.

#[cfg(test)]
mod any_cuts;
mod bypass;
#[cfg(test)]
mod bypass_tests;
mod bypasses;
#[cfg(test)]
mod calling_tests;
#[cfg(test)]
mod cut_tests;
mod deadlock_probe;
mod early;
mod ending;
mod engine_streams;
mod frames;
mod freeing;
#[cfg(test)]
mod front_tests;
mod inbox;
mod link;
#[cfg(test)]
mod link_tests;
mod outbox;
mod progress_thread;
mod shortage;
#[cfg(test)]
mod sleeping_tests;
mod socket_waiter;
mod stall;
mod stream;
mod stream_limit;
mod together;
mod upkeep;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use regatta_connection::channel::Channel;
use regatta_connection::dial;
use regatta_connection::handshake::{Handshake, Identity, Outcome};
use regatta_connection::listener::{FIRST_GUEST_TOKEN, Listener};
use regatta_engine::{Fault, Peer, Reach, Shortage};
use regatta_memory::uncancelled::Uncancelled;
use rustc_hash::FxHashSet;
use rustix::event::epoll;

use bypasses::Bypasses;
use link::{Link, Trouble};
use progress_thread::ProgressThread;
use regatta_segment::job::{Job, TaskState};
use socket_waiter::SocketWaiter;
use stall::FIRST_SPARE_TOKEN;

/// Tokens of epoll: first the numbers of peers, then those of guests, and last the socket of bypasses and the
/// listener.
const LISTENER_TOKEN: u64 = u64::MAX;
const BYPASSES_TOKEN: u64 = LISTENER_TOKEN - 1;

/// The transport to tasks on other hosts.
#[derive(Debug)]
pub struct Tcp {
    job: Arc<Job>,
    own: Identity,
    epoll: Arc<OwnedFd>,
    listener: Listener,
    /// Whether the listener is not watched, because no caller can be accepted now.
    listener_paused: bool,
    links: Vec<Option<Box<Link>>>,
    /// Peers that have a link.
    known: Vec<Peer>,
    /// Those of these peers that the engine has finished with; `freed` are the peers whose links have been freed.
    parted: Vec<Peer>,
    freed: FxHashSet<Peer>,
    losses_seen: u32,
    /// Whether something has a deadline or waits for room in a socket.
    restless: bool,
    /// Whether something has a deadline.
    timed: bool,
    waiter: Option<SocketWaiter>,
    progress: Option<ProgressThread>,
    bypasses: Bypasses,
    /// The function that the progress thread calls. Without it there is no such thread.
    pub(crate) go_on: Option<fn()>,
    /// Number of peers found gone so far.
    ended: u32,
    /// Number of these peers that live and consider this task dead.
    disowners: u32,
    /// Peers that have become unreachable or reachable again, and have not been reported yet.
    reaches: Vec<Reach>,
    /// Peers to be given up because a host lacks a resource for a connection.
    shortages: Vec<Shortage>,
}

impl Tcp {
    /// Maximum length in bytes of a frame's payload.
    pub(crate) const EAGER: usize = link::MAX_PAYLOAD_BYTES;

    /// Makes the transport of task `me`, to which other tasks connect at `listener`.
    pub(crate) fn new(job: Arc<Job>, me: Peer, listener: OwnedFd) -> io::Result<Tcp> {
        let (key, trusted) = job.key();
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        let mut listener = Listener::new(listener)?;
        listener.keep_reserve();
        let data = epoll::EventData::new_u64(LISTENER_TOKEN);
        epoll::add(&epoll, listener.fd(), data, epoll::EventFlags::IN)?;
        let tasks = job.first();
        Ok(Tcp {
            own: Identity::new(&key, me, (tasks, job.capacity()), !trusted),
            epoll,
            listener,
            listener_paused: false,
            links: Vec::new(),
            known: Vec::new(),
            parted: Vec::new(),
            freed: FxHashSet::default(),
            losses_seen: 0,
            restless: false,
            timed: false,
            waiter: None,
            progress: None,
            bypasses: Bypasses::new(),
            go_on: None,
            ended: 0,
            disowners: 0,
            reaches: Vec::new(),
            shortages: Vec::new(),
            job,
        })
    }

    /// Sets the number of records after which this task changes its key on new encrypted connections. It is limited
    /// by the bounds of `regatta_secure`.
    pub(crate) fn change_keys_after(&mut self, records: u64) {
        self.own.records = records;
    }

    #[inline]
    fn link(&mut self, peer: Peer) -> Option<&mut Link> {
        self.links.get_mut(peer as usize)?.as_deref_mut()
    }

    /// Returns the link to a peer, and makes it if necessary. Fails if the peer broke the protocol.
    fn link_to(&mut self, peer: Peer) -> Result<&mut Link, Fault> {
        let at = peer as usize;
        if self.links.len() <= at {
            self.links.resize_with(at + 1, || None);
        }
        if self.links[at].is_none() {
            self.known.push(peer);
            self.links[at] = Some(self.new_link(peer));
        }
        let link = self.links[at].get_or_insert_with(|| Box::new(Link::new()));
        match link.state.fault() {
            Some(what) => Err(Fault::Corrupt { peer, what }),
            None => Ok(link),
        }
    }

    /// Records that a call ends before all that it has sent is written, and starts the progress thread.
    #[cold]
    fn leave_behind(&mut self) {
        self.restless = true;
        self.make_progress_thread();
        if let Some(progress) = &mut self.progress {
            progress.owe(true);
        }
    }

    /// Starts the progress thread if there is none. Without it, what is left behind waits for the next call.
    fn make_progress_thread(&mut self) {
        if self.progress.is_none() {
            self.progress = self.go_on.and_then(|go_on| ProgressThread::new(go_on).ok());
        }
    }

    /// Handles what has happened on any socket. Does not block.
    pub(crate) fn poll(&mut self) {
        let _whole = Uncancelled::begin();
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; 16];
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if let Some(progress) = &self.progress
            && progress.turn()
        {
            self.watch_over();
        }
        if let Some(progress) = &self.progress
            && progress.bypass_turn()
        {
            self.bypasses_ticked();
        }
        let n = epoll::wait(&self.epoll, events.as_mut_slice(), Some(&now)).unwrap_or(0);
        for event in &events[..n] {
            match event.data.u64() {
                LISTENER_TOKEN => self.accept_guests(),
                BYPASSES_TOKEN => self.handle_bypass_event(),
                token @ FIRST_GUEST_TOKEN.. => self.handle_guest(token),
                token @ FIRST_SPARE_TOKEN.. => {
                    self.handle_spare_event((token - FIRST_SPARE_TOKEN) as Peer)
                }
                peer => self.handle_link_event(peer as Peer),
            }
        }
        if self.restless || self.job.losses() != self.losses_seen {
            self.handle_deadlines();
        }
    }

    fn accept_guests(&mut self) {
        let mut tokens = self.listener.accept();
        if self.listener.is_short() && self.give_way() {
            self.listener.resume();
            tokens.extend(self.listener.accept());
        }
        for token in tokens {
            match self.listener.watch(token, &self.epoll) {
                true => self.handle_guest(token),
                false => self.listener.dismiss(token),
            }
        }
        self.watch_listener();
        self.restless = true;
    }

    /// Gives up an outgoing call, so that its descriptor can serve a caller that cannot be accepted. That caller may
    /// be the very task that this one is calling: after a connection broke, that task has no other descriptor either,
    /// and its call is the one to be kept. Returns whether there was such a call.
    fn give_way(&mut self) -> bool {
        let me = self.own.me;
        let mut stand = self.known.iter().copied().filter(|&peer| peer < me);
        let is_called = |&peer: &Peer| {
            let link = self.links.get(peer as usize).and_then(Option::as_deref);
            link.is_some_and(|link| link.state.is_calling())
        };
        match stand.find(is_called) {
            Some(peer) => self.retreat(peer),
            None => return false,
        }
        true
    }

    /// Stops watching the listener while no caller can be accepted: a waiting caller would be reported in a loop.
    fn watch_listener(&mut self) {
        let paused = self.listener.is_paused();
        if std::mem::replace(&mut self.listener_paused, paused) == paused {
            return;
        }
        let flags = match paused {
            true => epoll::EventFlags::empty(),
            false => epoll::EventFlags::IN,
        };
        let data = epoll::EventData::new_u64(LISTENER_TOKEN);
        let _ = epoll::modify(&self.epoll, self.listener.fd(), data, flags);
    }

    /// Handles what a guest has sent.
    fn handle_guest(&mut self, token: u64) {
        match self.listener.advance(token, &self.own) {
            Some(Outcome::Authenticated(peer)) if peer >= self.job.tasks() => {
                self.listener.dismiss(token)
            }
            Some(Outcome::Authenticated(peer)) => {
                if let Err(errno) = self.listener.return_reserve(token) {
                    self.refuse(peer, errno);
                }
                if let Some(channel) = self.listener.admit(token) {
                    self.adopt(peer, channel, false);
                }
            }
            Some(Outcome::OtherVersion(peer)) => {
                self.listener.dismiss(token);
                self.condemn(peer, "it speaks another version of Regatta");
            }
            Some(Outcome::Failed) => self.listener.dismiss(token),
            None => {}
        }
    }

    fn condemn(&mut self, peer: Peer, what: &'static str) {
        if let Ok(link) = self.link_to(peer) {
            link.trouble(Trouble::Corrupt(what));
        }
    }

    /// Handles an event on the socket of a link.
    fn handle_link_event(&mut self, peer: Peer) {
        let own = &self.own;
        let Some(link) = self
            .links
            .get_mut(peer as usize)
            .and_then(Option::as_deref_mut)
        else {
            return;
        };
        self.restless |= !link.is_open();
        let data = epoll::EventData::new_u64(peer as u64);
        if link.is_open() {
            if let Some(channel) = link.state.channel().filter(|_| link.state.awaits_room()) {
                let _ = epoll::modify(&self.epoll, channel, data, epoll::EventFlags::IN);
                link.state.set_awaits_room(false);
            }
            link.receive();
            if link.is_blocked() {
                link.pump(0);
            }
            let (restless, wants_bypass) = (link.is_restless(), link.negotiation.is_due());
            self.restless |= restless;
            if wants_bypass {
                self.tend_bypass(peer);
            }
        } else if link.state.is_resuming() {
            self.resume(peer);
        } else if let Some(shake) = link.state.call_mut() {
            match shake.advance(own) {
                Some(Outcome::Authenticated(_)) => {
                    if let Some(channel) = link.state.met() {
                        self.adopt(peer, channel, true);
                    }
                }
                Some(Outcome::OtherVersion(_)) => {
                    link.trouble(Trouble::Corrupt("it speaks another version of Regatta"));
                }
                Some(Outcome::Failed) => self.retreat(peer),
                None if shake.has_sent_hello() => {
                    // A socket that has room would be reported in a loop.
                    let _ = epoll::modify(&self.epoll, shake.fd(), data, epoll::EventFlags::IN);
                }
                None => {}
            }
        }
    }

    /// Ends an attempt to connect that has failed.
    fn retreat(&mut self, peer: Peer) {
        self.restless = true;
        if let Some(link) = self.link(peer) {
            let is_refused = link.state.call().is_some_and(Handshake::was_refused);
            link.trouble(Trouble::Lost);
            link.state.retreated(Instant::now(), is_refused);
        }
    }

    /// Hands an authenticated connection to its link, unless this task's own call is to be kept.
    fn adopt(&mut self, peer: Peer, channel: Channel, called: bool) {
        debug_assert_eq!(channel.is_secure(), self.own.encrypted);
        let mine_stands = self.own.me < peer;
        // A peer that broke the protocol only receives a notification of that.
        let _ = self.link_to(peer);
        // A task that has ended does not connect: this peer was declared dead while it lived.
        let outlived = self.job.state(peer) == TaskState::Dead;
        let Some(link) = self.link(peer) else {
            return;
        };
        if outlived {
            link.state.part();
        }
        let calls = link.state.is_calling() || link.stall.has_called_anew();
        if !called && mine_stands && calls {
            return;
        }
        link.stall.begin_again();
        let _ = dial::set_keepalive(&channel, true);
        let flags = epoll::EventFlags::IN;
        let data = epoll::EventData::new_u64(peer as u64);
        let watched = epoll::modify(&self.epoll, channel.as_fd(), data, flags);
        // Frames received by the previous connection's bypass need not be repeated.
        self.take_all_frames();
        let Some(link) = self.link(peer) else {
            return;
        };
        let said = link.adopt(channel, called);
        self.restless = true;
        match said.is_ok() && watched.is_ok() {
            true => self.resume(peer),
            false => self.retreat(peer),
        }
    }

    /// Receives the first parcel of a connection.
    fn resume(&mut self, peer: Peer) {
        if self.link(peer).is_some_and(|link| link.begin().is_err()) {
            self.retreat(peer);
        }
        self.note_refusal(peer);
    }

    /// Connects to a peer, unless a call is in progress or must wait.
    pub(crate) fn reach(&mut self, peer: Peer) -> Result<(), Fault> {
        if !self.link_to(peer)?.state.may_call() {
            return Ok(());
        }
        let _whole = Uncancelled::begin();
        let Some(address) = self.job.address(peer) else {
            return Err(Fault::Memory(format!(
                "task {peer} is on another host, and the job's table has no address for it"
            )));
        };
        self.restless = true;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT;
        let called = dial::dial(address).and_then(|socket| {
            dial::set_keepalive(&socket, true)?;
            let mut shake = Handshake::caller(socket, peer).patient();
            shake.watch(&self.epoll, peer as u64, flags)?;
            Ok(shake)
        });
        match called {
            Ok(shake) => {
                if let Some(link) = self.link(peer) {
                    link.stall.end_shortage();
                    link.state.called(shake);
                }
            }
            Err(error) => self.not_called(peer, &error)?,
        }
        if self.link(peer).is_some_and(|link| !link.stall.is_watched()) {
            self.begin_watch(peer);
        }
        Ok(())
    }

    /// Handles all links that have a deadline, or wait for a socket.
    #[cold]
    fn handle_deadlines(&mut self) {
        let now = Instant::now();
        self.losses_seen = self.job.losses();
        let mut timed = self.listener.tidy(now);
        self.watch_listener();
        let (mut blocked, mut waiting) = (false, false);
        for index in 0..self.known.len() {
            let peer = self.known[index];
            if let Some(link) = self.link(peer) {
                link.receive_held_back();
            }
            self.handle_probes(peer);
            let mut gone = self.is_lost(peer);
            let Some(link) = self.link(peer) else {
                continue;
            };
            link.state.look_after();
            gone |= link.state.is_disowned();
            let needs = link.needs_connection();
            if link.is_open() {
                if link.is_blocked() {
                    link.pump(0);
                    blocked |= link.is_blocked();
                }
            } else if let Some(shake) = link.state.call() {
                waiting |= needs;
                // Once the other host has accepted the call, its answer is an event on the socket, however late.
                if !shake.has_sent_hello() {
                    if shake.is_overdue(now) {
                        self.retreat(peer);
                    }
                    timed = true;
                }
            } else if link.state.is_resuming() {
                // The peer's first parcel is an event on the socket, however late.
                waiting |= needs;
            } else if needs && !gone && !link.state.is_over() {
                // If there is no address, that is no error here: the peer had one before.
                let _ = self.reach(peer);
                (timed, waiting) = (true, true);
            }
            timed |= self.end(peer, gone, now);
        }
        self.timed = timed;
        self.restless = timed || blocked;
        if let Some(progress) = &mut self.progress {
            progress.owe(blocked || waiting);
        }
    }
}

impl Drop for Tcp {
    /// Ends all connections in good order.
    fn drop(&mut self) {
        let _whole = Uncancelled::begin();
        for link in self.links.iter_mut().flatten() {
            if let Some(channel) = link.state.channel() {
                channel.close_sending();
            }
        }
    }
}
