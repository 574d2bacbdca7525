//! A report of the membership, as one host sees it.

use std::collections::BTreeMap;

/// The state of a host that is not gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostState {
    /// It answers.
    Alive,
    /// It is silent, and the verdict is still to come.
    Suspected,
}

/// One report of the membership.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MembershipView {
    /// The run of the host that reports.
    pub own: Option<String>,
    /// The runs of all hosts that are not gone.
    pub left: BTreeMap<String, HostState>,
    /// Why the reporting host may not take on work, if it may not (it sees no majority, say): then the verdicts are not for it to use.
    pub hindrance: Option<String>,
}

impl MembershipView {
    /// Whether this run of a host is not gone.
    pub fn is_left(&self, run: &str) -> bool {
        self.left.contains_key(run)
    }

    /// Whether it is silent.
    pub fn is_suspected(&self, run: &str) -> bool {
        self.left.get(run) == Some(&HostState::Suspected)
    }
}
