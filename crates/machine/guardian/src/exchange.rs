//! The contract by which the nodes of a step tell each other something before they know each other's addresses.
//!
//! Each node gives bytes, once, and all get those of all nodes, in their order. Only processes of this user that the launcher has started, or
//! that can prove they are of this user, may read or give any: the job's key is in them. What was given in another step is not taken.
//!
//! | launcher | exchange |
//! |---|---|
//! | Slurm | [`munge`]: the first node collects and answers, by letters that munge has sealed |
//!
//! A store of keys and values holds this contract too (PMI, PMIx): put what this node gives under the number of the node, fence, get those
//! of all nodes (`tests::Store`). Where only tasks can reach the store, the guardian has them do it, on the lines on which they wait for
//! their answer.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use regatta_connection::dial;
use regatta_foreign::{Step, slurm};
use regatta_wire::guardian::Secret;
use ring::rand::{SecureRandom, SystemRandom};

use crate::Refusal;
use crate::callers::Bounds;

mod munge;

/// A function that returns this node's bytes, given the address of this node at which the others reach it. It is called once more if
/// another address turns out to be right; what the last call returns counts.
pub(crate) type Give<'a> = &'a mut dyn FnMut(IpAddr) -> Result<Vec<u8>, Refusal>;

/// A way for the nodes of a step to exchange bytes.
pub(crate) trait Exchange: Sync {
    /// Returns what all nodes of the step have given, in their order, or fails on every node by `until` or soon after it.
    fn exchange(&self, step: &Step, until: Instant, give: Give) -> Result<Vec<Vec<u8>>, Refusal>;
}

/// The exchange of each launcher whose tasks can be on several nodes.
const EXCHANGES: [(&str, &dyn Exchange); 1] = [(slurm::NAMES.launcher, &munge::OF_SLURM)];

/// The way of the launcher of this step.
pub(crate) fn of(step: &Step) -> Result<&'static dyn Exchange, Refusal> {
    let launcher = step.names.launcher;
    let found = EXCHANGES.iter().find(|(name, _)| *name == launcher);
    found.map(|(_, exchange)| *exchange).ok_or_else(|| {
        Refusal::new(format!(
            "{launcher} lets the nodes of a step tell each other nothing: start the program with {}",
            step.names.instead
        ))
    })
}

/// Time limit for connecting to a node, and for reading or writing one letter.
pub(crate) const LETTER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of unexpected callers held at a time, beside the nodes that are expected.
const MAX_STRANGERS: usize = 64;

pub(crate) fn no_socket(error: &std::io::Error) -> Refusal {
    Refusal::new(format!(
        "no socket can be opened for the other nodes: {error}"
    ))
}

/// A connection to an address; none: it does not answer.
pub(crate) fn connect(address: &SocketAddr) -> Result<Option<TcpStream>, Refusal> {
    match TcpStream::connect_timeout(address, LETTER_TIMEOUT) {
        Err(error) if is_shortage(&error) => Err(no_socket(&error)),
        called => Ok(called.ok()),
    }
}

/// Whether this host has no descriptor or no memory for a call, so that nobody else is to blame. An address that is not to be had
/// (EADDRNOTAVAIL) may be one of another kind of network, of several that are tried.
fn is_shortage(error: &std::io::Error) -> bool {
    error.kind() != std::io::ErrorKind::AddrNotAvailable && dial::shortage(error).is_some()
}

/// Random bytes.
pub(crate) fn secret() -> Result<Secret, Refusal> {
    let mut secret = Secret::default();
    SystemRandom::new()
        .fill(&mut secret)
        .map_err(|_| Refusal::new("the system gives no random numbers for the job's key"))?;
    Ok(secret)
}

/// How many may call at the socket of a guardian, and for how long, before they have proved who they are.
pub(crate) fn bounds(step: &Step) -> Bounds {
    Bounds {
        places: step.nodes.len() + MAX_STRANGERS,
        limit: LETTER_TIMEOUT,
    }
}

#[cfg(test)]
mod tests;
