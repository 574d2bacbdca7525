//! A report of the membership, as one host sees it.

use std::collections::BTreeMap;

/// The state of a host that is not gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostState {
    /// The host answers.
    Alive,
    /// The host is silent, and there is no verdict yet.
    Suspected,
}

/// One report of the membership.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MembershipView {
    /// The run of the reporting host.
    pub own: Option<String>,
    /// The runs of all hosts that are not gone.
    pub left: BTreeMap<String, HostState>,
    /// Why the reporting host may not take on work (for example because it sees no majority), or `None` if it may. If
    /// set, the host must not use the verdicts.
    pub hindrance: Option<String>,
}

impl MembershipView {
    /// Returns whether this run of a host is not gone.
    pub fn is_left(&self, run: &str) -> bool {
        self.left.contains_key(run)
    }

    /// Returns whether this run of a host is silent.
    pub fn is_suspected(&self, run: &str) -> bool {
        self.left.get(run) == Some(&HostState::Suspected)
    }
}
