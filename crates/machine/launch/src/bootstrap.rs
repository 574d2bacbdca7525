//! Bootstrap of daemons on other hosts, for `regatta up` and `regatta add`.
//!
//! The hosts are brought together like those of a job (`gather`). Then each has a *starter*, the program of
//! [`crate::bootstrap_peer`]. It receives messages and answers in the caller's own format. While the channels exist, a
//! starter can undo what it has done. What happens to a daemon afterwards is not known here.

pub mod peer;

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use regatta_job::hosts::Admission;
use regatta_program::Refusal;

use crate::channel::keeper::Channels;
use crate::hosts::gather::{self, Gathering};
use crate::hosts::rsh::Role;
use crate::hosts::{self, Host};
use crate::plan::Across;
use crate::supervise::owner::{self, Owner};
use crate::system::signals::Signals;
use regatta_job::hosts::{Choice, Interface};

/// Hosts that are to have a daemon, each with its channel.
pub struct Bootstrap<'a> {
    gathering: Gathering<'a>,
}

pub use crate::hosts::gather::Outcome;

/// Opens channels to the hosts, calls `work`, and returns its result with the channels. This host takes part under the
/// number after the last. If `own_address` is given, it is this host's only address.
///
/// For programs with one thread: signals that would end the process are caught and handled while waiting.
pub fn with<R>(
    across: &Across,
    own_name: &str,
    own_address: Option<IpAddr>,
    work: impl FnOnce(&mut Bootstrap<'_>) -> Result<R, Refusal>,
) -> Result<(R, Channels), Refusal> {
    hosts::distinct(&across.hosts).map_err(Refusal::usage)?;
    let here = across.hosts.len() as u32;
    let mut across = across.clone();
    across.hosts.push(Host {
        name: own_name.to_owned(),
        slots: None,
        processors: None,
    });
    let signals = Signals::catch()?;
    let mut owner = Owner {
        leash: None,
        group: crate::sys::process_group(),
    };
    let part = (Role::Starter, Admission::survey(across.connect));
    let here = Some((here, own_address));
    let gathering = Gathering::open(&across, part, here, &signals, &mut owner)?;
    let mut bootstrap = Bootstrap { gathering };
    // If it fails, dropping the bootstrap closes the channels.
    let done = work(&mut bootstrap)?;
    let remotes = bootstrap.gathering.take();
    Ok((done, Channels { remotes }))
}

impl Bootstrap<'_> {
    /// Waits until each host has a starter. Returns the outcomes, and notes for the user.
    pub fn greet(&mut self) -> (Vec<Outcome<()>>, Vec<String>) {
        let mut outcomes = self.gathering.settle();
        if outcomes.iter().all(|(_, outcome)| outcome.is_ok())
            && let Err(refusal) = self.gathering.check_distinct()
        {
            outcomes.extend(outcomes.first().map(|(number, _)| (*number, Err(refusal))));
        }
        (outcomes, std::mem::take(&mut self.gathering.notes))
    }

    /// Returns for each host, this one included, the first address at which the others reach it.
    pub fn addresses(&mut self) -> Result<Vec<Outcome<IpAddr>>, Refusal> {
        self.gathering.find_addresses()
    }

    /// Sends a message to a host's starter.
    pub fn send(&mut self, number: u32, bytes: Vec<u8>) {
        self.gathering.say(number, bytes);
    }

    /// Waits for an answer of every starter.
    pub fn receive_all(&mut self) -> Vec<Outcome<Vec<u8>>> {
        self.gathering.answers()
    }

    /// Returns a descriptor that is readable when a signal has arrived or a child has ended.
    pub fn signals(&self) -> BorrowedFd<'_> {
        self.gathering.signals.as_fd()
    }

    /// Returns whether a signal that ends a command has arrived since the last call.
    pub fn is_asked_to_end(&mut self) -> bool {
        let (arrived, lives) = self.gathering.owner.wishes(self.gathering.signals);
        !lives || arrived.iter().any(|one| owner::is_end(one.signal))
    }
}

/// Returns the addresses at which this host may be reached, the likeliest first.
pub fn own_addresses(choice: Option<&Choice>) -> Vec<IpAddr> {
    let all: Vec<Interface> = crate::hosts::reach::candidates(None);
    crate::hosts::reach::chosen(&all, choice)
}

/// Returns whether a name means this host.
pub fn is_here(name: &str) -> bool {
    gather::is_here(name)
}
