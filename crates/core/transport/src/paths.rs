//! The transport a process uses: shared memory to the tasks of its own host, connections to all others.
//!
//! A [`Composite`] makes one transport of two, a near one and a far one, and is near for a further one. So [`Paths`] is a list, in the
//! order in which its transports are asked whether they lead to a peer. Every call is resolved when this is compiled.
//!
//! Messages between tasks of one host pay nothing for the others. A look at the far transport is a system call: it is
//! paid by receives from tasks that it leads to, and by one in [`POLL_INTERVAL`] of the looks for anything at all. Each trait of the
//! engine's contract has its file in the folder beside this one.

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
mod parts;
mod peers;
mod streams;
mod upkeep;

pub use parts::{Far, Near};
pub use streams::Stream;

/// Number of looks for messages from anybody for each one that polls the far transport.
const POLL_INTERVAL: u32 = 16;

/// The transports of a process: shared memory on its own host, connections to all others.
pub type Paths = Composite<Shm, Tcp>;

/// Two transports as one: the near one to peers that it leads to, the far one to all others.
#[derive(Debug)]
pub struct Composite<N, F> {
    near: N,
    /// `None`: this process was given nothing by which it could reach others.
    far: Option<Box<F>>,
    looks: u32,
    /// Losses that the far transport had found at its last poll.
    far_losses: u32,
}

impl Paths {
    /// Makes the transport of task `me` of a job it has joined. Others call it at `listener`, if the job runs on several
    /// hosts.
    pub fn new(job: Arc<Job>, me: Peer, listener: Option<OwnedFd>) -> io::Result<Paths> {
        let tcp = listener.map(|listener| Tcp::new(job.clone(), me, listener));
        Ok(Composite::of(Shm::new(job, me), tcp.transpose()?))
    }

    /// Encrypted connections made from now on change the keys of what this task sends after this many records, instead of the
    /// most that a key may seal. At least some hundred records have one key, whatever is asked for.
    pub fn change_keys_after(&mut self, records: u64) {
        if let Some(tcp) = &mut self.far {
            tcp.change_keys_after(records);
        }
    }

    /// Allows small messages to other hosts to go past TCP/IP, where that can be.
    pub fn want_bypasses(&mut self) {
        if let Some(tcp) = &mut self.far {
            tcp.want_bypasses();
        }
    }

    /// Has a thread of the transport call `go_on` when this task leaves words behind for other hosts and stays away. `go_on`
    /// takes the task's lock, and calls [`Upkeep::go_on`](regatta_engine::Upkeep::go_on). The transport must not be dropped under that lock.
    pub fn finish_by(&mut self, go_on: fn()) {
        if let Some(tcp) = &mut self.far {
            tcp.go_on = Some(go_on);
        }
    }
}

impl<N: Near, F: Far> Composite<N, F> {
    /// Joins two transports of one task.
    pub fn of(near: N, far: Option<F>) -> Self {
        Composite {
            near,
            far: far.map(Box::new),
            looks: 0,
            far_losses: 0,
        }
    }

    /// See [`Shm::choose_footprints`].
    pub fn choose_footprints(&mut self, policy: Policy) {
        self.near.shm_mut().choose_footprints(policy);
    }

    /// Returns the job.
    pub fn job(&self) -> &Job {
        self.near.shm().job()
    }

    /// Returns how fences are paid for here.
    pub fn fencing(&self) -> Fencing {
        self.near.shm().fencing()
    }

    /// Returns the far transport, if it is the one that leads to a peer.
    #[inline]
    fn far_to(&mut self, peer: Peer) -> Result<Option<&mut F>, Fault> {
        if self.near.leads_to(peer) {
            return Ok(None);
        }
        match self.far.as_deref_mut() {
            Some(far) => Ok(Some(far)),
            None => Err(Fault::Memory(format!(
                "task {peer} is on another host, and this task was given no socket to reach it"
            ))),
        }
    }
}
