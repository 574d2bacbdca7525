//! The transport a process uses: shared memory to the tasks of its own host, connections to all others.
//!
//! A task that has a ring is on this host; whoever has none is looked up in the job's table. So messages between
//! tasks of one host pay nothing for the others. A look at the sockets is a system call: it is
//! paid by receives from tasks on other hosts, and by one in [`SOCKETS`] of the looks for anything at all.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use regatta_engine::{Arrival, Fault, Flow, Part, Peer, Presence, Transport};
use regatta_memory::Corrupt;
use regatta_memory::bell::Fencing;
use regatta_memory::held::Held;
use regatta_memory::views::Views;
use regatta_wire::{Frame, Route};

use crate::collective_buffer::CollectiveBuffer;
use crate::footprint::Policy;
use crate::job::Job;
use crate::shm::{self, Shm};
use crate::tcp::deadlock_probe::Heard;
pub use crate::tcp::stall::Reach;
use crate::tcp::{Tcp, Wire};

/// Of so many looks for messages from anybody, one is at the sockets.
const SOCKETS: u32 = 16;

/// See the module.
#[derive(Debug)]
pub struct Paths {
    shm: Shm,
    tcp: Option<Box<Tcp>>,
    looks: u32,
    /// Peers on other hosts found gone.
    ended: u32,
}

/// One side of a stream.
#[derive(Debug)]
pub struct Stream(Carrier);

#[derive(Debug)]
enum Carrier {
    Shm(shm::Bulk),
    Tcp(Wire),
}

impl Paths {
    /// The transport of task `me` of a job it has joined. Others call it at `listener`, if the job runs on several
    /// hosts.
    pub fn new(job: Arc<Job>, me: Peer, listener: Option<OwnedFd>) -> io::Result<Paths> {
        let tcp = match listener {
            Some(listener) => Some(Box::new(Tcp::new(job.clone(), me, listener)?)),
            None => None,
        };
        Ok(Paths {
            shm: Shm::new(job, me),
            tcp,
            looks: 0,
            ended: 0,
        })
    }

    /// Encrypted connections made from now on change the keys of what this task sends after so many records, instead of the
    /// most that a key may seal. At least some hundred records have one key, whatever is asked for.
    pub fn change_keys_after(&mut self, records: u64) {
        if let Some(tcp) = &mut self.tcp {
            tcp.change_keys_after(records);
        }
    }

    /// See [`Shm::choose_footprints`].
    pub fn choose_footprints(&mut self, policy: Policy) {
        self.shm.choose_footprints(policy);
    }

    /// From now on `go_on` is called, by a thread of the transport's, when this task leaves words behind for other hosts and
    /// stays away: it is to take the task's lock, and to call [`Paths::go_on`]. This must not be dropped under that lock.
    pub fn finish_by(&mut self, go_on: fn()) {
        if let Some(tcp) = &mut self.tcp {
            tcp.go_on = Some(go_on);
        }
    }

    /// Look at the sockets, and go on with what was left behind.
    pub fn go_on(&mut self) {
        if let Some(tcp) = &mut self.tcp {
            tcp.poll();
        }
    }

    /// The job.
    pub fn job(&self) -> &Job {
        self.shm.job()
    }

    /// How fences are paid for here.
    pub fn fencing(&self) -> Fencing {
        self.shm.fencing()
    }

    /// See [`Shm::share_loan`].
    pub fn share_loan(&mut self, place: u64, reader: Peer) -> Option<u64> {
        let near = self.shm.shares_memory(reader);
        near.then(|| self.shm.share_loan(place, reader))?
    }

    /// See [`Shm::open_loan`].
    pub fn open_loan(&self, name: u64, len: usize) -> Result<NonNull<u8>, Corrupt> {
        self.shm.open_loan(name, len)
    }

    /// See [`Shm::close_loan`].
    pub fn close_loan(&mut self, name: u64) {
        self.shm.close_loan(name);
    }

    /// See [`Shm::hand_over_loan`].
    pub fn hand_over_loan(&mut self, place: u64, to: Peer) -> bool {
        self.shm.hand_over_loan(place, to)
    }

    /// The message in which that block was to go is not sent: the block is this task's again.
    pub fn take_back_loan(&mut self, place: u64, to: Peer) {
        self.shm.take_back_loan(place, to);
    }

    /// Gives up the blocks that this task keeps for its next loans, before anybody can learn that it has left.
    pub fn let_go_of_loans(&mut self) {
        self.shm.let_go_of_loans();
    }

    /// More tasks than cores?
    pub fn crowded(&self) -> bool {
        self.shm.crowded()
    }

    /// Look again whether there are more tasks than cores.
    pub fn look_around(&mut self) {
        self.shm.look_around();
    }

    /// The path messages to a peer take, and why; for people.
    pub fn path(&mut self, peer: Peer) -> String {
        match self.tcp_to(peer) {
            Ok(Some(tcp)) => tcp.path(peer),
            Ok(None) => self.shm.path(peer),
            Err(_) => "none: this task listens nowhere".into(),
        }
    }

    /// The next look for messages is at the sockets, too.
    pub fn look_everywhere(&mut self) {
        self.looks = SOCKETS - 1;
    }

    /// The task has said that it is about to sleep on its bell: let what comes from other hosts ring it, and what is
    /// there already.
    pub fn arm(&mut self) {
        if let Some(tcp) = &mut self.tcp
            && self.shm.job().is_scattered()
        {
            tcp.arm();
        }
    }

    /// This task sends nothing more. False: not all has arrived yet, look again.
    pub fn leave(&mut self) -> bool {
        self.tcp.as_mut().is_none_or(|tcp| tcp.leave())
    }

    /// The last answer of a task on another host about being blocked; it is asked for the next time.
    pub fn inquire(&mut self, peer: Peer) -> Option<Heard> {
        self.tcp_to(peer).ok()??.inquire(peer)
    }

    /// Tell a task on another host how it is with this one.
    pub fn send_state(&mut self, peer: Peer) {
        if let Ok(Some(tcp)) = self.tcp_to(peer) {
            tcp.send_state(peer, 0);
        }
    }

    /// Tell a task on another host that the wait it has shown with `word` is part of a circle. False: not now.
    pub fn send_circle(&mut self, peer: Peer, word: u64, members: &[Peer]) -> bool {
        match self.tcp_to(peer) {
            Ok(Some(tcp)) => tcp.send_circle(peer, word, members),
            _ => false,
        }
    }

    /// Does that peer live, and its host hold this task for dead?
    pub fn is_disowned_by(&self, peer: Peer) -> bool {
        let tcp = self.tcp.as_ref();
        tcp.is_some_and(|tcp| tcp.is_disowned_by(peer))
    }

    /// Is there something for [`Paths::take_reaches`]?
    #[inline]
    pub fn has_reaches(&self) -> bool {
        self.tcp.as_ref().is_some_and(|tcp| tcp.has_reaches())
    }

    /// Peers on other hosts that have come out of reach, or back, since the last call.
    pub fn take_reaches(&mut self) -> Vec<Reach> {
        let tcp = self.tcp.as_mut();
        tcp.map_or_else(Vec::new, |tcp| tcp.take_reaches())
    }

    /// A task that cannot be reached is dead for this one from now on.
    pub fn give_up(&mut self, peer: Peer) {
        if let Ok(Some(tcp)) = self.tcp_to(peer) {
            tcp.give_up(peer);
        }
    }

    /// How many threads of the transport's own this task has.
    pub fn threads(&self) -> usize {
        self.tcp.as_ref().map_or(0, |tcp| tcp.threads())
    }

    /// Connections to a peer, if that is where it is to be found.
    #[inline]
    fn tcp_to(&mut self, peer: Peer) -> Result<Option<&mut Tcp>, Fault> {
        if self.shm.job().is_here(peer) {
            return Ok(None);
        }
        match self.tcp.as_deref_mut() {
            Some(tcp) => Ok(Some(tcp)),
            None => Err(Fault::Memory(format!(
                "task {peer} is on another host, and this task was given no socket to reach it"
            ))),
        }
    }
}

impl Transport for Paths {
    type Bulk = Stream;
    type CollectiveBuffer = CollectiveBuffer;

    fn me(&self) -> Peer {
        self.shm.me()
    }

    fn peers(&self) -> u32 {
        self.shm.peers()
    }

    fn presence(&self, peer: Peer) -> Presence {
        let told = self.shm.presence(peer);
        match &self.tcp {
            Some(tcp) if told != Presence::Here || tcp.disowners > 0 => tcp.presence(peer, told),
            _ => told,
        }
    }

    #[inline(always)]
    fn losses(&self) -> u32 {
        self.shm.losses().wrapping_add(self.ended)
    }

    fn world(&self) -> (Peer, u32) {
        self.shm.world()
    }

    fn forget(&mut self, peer: Peer) {
        self.shm.forget(peer);
        if let Some(tcp) = &mut self.tcp {
            tcp.part(peer);
        }
    }

    fn close(&mut self, peer: Peer) {
        match self.tcp_to(peer) {
            Ok(Some(tcp)) => tcp.shut(peer),
            _ => self.shm.close(peer),
        }
    }

    fn host(&self, peer: Peer) -> u32 {
        self.shm.job().host_of(peer)
    }

    fn eager_limit(&self) -> usize {
        self.shm.eager_limit()
    }

    fn eager_limit_to(&self, peer: Peer) -> usize {
        match self.shares_memory(peer) {
            true => self.shm.eager_limit_to(peer),
            false => Tcp::EAGER.max(self.shm.eager_limit()),
        }
    }

    fn shares_memory(&self, peer: Peer) -> bool {
        self.shm.shares_memory(peer)
    }

    #[inline(always)]
    fn send(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault> {
        if self.shm.sends_to(to) {
            return self.shm.send(to, frame, payload);
        }
        match self.tcp_to(to)? {
            Some(tcp) => tcp.send(to, frame, payload),
            None => self.shm.send(to, frame, payload),
        }
    }

    fn send_body(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool, Fault> {
        // SAFETY: the body is only read, before this call ends.
        let payload = unsafe { Views::block(body.as_ptr().cast_mut(), body.len()) };
        self.send(to, frame, &payload)
    }

    #[inline(always)]
    fn front(&mut self, from: Peer) -> Result<Option<Arrival>, Fault> {
        if self.shm.has_received_from(from) {
            return self.shm.front(from);
        }
        match self.tcp_to(from) {
            Ok(Some(tcp)) => tcp.front(from),
            Ok(None) => self.shm.front(from),
            Err(_) => Ok(None),
        }
    }

    #[inline(always)]
    fn accept(&mut self, from: Peer, into: &Views) {
        if self.shm.has_received_from(from) {
            self.shm.accept(from, into);
        } else if let Ok(Some(tcp)) = self.tcp_to(from) {
            tcp.accept(from, into);
        }
    }

    #[inline(always)]
    fn accept_matching(
        &mut self,
        from: Peer,
        context: u32,
        tag: i32,
        into: &Views,
    ) -> Option<usize> {
        if self.shm.has_received_from(from) {
            return self.shm.accept_matching(from, context, tag, into);
        }
        match self.tcp_to(from) {
            Ok(Some(tcp)) => tcp.accept_matching(from, context, tag, into),
            _ => self.shm.accept_matching(from, context, tag, into),
        }
    }

    fn accept_bytes(&mut self, from: Peer) -> Held {
        match self.tcp_to(from) {
            Ok(Some(tcp)) => tcp.accept_bytes(from),
            _ => self.shm.accept_bytes(from),
        }
    }

    #[inline(always)]
    fn next_ready(&mut self, cursor: &mut usize) -> Option<Peer> {
        let first = *cursor == 0;
        let peer = self.shm.next_ready(cursor);
        if peer.is_some() && !first {
            return peer;
        }
        let Some(tcp) = self.tcp.as_deref_mut() else {
            return peer;
        };
        if first {
            tcp.free_parted();
            self.looks = self.looks.wrapping_add(1);
            let often = self.shm.crowded() && tcp.has_links();
            let turn = self.looks.is_multiple_of(SOCKETS) && self.shm.job().is_scattered();
            if often || turn {
                tcp.poll();
                self.ended = tcp.ended;
            }
        }
        if peer.is_some() {
            return peer;
        }
        let mut own = *cursor - self.shm.open_rings();
        let peer = tcp.next_ready(&mut own);
        *cursor = self.shm.open_rings() + own;
        peer
    }

    fn open(&mut self, to: Peer, message: &Views) -> Result<Option<(Stream, Route)>, Fault> {
        let opened = match self.tcp_to(to)? {
            Some(tcp) => tcp
                .open(to, message)?
                .map(|(wire, route)| (Carrier::Tcp(wire), route)),
            None => self
                .shm
                .open(to, message)?
                .map(|(bulk, route)| (Carrier::Shm(bulk), route)),
        };
        Ok(opened.map(|(way, route)| (Stream(way), route)))
    }

    fn open_for(&mut self, from: Peer) -> Result<(Stream, Route), Fault> {
        if let Some(tcp) = self.tcp_to(from)? {
            let (wire, route) = tcp.open_for(from)?;
            return Ok((Stream(Carrier::Tcp(wire)), route));
        }
        let (bulk, route) = self.shm.open_for(from)?;
        Ok((Stream(Carrier::Shm(bulk)), route))
    }

    fn attach(&mut self, peer: Peer, route: &Route) -> Result<Stream, Fault> {
        if let Some(tcp) = self.tcp_to(peer)? {
            return Ok(Stream(Carrier::Tcp(tcp.attach(peer, route)?)));
        }
        Ok(Stream(Carrier::Shm(self.shm.attach(peer, route)?)))
    }

    fn attach_to_fill(&mut self, peer: Peer, route: &Route) -> Result<Stream, Fault> {
        if let Some(tcp) = self.tcp_to(peer)? {
            return Ok(Stream(Carrier::Tcp(tcp.attach_to_fill(peer, route)?)));
        }
        Ok(Stream(Carrier::Shm(self.shm.attach_to_fill(peer, route)?)))
    }

    fn decline(&mut self, peer: Peer, route: &Route) -> Result<(), Fault> {
        match self.tcp_to(peer)? {
            Some(tcp) => tcp.decline(peer, route),
            None => self.shm.decline(peer, route),
        }
    }

    fn fill(&mut self, to: Peer, bulk: &mut Stream, message: &Views) -> Result<Flow, Fault> {
        match &mut bulk.0 {
            Carrier::Shm(bulk) => self.shm.fill(to, bulk, message),
            Carrier::Tcp(wire) => match self.tcp.as_deref_mut() {
                Some(tcp) => tcp.fill(wire, message),
                None => Ok(Flow::Still),
            },
        }
    }

    fn sent(&self, bulk: &Stream) -> Option<u64> {
        match &bulk.0 {
            Carrier::Shm(bulk) => self.shm.sent(bulk),
            Carrier::Tcp(wire) => Some(self.tcp.as_ref().map_or(0, |tcp| tcp.sent(wire))),
        }
    }

    fn move_to(&mut self, to: Peer, bulk: &mut Stream, message: &Views) -> Result<bool, Fault> {
        match &mut bulk.0 {
            Carrier::Shm(bulk) => self.shm.move_to(to, bulk, message),
            Carrier::Tcp(wire) => match self.tcp.as_deref_mut() {
                Some(tcp) => tcp.move_to(wire, message),
                None => Ok(true),
            },
        }
    }

    fn drain(
        &mut self,
        from: Peer,
        bulk: &mut Stream,
        into: &Views,
        total: u64,
    ) -> Result<Flow, Fault> {
        match &mut bulk.0 {
            Carrier::Shm(bulk) => self.shm.drain(from, bulk, into, total),
            Carrier::Tcp(wire) => match self.tcp.as_deref_mut() {
                Some(tcp) => tcp.drain(wire, into, total),
                None => Ok(Flow::Still),
            },
        }
    }

    fn abandon(&mut self, bulk: Stream) {
        match (bulk.0, self.tcp.as_deref_mut()) {
            (Carrier::Shm(bulk), _) => self.shm.abandon(bulk),
            (Carrier::Tcp(wire), Some(tcp)) => tcp.abandon(wire),
            (Carrier::Tcp(_), None) => {}
        }
    }

    fn reclaim(&mut self, bulk: Stream) {
        match (bulk.0, self.tcp.as_deref_mut()) {
            (Carrier::Shm(bulk), _) => self.shm.reclaim(bulk),
            (Carrier::Tcp(wire), Some(tcp)) => tcp.reclaim(wire),
            (Carrier::Tcp(_), None) => {}
        }
    }

    fn retract(&mut self, to: Peer, route: &Route) {
        match self.tcp_to(to) {
            Ok(Some(tcp)) => tcp.retract(to, route),
            _ => self.shm.retract(to, route),
        }
    }

    fn lend(&mut self, len: usize) -> Result<(u64, Views), Fault> {
        self.shm.lend(len)
    }

    fn loan_came(&mut self, peer: Peer, place: u64) -> Result<(), Fault> {
        self.shm.loan_came(peer, place)
    }

    fn borrowed(&mut self, peer: Peer, place: u64, len: u64) -> Result<Views, Fault> {
        if !self.shm.shares_memory(peer) {
            return Err(Fault::Corrupt {
                peer,
                what: "a loan came from another host",
            });
        }
        self.shm.borrowed(peer, place, len)
    }

    fn loan_at(&self, address: usize) -> Option<(u64, usize)> {
        self.shm.loan_at(address)
    }

    fn give_back(&mut self, place: u64) {
        self.shm.give_back(place);
    }

    fn world_collective_buffer(&mut self) -> Option<CollectiveBuffer> {
        self.shm.world_collective_buffer()
    }

    fn new_collective_buffer(
        &mut self,
        members: u32,
    ) -> Result<Option<(CollectiveBuffer, u64)>, Fault> {
        self.shm.new_collective_buffer(members)
    }

    fn enter_collective_buffer(
        &mut self,
        name: u64,
        members: u32,
    ) -> Result<CollectiveBuffer, Fault> {
        self.shm.enter_collective_buffer(name, members)
    }

    fn leave_collective_buffer(&mut self, name: u64, members: u32) {
        self.shm.leave_collective_buffer(name, members);
    }

    fn collective_buffer_capacity(&self, buffer: &CollectiveBuffer) -> usize {
        self.shm.collective_buffer_capacity(buffer)
    }

    fn contribution_limit(&self, members: u32) -> usize {
        self.shm.contribution_limit(members)
    }

    #[inline(always)]
    fn contribute(
        &self,
        buffer: &CollectiveBuffer,
        index: u32,
        round: u32,
        from: &Views,
        listeners: Range<u32>,
        peer_of: &impl Fn(u32) -> Peer,
    ) {
        self.shm
            .contribute(buffer, index, round, from, listeners, peer_of);
    }

    #[inline(always)]
    fn contributed(&self, buffer: &CollectiveBuffer, index: u32, round: u32) -> bool {
        self.shm.contributed(buffer, index, round)
    }

    fn contributed_round(&self, buffer: &CollectiveBuffer, index: u32, round: u32) -> u32 {
        self.shm.contributed_round(buffer, index, round)
    }

    #[inline(always)]
    fn collect(&self, buffer: &CollectiveBuffer, index: u32, round: u32, part: Part, into: &Views) {
        self.shm.collect(buffer, index, round, part, into);
    }

    fn await_contribution(
        &self,
        buffer: &CollectiveBuffer,
        index: u32,
        target: Option<u32>,
    ) -> bool {
        self.shm.await_contribution(buffer, index, target)
    }
}

impl Drop for Paths {
    fn drop(&mut self) {
        if let Some(tcp) = &mut self.tcp {
            tcp.close();
        }
    }
}
