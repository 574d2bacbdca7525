//! Tasks that no host of the job has started: they came by a join socket of a job that stays, or the launcher was called by one.

use std::os::fd::OwnedFd;

use super::Supervisor;
use super::growing::Growing;
use crate::channel::messages::Report;
use crate::resident::join_socket::JoinSocket;

/// The beginning of a job that stays: who has to be told of it, and what waits for it.
pub(super) struct Gate {
    /// A byte is written here, then it is closed, once processes may join.
    ready: Option<OwnedFd>,
    /// Requests to join that came before that, and the hosts of these processes.
    early: Vec<(u32, Report)>,
}

impl Gate {
    pub(super) fn new(ready: Option<OwnedFd>) -> Self {
        Self {
            ready,
            early: Vec::new(),
        }
    }

    /// Keeps a request of a host until processes may join.
    pub(super) fn keep(&mut self, host: u32, request: Report) {
        self.early.push((host, request));
    }

    /// Processes may join from now on. Returns the requests that have waited for it.
    fn open(&mut self) -> Vec<(u32, Report)> {
        if let Some(ready) = self.ready.take() {
            // The process that began the job may be gone.
            let _ = rustix::io::write(ready, &[1]);
        }
        std::mem::take(&mut self.early)
    }
}

impl Supervisor<'_> {
    /// May somebody be let in? The first to come finds the hosts that were there before.
    pub(super) fn is_open(&self) -> bool {
        !self.growing.as_ref().is_some_and(Growing::is_gathering)
    }

    /// Lets in the processes that have asked to join.
    pub(super) fn handle_join_socket(&mut self) {
        if !self.is_open() {
            return;
        }
        for (host, request) in self.gate.open() {
            // Nothing that is early gives a host up.
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
