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
use regatta_segment::job::Job;

mod collective_buffers;
mod frames;
mod loans;
mod peers;
mod streams;
mod upkeep;

pub use streams::Stream;

/// Of so many looks for messages from anybody, one is at the sockets.
const SOCKETS: u32 = 16;

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
    /// stays away: it is to take the task's lock, and to call [`Upkeep::go_on`](regatta_engine::Upkeep::go_on). This must not be dropped under that lock.
    pub fn finish_by(&mut self, go_on: fn()) {
        if let Some(tcp) = &mut self.tcp {
            tcp.go_on = Some(go_on);
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
