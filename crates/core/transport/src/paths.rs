//! The transport a process uses: shared memory to the tasks of its own host, connections to all others.
//!
//! A task that has a ring is on this host; whoever has none is looked up in the job's table. So messages between
//! tasks of one host pay nothing for the others. A look at the sockets is a system call: it is
//! paid by receives from tasks on other hosts, and by one in [`SOCKETS`] of the looks for anything at all. Each trait of the engine's contract has its file in the
//! folder beside this one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use regatta_engine::{Fault, Peer};
use regatta_memory::bell::Fencing;

use crate::footprint::Policy;
use crate::shm::Shm;
use crate::tcp::Tcp;
use crate::tcp::deadlock_probe::Heard;
pub use crate::tcp::shortage::Shortage;
pub use crate::tcp::stall::Reach;
use regatta_segment::job::Job;

mod collective_buffers;
mod frames;
mod loans;
mod peers;
mod streams;

use frames::SOCKETS;
pub use streams::Stream;

/// The transport of a process: shared memory on its own host, connections to all others.
#[derive(Debug)]
pub struct Paths {
    shm: Shm,
    tcp: Option<Box<Tcp>>,
    looks: u32,
    /// Peers on other hosts found gone.
    ended: u32,
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

    /// Small messages to other hosts may go past TCP/IP, where that can be.
    pub fn want_bypasses(&mut self) {
        if let Some(tcp) = &mut self.tcp {
            tcp.want_bypasses();
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

    /// A large message from this peer waits for a receive here, while one goes there that nobody receives meanwhile: the next ones to it take as much
    /// room as there may be.
    pub fn note_crossing(&mut self, to: Peer) {
        self.shm.note_crossing(to);
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

    /// Sees to it that what this task has sent arrives; `leaves`: it sends nothing more. False: not all has arrived yet, look again.
    pub fn deliver(&mut self, leaves: bool) -> bool {
        self.tcp.as_mut().is_none_or(|tcp| tcp.deliver(leaves))
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

    /// Is there something for [`Paths::take_shortages`]?
    #[inline]
    pub fn has_shortages(&self) -> bool {
        self.tcp.as_ref().is_some_and(|tcp| tcp.has_shortages())
    }

    /// Peers that the caller is to give up ([`Paths::give_up`]), since a host lacks something for a connection.
    pub fn take_shortages(&mut self) -> Vec<Shortage> {
        let tcp = self.tcp.as_mut();
        tcp.map_or_else(Vec::new, |tcp| tcp.take_shortages())
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

impl Drop for Paths {
    fn drop(&mut self) {
        if let Some(tcp) = &mut self.tcp {
            tcp.close();
        }
    }
}
