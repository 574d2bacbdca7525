//! Bootstrap of daemons on other hosts, for `regatta up` and `regatta add`.
//!
//! The hosts are brought together as those of a job are (`gather`); then each has a *starter*, the program of
//! [`crate::bootstrap_peer`], and is told things and answers in words that are not ours. As long as the channels stand a starter
//! can take back what it has done; what becomes of a daemon afterwards is not known here.

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

/// Opens channels to the hosts, lets `work` do what is to be done, and hands the channels back. This host takes part under the number
/// after the last; when it has an address already, under that one only.
///
/// For programs with one thread: signals that would end the process are handled by the waiting instead.
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
    // If it fails the channels end with the bootstrap.
    let done = work(&mut bootstrap)?;
    let remotes = bootstrap.gathering.take();
    Ok((done, Channels { remotes }))
}

impl Bootstrap<'_> {
    /// Waits until each host has a starter. Things worth telling the user come with the outcomes.
    pub fn greet(&mut self) -> (Vec<Outcome<()>>, Vec<String>) {
        let mut outcomes = self.gathering.settle();
        if outcomes.iter().all(|(_, outcome)| outcome.is_ok())
            && let Err(refusal) = self.gathering.check_distinct()
        {
            outcomes.extend(outcomes.first().map(|(number, _)| (*number, Err(refusal))));
        }
        (outcomes, std::mem::take(&mut self.gathering.notes))
    }

    /// Finds for each host, this one included, the first address at which the others reach it.
    pub fn addresses(&mut self) -> Result<Vec<Outcome<IpAddr>>, Refusal> {
        self.gathering.find_addresses()
    }

    /// Tells a host's starter something.
    pub fn send(&mut self, number: u32, bytes: Vec<u8>) {
        self.gathering.say(number, bytes);
    }

    /// Waits for an answer of every starter.
    pub fn receive_all(&mut self) -> Vec<Outcome<Vec<u8>>> {
        self.gathering.answers()
    }

    /// Can be read when a signal has come, or a child has ended.
    pub fn signals(&self) -> BorrowedFd<'_> {
        self.gathering.signals.as_fd()
    }

    /// Whether a signal that ends a command has come since this was last asked.
    pub fn is_asked_to_end(&mut self) -> bool {
        let (arrived, lives) = self.gathering.owner.wishes(self.gathering.signals);
        !lives || arrived.iter().any(|one| owner::is_end(one.signal))
    }
}

/// The addresses that this host may be reached at, the likeliest first, with their interfaces.
pub fn own_addresses(choice: Option<&Choice>) -> Vec<IpAddr> {
    let all: Vec<Interface> = crate::hosts::reach::candidates(None);
    crate::hosts::reach::chosen(&all, choice)
}

/// Whether a name means this host.
pub fn is_here(name: &str) -> bool {
    gather::is_here(name)
}
