//! The transport of a process: shared memory to the tasks of its own host, connections to all others.
//!
//! A [`Composite`] combines two transports, a near one and a far one, and can itself be the near part of another. So
//! [`Paths`] is a list, in the order in which its transports are asked whether they lead to a peer. Every call is
//! resolved at compile time.
//!
//! Messages between tasks of one host do not pay for the far transport. Polling the far transport is a system call.
//! Receives from tasks on other hosts make it, and one in [`POLL_INTERVAL`] polls for messages from any task. Each
//! trait of the engine's contract has its own file in the folder beside this one.

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

/// Number of polls for messages from any task, per poll of the far transport.
const POLL_INTERVAL: u32 = 16;

/// The transports of a process: shared memory on its own host, connections to all others.
pub type Paths = Composite<Shm, Tcp>;

/// Two transports as one: the near one to the peers it leads to, the far one to all others.
#[derive(Debug)]
pub struct Composite<N, F> {
    near: N,
    /// The far transport, or `None` if this process was given no socket to reach tasks on other hosts.
    far: Option<Box<F>>,
    looks: u32,
    /// Count of losses that the far transport had found at its last poll.
    far_losses: u32,
}

impl Paths {
    /// Makes the transport of task `me` of a job it has joined. Tasks on other hosts connect to it at `listener`, if
    /// the job runs on several hosts.
    pub fn new(job: Arc<Job>, me: Peer, listener: Option<OwnedFd>) -> io::Result<Paths> {
        let tcp = listener.map(|listener| Tcp::new(job.clone(), me, listener));
        Ok(Composite::of(Shm::new(job, me), tcp.transpose()?))
    }

    /// Makes encrypted connections that are opened from now on change the key for what this task sends after this
    /// many records, instead of after the maximum that a key may seal. A key is used for at least some hundred
    /// records, even if `records` is less.
    pub fn change_keys_after(&mut self, records: u64) {
        if let Some(tcp) = &mut self.far {
            tcp.change_keys_after(records);
        }
    }

    /// Allows bypasses: small messages to other hosts that do not pass through TCP/IP, where the system permits it.
    pub fn want_bypasses(&mut self) {
        if let Some(tcp) = &mut self.far {
            tcp.want_bypasses();
        }
    }

    /// Sets the function that a thread of the transport calls when this task has left messages for other hosts unsent
    /// and makes no calls. `go_on` locks the task, and calls [`Upkeep::go_on`](regatta_engine::Upkeep::go_on). The
    /// transport must not be dropped under that lock.
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

    /// Returns how the fences of bells are paid for on this host.
    pub fn fencing(&self) -> Fencing {
        self.near.shm().fencing()
    }

    /// Returns the far transport, or `None` if the near transport leads to the peer. Fails if the peer is on another
    /// host and there is no far transport.
    #[inline]
    fn far_to(&mut self, peer: Peer) -> Result<Option<&mut F>, Fault> {
        if self.near.leads_to(peer) {
            return Ok(None);
        }
        match self.far.as_deref_mut() {
            Some(far) => Ok(Some(far)),
            None => Err(Fault::Memory(format!(
                "task {peer} is on another host, and this task has no socket to reach it"
            ))),
        }
    }
}
