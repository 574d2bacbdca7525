//! Shortages: a host lacks something for a connection, such as a descriptor. No network is to blame, and no peer.
//!
//! *Who calls* and has nothing under way to the peer yet fails the call that needs the connection: nothing was sent, and the
//! call may be made again. If something is under way, as after a connection that broke, it is tried again; what is
//! missing may come back.
//!
//! *Who is called* lets the callers wait while nothing is to be had ([`regatta_connection::listener`]). They notice nothing, because their
//! hosts are answered. If it calls somebody itself whose own call would stand, it gives that up for the descriptor: after a connection that broke each
//! of the two has that of the old one alone, and one has to accept.
//!
//! After [`SHORTAGE_TIMEOUT`] of either, the two give each other up, as tasks do that cannot reach each other: calls that wait for
//! each other end with an error that says what is missing, and where.

use std::io;

use regatta_connection::dial;
use regatta_connection::listener::SHORTAGE_TIMEOUT;
use regatta_engine::{Fault, Peer, Shortage};
use rustix::io::Errno;

use super::Tcp;

impl Tcp {
    /// No call to a peer could be begun. An error: this host lacks something for it, and nothing is under way.
    #[cold]
    pub(super) fn not_called(&mut self, peer: Peer, error: &io::Error) -> Result<(), Fault> {
        let Some(missing) = dial::shortage(error) else {
            self.retreat(peer);
            return Ok(());
        };
        let sentence = || {
            format!(
                "there can be no connection to task {peer} on another host ({error}), because {missing}"
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

    /// A peer has called, and this task has no descriptor for a connection with it: it is told so.
    #[cold]
    pub(super) fn refuse(&mut self, peer: Peer, errno: Errno) {
        if let Ok(link) = self.link_to(peer)
            && !link.stall.refuses()
            // Its connection before gives way to this one.
            && !link.is_open()
        {
            link.stall.refuse();
            let error = io::Error::from(errno);
            let missing = dial::shortage(&error).unwrap_or("something is missing");
            self.give_up_for(
                peer,
                format!(
                    "the call of task {peer} on another host could not be accepted for {} s ({error}), because {missing}",
                    SHORTAGE_TIMEOUT.as_secs()
                ),
            );
        }
    }

    /// Looks whether a peer has just said that it has no descriptor for this task.
    pub(super) fn note_refusal(&mut self, peer: Peer) {
        if let Some(link) = self.link(peer)
            && link.stall.take_refusal()
        {
            let at = self.job.address(peer).map(|address| address.ip());
            let at = at.map_or(String::new(), |ip| format!(" at {ip}"));
            self.give_up_for(
                peer,
                format!(
                    "task {peer}{at} cannot accept the connection of this task, because that process, or its host, has no file descriptor or memory left: have it close files, or raise the limit there (ulimit -n)"
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
