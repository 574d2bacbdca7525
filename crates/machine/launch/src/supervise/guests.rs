//! Tasks that no host of the job has started: they came by a join socket of a job that stays, or the launcher was called by one.

use super::Supervisor;
use super::growing::Growing;
use crate::join_socket::JoinSocket;

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
        if let Some(ready) = self.ready.take() {
            // The process that began the job may be gone.
            let _ = rustix::io::write(ready, &[1]);
        }
        for (host, request) in std::mem::take(&mut self.early) {
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
            self.output.report(&mishap);
        }
    }
}
