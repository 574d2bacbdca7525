//! The interface by which the nodes of a step exchange bytes before they know each other's addresses.
//!
//! Each node contributes bytes, once, and every node gets the bytes of all nodes, in the order of the nodes. Only
//! processes of this user that the launcher has started, or that can prove that they belong to this user, may read or
//! contribute: the bytes contain the job's key. Contributions to another step are not accepted.
//!
//! | launcher | exchange |
//! |---|---|
//! | Slurm | [`munge`]: the first node collects and distributes, in credentials of munge |
//!
//! A key-value store (PMI, PMIx) can implement this interface, too: put this node's bytes under the number of the node,
//! fence, get those of all nodes (`tests::Store`). Where only tasks can reach the store, the guardian lets them do it,
//! over the connections on which they wait for its answer.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use regatta_connection::dial;
use regatta_foreign::{Step, slurm};
use regatta_wire::guardian::Secret;
use ring::rand::{SecureRandom, SystemRandom};

use crate::Refusal;
use crate::callers::Bounds;

mod munge;

/// A function that returns this node's bytes, given the address of this node at which the others reach it. It is called
/// again if another address turns out to be the right one; the result of the last call counts.
pub(crate) type Give<'a> = &'a mut dyn FnMut(IpAddr) -> Result<Vec<u8>, Refusal>;

/// A way for the nodes of a step to exchange bytes.
pub(crate) trait Exchange: Sync {
    /// Returns the contributions of all nodes of the step, in the order of the nodes. On failure, it fails on every
    /// node by `until` or soon after.
    fn exchange(&self, step: &Step, until: Instant, give: Give) -> Result<Vec<Vec<u8>>, Refusal>;
}

/// The exchange of each launcher whose tasks can be on several nodes.
const EXCHANGES: [(&str, &dyn Exchange); 1] = [(slurm::NAMES.launcher, &munge::OF_SLURM)];

/// Returns the exchange for the launcher of this step.
pub(crate) fn of(step: &Step) -> Result<&'static dyn Exchange, Refusal> {
    let launcher = step.names.launcher;
    let found = EXCHANGES.iter().find(|(name, _)| *name == launcher);
    found.map(|(_, exchange)| *exchange).ok_or_else(|| {
        Refusal::new(format!(
            "{launcher} gives the nodes of a step no way to exchange data: start the program with {}",
            step.names.instead
        ))
    })
}

/// Time limit for connecting to a node, and for reading or writing one letter.
pub(crate) const LETTER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of callers held at a time in addition to the expected nodes.
const MAX_STRANGERS: usize = 64;

pub(crate) fn no_socket(error: &std::io::Error) -> Refusal {
    Refusal::new(format!(
        "no socket can be opened for the other nodes: {error}"
    ))
}

/// Connects to an address. Returns `None` if it does not answer.
pub(crate) fn connect(address: &SocketAddr) -> Result<Option<TcpStream>, Refusal> {
    match TcpStream::connect_timeout(address, LETTER_TIMEOUT) {
        Err(error) if is_shortage(&error) => Err(no_socket(&error)),
        called => Ok(called.ok()),
    }
}

/// Returns whether this host has no descriptor or no memory for a call, so that no other host is to blame. An
/// unavailable address (EADDRNOTAVAIL) may belong to a different network, when several are tried.
fn is_shortage(error: &std::io::Error) -> bool {
    error.kind() != std::io::ErrorKind::AddrNotAvailable && dial::shortage(error).is_some()
}

/// Returns random bytes.
pub(crate) fn secret() -> Result<Secret, Refusal> {
    let mut secret = Secret::default();
    SystemRandom::new()
        .fill(&mut secret)
        .map_err(|_| Refusal::new("the system cannot provide random numbers for the job's key"))?;
    Ok(secret)
}

/// Returns the limits for callers of a guardian's socket that have not proved who they are.
pub(crate) fn bounds(step: &Step) -> Bounds {
    Bounds {
        places: step.nodes.len() + MAX_STRANGERS,
        limit: LETTER_TIMEOUT,
    }
}

#[cfg(test)]
mod tests;
