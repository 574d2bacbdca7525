//! The channel of an agent whose launcher's host is lost, on its way to the next launcher.
//!
//! The daemon of the agent's host keeps its end of the channel. A launcher claims it there; one launcher at a time has it. The claim is
//! followed by one of two words: that this launcher leads, which the agent answers and from then on obeys, or that it gives the claim back.
//! A claim that ends without a word is given back, too.

use regatta_job::failover::{Candidate, FailoverPlan};
use regatta_wire::session::{ChannelMessage, FromJob};

use crate::channel::remote::Remote;

/// State of a claim.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It has not been answered.
    Open,
    /// The channel is this launcher's. The agent names the hosts of these runs as those that may lead.
    Granted(Vec<String>),
    /// It has ended: the agent does not know yet, perhaps, that its owner is lost, or another launcher has it.
    Ended,
}

/// Claims the channel of the agent on a host.
pub(crate) fn open(plan: &FailoverPlan, candidate: &Candidate) -> Remote {
    let (host, job) = (candidate.name.clone(), plan.job.clone());
    let request = FromJob::Claim { host, job };
    Remote::by_daemons(&plan.machine, candidate.number, &candidate.name, &request)
}

/// Reads what has become of a claim.
pub(crate) fn read(remote: &mut Remote) -> Claim {
    remote.read();
    if remote.link.is_ended() {
        return Claim::Ended;
    }
    let channel = remote.link.daemons();
    let successors = channel.and_then(|channel| channel.successors());
    successors.map_or(Claim::Open, |runs| Claim::Granted(runs.to_vec()))
}

/// Keeps a claim that was granted, as long as nothing else is said. False: it has ended.
pub(crate) fn keep(remote: &mut Remote) -> bool {
    remote.read();
    !remote.link.is_ended()
}

/// Tells the agent that the host of this run leads. Orders and reports are next.
pub(crate) fn lead(remote: &mut Remote, own: &str) {
    let run = own.to_owned();
    say(remote, &ChannelMessage::Lead { run });
}

/// Gives a claim back, because the host of this run will not lead: others wait for it if they have an order in which it is. The channel ends
/// when that is said.
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
