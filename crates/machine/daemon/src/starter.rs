//! The starter of a daemon on another host, at the far end of a shell: it starts the daemon, and relays the messages.
//!
//! It ends when the daemon has been told to stay; if it ends earlier, the daemon leaves. The starter of a tied daemon
//! lives as long as the daemon, even if the channel ends.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use regatta_launch::bootstrap_peer::{BootstrapPeer, Word};
use regatta_launch::{Refusal, limits};

use crate::ask::{self, Birth, Reply};
use crate::birth;
use crate::talk::Talk;

/// Serves a bootstrap on standard input and output. `temporary` says that this program is a copy made for that.
pub fn run(temporary: bool) -> Result<(), Refusal> {
    let mut peer = BootstrapPeer::open(temporary)?;
    let mut started = Started::default();
    while !started.stays {
        match peer.next(None) {
            Word::Nothing => {}
            Word::End => return Ok(()),
            Word::Charge(bytes) => match obey(&bytes, &mut started, &mut peer) {
                Ok(reply) => peer.answer(ask::encode(&reply)),
                Err(refusal) => peer.refuse(&refusal),
            },
        }
    }
    if let Some(mut daemon) = started.daemon {
        birth::await_end(&mut daemon);
    }
    Ok(())
}

/// A started daemon.
#[derive(Default)]
struct Started {
    daemon: Option<Talk>,
    /// Whether the daemon is tied to this process.
    tied: bool,
    /// Whether this process must stay: the daemon is tied and was told to stay.
    stays: bool,
}

fn obey(bytes: &[u8], started: &mut Started, peer: &mut BootstrapPeer) -> Result<Reply, Refusal> {
    match (ask::decode::<Birth>(bytes)?, started.daemon.as_mut()) {
        (Birth::Begin(charge), None) => {
            started.tied = charge.tied;
            // The bootstrap may end while the daemon joins: then both ends of the talk are dropped, and the daemon
            // leaves.
            let failed = |error| Refusal::of_regatta(format!("the starter cannot wait: {error}"));
            let (done, ends) = UnixStream::pair().map_err(failed)?;
            let starting = std::thread::Builder::new().spawn(move || {
                let started = birth::start(&charge);
                drop(ends);
                started
            });
            let starting = starting
                .map_err(|error| limits::no_process("the daemon cannot be started", &error))?;
            while !starting.is_finished() {
                if peer.next(Some(done.as_fd())) == Word::End {
                    return Err(Refusal::of_regatta("the channel has ended"));
                }
            }
            let (daemon, note) = starting.join().unwrap_or_else(|_| {
                Err(Refusal::of_regatta("the starter of the daemon has failed"))
            })?;
            started.daemon = Some(daemon);
            Ok(note.map_or(Reply::Done, Reply::Note))
        }
        (Birth::Keep, Some(talk)) => {
            birth::keep(talk)?;
            started.stays = started.tied;
            Ok(Reply::Done)
        }
        _ => Err(Refusal::of_regatta(
            "the starter of a daemon received an unexpected message",
        )),
    }
}
