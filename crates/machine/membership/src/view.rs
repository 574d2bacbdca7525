//! The hosts that this host believes to be up, compared with the roll.
//!
//! Only differences are stored, so that counting costs the same for ten hosts and for ten thousand.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use crate::host::HostId;
use crate::roll::{Change, Roll};

#[derive(Default)]
pub(crate) struct View {
    /// Hosts that are on the roll and not up.
    pub away: BTreeSet<HostId>,
    /// Hosts that are up and not on the roll.
    pub fresh: BTreeSet<HostId>,
    /// Suspected hosts, and the incarnation in doubt.
    pub suspects: BTreeMap<HostId, u16>,
    /// Hosts that are on the roll, but are certain never to act again under that identity.
    pub certain: BTreeSet<HostId>,
    /// Hosts that have said goodbye but still vote, and since when.
    pub leaving: HashMap<HostId, Duration>,
}

impl View {
    pub fn is_active(&self, roll: &Roll, host: &HostId) -> bool {
        if roll.contains(host) {
            !self.away.contains(host)
        } else {
            self.fresh.contains(host)
        }
    }

    /// Returns whether a host is up and not suspected.
    pub fn answers(&self, roll: &Roll, host: &HostId) -> bool {
        self.is_active(roll, host) && !self.suspects.contains_key(host)
    }

    pub fn come(&mut self, roll: &Roll, host: HostId) {
        if roll.contains(&host) {
            self.away.remove(&host)
        } else {
            self.fresh.insert(host)
        };
    }

    pub fn gone(&mut self, roll: &Roll, host: HostId) {
        self.suspects.remove(&host);
        if roll.contains(&host) {
            self.away.insert(host)
        } else {
            self.fresh.remove(&host)
        };
    }

    /// Returns how many hosts of the roll answer, and whether the oldest one does.
    pub fn count(&self, roll: &Roll) -> (usize, bool) {
        let suspects = self
            .suspects
            .keys()
            .filter(|host| roll.contains(host) && !self.away.contains(host))
            .count();
        let oldest = roll.oldest().is_some_and(|host| self.answers(roll, host));
        (roll.len() - self.away.len() - suspects, oldest)
    }

    /// Returns whether a quorum of the roll answers.
    pub fn is_quorum(&self, roll: &Roll) -> bool {
        let (count, oldest) = self.count(roll);
        roll.is_quorum(count, oldest)
    }

    /// Returns whether some hosts of the roll are certainly dead, and `here` is true for all others, so that no host is
    /// left to disagree. The dead may have decided something before, so a decision like this begins a new lineage.
    pub fn is_rest(&self, roll: &Roll, here: impl Fn(&HostId) -> bool) -> bool {
        let mut rest = roll.hosts().filter(|host| !self.certain.contains(host));
        !self.certain.is_empty() && self.certain.len() < roll.len() && rest.all(here)
    }

    /// Returns whether no host of the roll will ever vote again.
    pub fn is_extinct(&self, roll: &Roll) -> bool {
        !roll.is_empty() && self.certain.len() == roll.len()
    }

    /// Returns whether this host may go on: with a quorum, or with all hosts whose death is not certain.
    pub fn is_majority(&self, roll: &Roll) -> bool {
        // Compare the counts first, since walking through the whole roll is rarely needed.
        self.is_quorum(roll)
            || (self.count(roll).0 + self.certain.len() == roll.len()
                && self.is_rest(roll, |host| self.answers(roll, host)))
    }

    /// Returns the host that calls for votes: among those that answer, the one that has been on the roll for the
    /// longest time.
    pub fn leader(&self, roll: &Roll) -> Option<HostId> {
        roll.eldest(|host| self.answers(roll, host))
    }

    /// Updates the differences after the roll has changed by `change`.
    pub fn follow(&mut self, change: &Change, own: &HostId) {
        for host in &change.removed {
            if !self.away.remove(host) && host != own {
                self.fresh.insert(*host);
            }
            self.certain.remove(host);
            self.leaving.remove(host);
        }
        for host in &change.added {
            if !self.fresh.remove(host) && host != own {
                self.away.insert(*host);
            }
        }
    }

    /// Computes the differences from a new roll.
    pub fn compare<'a>(
        &mut self,
        roll: &Roll,
        active: impl Iterator<Item = &'a HostId>,
        own: &HostId,
    ) {
        self.away = roll.hosts().filter(|host| *host != own).copied().collect();
        self.fresh.clear();
        for host in active {
            self.come(roll, *host);
        }
        self.certain.retain(|host| roll.contains(host));
        self.leaving.retain(|host, _| roll.contains(host));
    }
}
