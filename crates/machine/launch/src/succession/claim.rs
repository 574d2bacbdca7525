//! The channel of an agent whose launcher's host is lost, on its way to the next launcher.
//!
//! The daemon of the agent's host keeps its end of the channel. A launcher claims it there; one launcher at a time has it. The claim is
//! followed by one of two words: that this launcher leads, which the agent answers and from then on obeys, or that it gives the claim back.
//! A claim that ends without a word is given back, too.

use std::time::Instant;

use regatta_job::failover::Candidate;
use regatta_wire::Malformed;

use super::{GAVE_UP, LEAD, OWNER_LOST, is_named};
use crate::plan::Across;
use crate::refusal::Refusal;
use crate::remote::Remote;
use crate::rsh;
use crate::signals::Signals;

/// State of a claim.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It has not been answered.
    Open,
    /// The channel is this launcher's.
    Granted {
        /// The agent names this host among those that may lead.
        named: bool,
    },
    /// It has ended: the agent does not know yet, perhaps, that its owner is lost, or another launcher has it.
    Ended,
    /// The other end says nonsense.
    Malformed,
}

/// Claims the channel of the agent on a host.
pub(crate) fn open(
    across: &Across,
    candidate: &Candidate,
    signals: &Signals,
) -> Result<Remote, Refusal> {
    let word = |word: &String| match word.as_str() {
        "--lasting" => "--inherit".to_owned(),
        _ => word.clone(),
    };
    let words = across.rsh.as_ref();
    let across = Across {
        rsh: words.map(|words| words.iter().map(word).collect()),
        ..across.clone()
    };
    Remote::open(&across, candidate.number, &candidate.name, signals)
}

/// Reads what has become of a claim of the host of this run.
pub(crate) fn read(remote: &mut Remote, own: &str) -> Claim {
    while remote.read() {}
    match remote.link.line(OWNER_LOST) {
        Ok(Some(line)) => Claim::Granted {
            named: is_named(&line, own),
        },
        Ok(None) if remote.link.is_ended() => Claim::Ended,
        Ok(None) => Claim::Open,
        Err(_) => Claim::Malformed,
    }
}

/// Keeps a claim that was granted, as long as nothing else is said. False: it has ended.
pub(crate) fn keep(remote: &mut Remote) -> bool {
    // Its agent repeats that its owner is lost.
    while remote.read() {
        remote.link.forget();
    }
    !remote.link.is_ended()
}

/// Tells the agent that the host of this run leads.
pub(crate) fn lead(remote: &mut Remote, own: &str) {
    let word = format!("\n{LEAD} {} {own}\n", rsh::identity());
    remote.link.send_raw(word.as_bytes());
}

/// Whether the agent has answered that it follows; orders and reports are next.
pub(crate) fn is_followed(remote: &mut Remote) -> Result<bool, Malformed> {
    let word = format!("{} {}", rsh::READY, rsh::identity());
    Ok(remote.link.line(&word)?.is_some())
}

/// Gives claims back, because the host of this run will not lead: others wait for it if they have an order in which it is. Returns when that
/// is said, or the time is over.
pub(crate) fn give_back(mut claims: Vec<Remote>, own: &str, until: Instant) {
    let word = format!("\n{GAVE_UP} {own}\n");
    for remote in &mut claims {
        remote.link.send_raw(word.as_bytes());
        // What carries it takes what has been written along before it ends.
        remote.link.close();
    }
    for remote in &mut claims {
        remote.await_end(until);
    }
}
