//! The order in which hosts lead a job.

use regatta_wire::fields;

use super::MembershipView;

/// A host that may lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The host's number in the job.
    pub number: u32,
    /// The host's name, for messages to the user.
    pub name: String,
    /// The membership's identity of this run of the host. A host that returns has another one.
    pub run: String,
}
fields!(Candidate { number, name, run });

/// The host that leads the job, and the hosts that lead after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuccessionOrder {
    /// The run of the launcher's host.
    pub launcher: String,
    /// The name of the launcher's host, for messages to the user.
    pub name: String,
    /// All other hosts that are left, in the order in which they lead.
    pub candidates: Vec<Candidate>,
}
fields!(SuccessionOrder {
    launcher,
    name,
    candidates
});

impl SuccessionOrder {
    /// Returns the host that leads when the launcher's is lost: the first candidate that is left.
    pub fn next(&self, view: &MembershipView) -> Option<&Candidate> {
        let mut candidates = self.candidates.iter();
        candidates.find(|candidate| view.is_left(&candidate.run))
    }

    /// Records that another host leads. Until its own order arrives, this one is used without that host among the
    /// candidates.
    pub fn follow(&mut self, run: &str) {
        run.clone_into(&mut self.launcher);
        let at = self.candidates.iter().position(|host| host.run == run);
        if let Some(at) = at {
            self.name = self.candidates.remove(at).name;
        }
    }
}
