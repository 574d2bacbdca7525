//! Tasks that no host of the job has started: they came by the join socket of a resident job, or one of them has
//! started the launcher.

use std::os::fd::OwnedFd;

use super::Supervisor;
use super::growing::Growing;
use crate::channel::messages::Report;
use crate::resident::join_socket::JoinSocket;

/// The beginning of a resident job: the process to notify when others may join, and the requests that wait for it.
pub(super) struct Gate {
    /// A byte is written here once processes may join. Then it is closed.
    ready: Option<OwnedFd>,
    /// Requests to join that came earlier, with their hosts.
    early: Vec<(u32, Report)>,
}

impl Gate {
    pub(super) fn new(ready: Option<OwnedFd>) -> Self {
        Self {
            ready,
            early: Vec::new(),
        }
    }

    /// Keeps a host's request until processes may join.
    pub(super) fn keep(&mut self, host: u32, request: Report) {
        self.early.push((host, request));
    }

    /// Lets processes join from now on. Returns the requests that have waited for it.
    fn open(&mut self) -> Vec<(u32, Report)> {
        if let Some(ready) = self.ready.take() {
            // The process that started the job may be gone.
            let _ = rustix::io::write(ready, &[1]);
        }
        std::mem::take(&mut self.early)
    }
}

impl Supervisor<'_> {
    /// Returns whether processes may join. They may once the hosts that the job begins with are ready.
    pub(super) fn is_open(&self) -> bool {
        !self.growing.as_ref().is_some_and(Growing::is_gathering)
    }

    /// Handles the processes that have requested to join.
    pub(super) fn handle_join_socket(&mut self) {
        if !self.is_open() {
            return;
        }
        for (host, request) in self.gate.open() {
            // An early request is never a reason to give a host up.
            let _ = self.handle_report(host, request);
        }
        for arrival in self.worker.callers() {
            if let Some(arrival) = self.claimed(arrival) {
                self.worker.let_wait(arrival);
            }
        }
        let join_socket = self.worker.join_socket.as_mut();
        if let Some(mishap) = join_socket.and_then(JoinSocket::take_mishap) {
            self.streams.report(&mishap);
        }
    }
}
