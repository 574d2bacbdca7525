//! The channel of an agent whose launcher's host is lost, while the next launcher claims it.
//!
//! The daemon of the agent's host keeps its end of the channel. A launcher claims it there. Only one launcher at a time
//! has it. Then the launcher either announces that it leads, after which the agent obeys it, or gives the
//! claim back. A claim that ends without either is given back, too.

use regatta_job::failover::{Candidate, FailoverPlan};
use regatta_wire::session::{ChannelMessage, FromJob};

use crate::channel::remote::Remote;

/// State of a claim.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// There is no answer yet.
    Open,
    /// The channel is this launcher's. The agent names these runs of hosts as those that may lead.
    Granted(Vec<String>),
    /// The claim has ended. Perhaps the agent does not know yet that its owner is lost, or another launcher has the
    /// channel.
    Ended,
}

/// Claims the channel of the agent on a host.
pub(crate) fn open(plan: &FailoverPlan, candidate: &Candidate) -> Remote {
    let (host, job) = (candidate.name.clone(), plan.job.clone());
    let request = FromJob::Claim { host, job };
    Remote::by_daemons(&plan.machine, candidate.number, &candidate.name, &request)
}

/// Reads the daemon's answer and returns the state of a claim.
pub(crate) fn read(remote: &mut Remote) -> Claim {
    remote.read();
    if remote.link.is_ended() {
        return Claim::Ended;
    }
    let channel = remote.link.daemons();
    let successors = channel.and_then(|channel| channel.successors());
    successors.map_or(Claim::Open, |runs| Claim::Granted(runs.to_vec()))
}

/// Checks a granted claim until an announcement is made. Returns false if it has ended.
pub(crate) fn keep(remote: &mut Remote) -> bool {
    remote.read();
    !remote.link.is_ended()
}

/// Announces to the agent that the host of run `own` leads. Orders and reports follow.
pub(crate) fn lead(remote: &mut Remote, own: &str) {
    let run = own.to_owned();
    say(remote, &ChannelMessage::Lead { run });
}

/// Gives a claim back, because the host of run `own` will not lead. Agents whose order has this host wait for that. The
/// channel ends when the message is sent.
pub(crate) fn give_up(remote: &mut Remote, own: &str) {
    let run = own.to_owned();
    say(remote, &ChannelMessage::GiveUp { run });
    remote.link.close();
}

fn say(remote: &mut Remote, word: &ChannelMessage) {
    if let Some(channel) = remote.link.daemons() {
        channel.send(word);
    }
}
