//! Shortages: a host lacks a resource for a connection, such as a descriptor. Neither the network nor a peer is at
//! fault.
//!
//! *The caller:* if nothing is in transit to the peer yet, the call that needs the connection fails. Nothing was
//! sent, so the call may be repeated. If something is in transit, as after a connection broke, the connection is
//! tried again, since the resource may become available.
//!
//! *The called task* lets the callers wait while it has no resource ([`regatta_connection::listener`]). They notice
//! nothing, because their hosts' kernels accept the connections. If the task is itself calling a peer whose call
//! would be the one to be kept, it gives its call up for the descriptor: after a connection broke, each of the two
//! tasks only has the descriptor of that connection, and one has to accept.
//!
//! After [`SHORTAGE_TIMEOUT`] in either case, the two tasks give each other up, as tasks do that cannot reach each
//! other. Calls that wait for the other task fail with an error that says what is missing, and where.

use std::io;

use regatta_connection::dial;
use regatta_connection::listener::SHORTAGE_TIMEOUT;
use regatta_engine::{Fault, Peer, Shortage};
use rustix::io::Errno;

use super::Tcp;

impl Tcp {
    /// Handles a call to a peer that could not be started. Fails if this host lacks a resource for it and nothing is
    /// in transit to the peer.
    #[cold]
    pub(super) fn not_called(&mut self, peer: Peer, error: &io::Error) -> Result<(), Fault> {
        let Some(missing) = dial::shortage(error) else {
            self.retreat(peer);
            return Ok(());
        };
        let sentence = || {
            format!(
                "no connection to task {peer} on another host is possible ({error}), because {missing}"
            )
        };
        let Some(link) = self.link(peer) else {
            return Ok(());
        };
        if !link.needs_connection() {
            return Err(Fault::System(sentence()));
        }
        let since = link.stall.short_since();
        self.retreat(peer);
        if since.elapsed() >= SHORTAGE_TIMEOUT {
            let sentence = format!("{} (for {} s)", sentence(), SHORTAGE_TIMEOUT.as_secs());
            self.give_up_for(peer, sentence);
        }
        Ok(())
    }

    /// Refuses a peer that has connected, because this task has no descriptor for the connection. The peer is
    /// notified.
    #[cold]
    pub(super) fn refuse(&mut self, peer: Peer, errno: Errno) {
        if let Ok(link) = self.link_to(peer)
            && !link.stall.refuses()
            // If the previous connection is open, it gives way to this one.
            && !link.is_open()
        {
            link.stall.refuse();
            let error = io::Error::from(errno);
            let missing = dial::shortage(&error).unwrap_or("a resource is missing");
            self.give_up_for(
                peer,
                format!(
                    "the connection of task {peer} on another host could not be accepted for {} s ({error}), because {missing}",
                    SHORTAGE_TIMEOUT.as_secs()
                ),
            );
        }
    }

    /// Handles a refusal, if the peer has just sent one because it has no descriptor for this task.
    pub(super) fn note_refusal(&mut self, peer: Peer) {
        if let Some(link) = self.link(peer)
            && link.stall.take_refusal()
        {
            let at = self.job.address(peer).map(|address| address.ip());
            let at = at.map_or(String::new(), |ip| format!(" at {ip}"));
            self.give_up_for(
                peer,
                format!(
                    "task {peer}{at} cannot accept the connection of this task, because that process, or its host, has no free file descriptor or memory: close files there, or raise the limit there (ulimit -n)"
                ),
            );
        }
    }

    fn give_up_for(&mut self, peer: Peer, sentence: String) {
        if self.shortages.iter().all(|shortage| shortage.peer != peer) {
            self.shortages.push(Shortage { peer, sentence });
        }
    }
}
