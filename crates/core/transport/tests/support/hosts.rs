//! Tasks of one job on different hosts, all in this process.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use regatta_segment::job::{Job, JoinToken};
use regatta_segment::place::{Key, Places};
use regatta_transport::paths::Paths;

/// Two hosts with their tables.
pub struct Hosts {
    pub jobs: [Arc<Job>; 2],
    pub listeners: [TcpListener; 2],
}

impl Hosts {
    /// Makes two hosts with a task each. `seen` maps a listener's address to the one that the other tasks use for it.
    pub fn new(
        trusted: bool,
        mut key: [u8; 32],
        mut seen: impl FnMut(SocketAddr) -> SocketAddr,
    ) -> Hosts {
        let listeners = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = listeners
            .each_ref()
            .map(|listener| seen(listener.local_addr().unwrap()));
        let key = Key::taken(&mut key);
        let jobs = [0, 1].map(|here| {
            let places = Places {
                here,
                host_of: vec![0, 1],
                key: key.clone(),
                trusted,
                most: regatta_segment::job::MAX_TASKS,
            };
            let job = Job::create_across(&places).unwrap();
            for (rank, address) in (0..).zip(addresses) {
                job.set_address(rank, address);
            }
            Arc::new(job)
        });
        Hosts { jobs, listeners }
    }

    /// Returns the transport of a task.
    pub fn join(&self, rank: u32) -> Paths {
        let listener = self.listeners[rank as usize].try_clone().unwrap();
        self.join_at(rank, Some(OwnedFd::from(listener)))
    }

    /// Returns the transport of a task to which tasks of other hosts connect at `listener`.
    pub fn join_at(&self, rank: u32, listener: Option<OwnedFd>) -> Paths {
        let fd = self.jobs[rank as usize].fd().try_clone_to_owned().unwrap();
        let token = JoinToken::handed(rank, 2);
        let job = Arc::new(Job::join(fd, token).unwrap());
        Paths::new(job, rank, listener).unwrap()
    }
}
