//! The roll: the hosts of which a majority is needed.
//!
//! A roll is numbered by its lineage and its epoch. Each follows from the previous one by a [`Change`] for which a
//! quorum of the previous roll has voted, so the two sides of a split cannot make different ones ([`crate::ballot`]). A
//! side that goes on without a quorum begins another lineage ([`crate::lineage`]).
//!
//! Invariant: two rolls with the same number are equal, on all hosts and at all times.

use regatta_wire::Malformed;
use regatta_wire::fields::{Bytes, Field};

use crate::host::HostId;
use crate::lineage::Lineage;

/// The hosts of one epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roll {
    lineage: Lineage,
    epoch: u32,
    /// The hosts, each with its place in the order of arrival.
    hosts: Vec<(HostId, u32)>,
    next: u32,
    oldest: Vec<HostId>,
}

/// Number of longest-serving hosts that are kept sorted, to find the leader.
const MAX_ELDERS: usize = 16;

/// The change from one epoch to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Hosts that are dead or have left.
    pub removed: Vec<HostId>,
    /// Hosts that have arrived.
    pub added: Vec<HostId>,
    /// The lineage that begins with this change, if there was no quorum of the previous roll.
    pub(crate) fork: Option<Lineage>,
}

impl Change {
    /// Maximum number of hosts in a change, so that it fits into a datagram with room to spare.
    pub const MAX_HOSTS: usize = 40;

    /// Returns whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }
}

/// Encoded with both counts before the hosts.
impl Field for Change {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&[self.removed.len() as u8, self.added.len() as u8]);
        let hosts = self.removed.iter().chain(&self.added);
        hosts.for_each(|host| host.put(to));
        self.fork.put(to);
    }

    fn take(from: &mut Bytes) -> Result<Change, Malformed> {
        let [removed, added] = <[u8; 2]>::take(from)?.map(usize::from);
        if removed + added > Change::MAX_HOSTS {
            return Err(Malformed);
        }
        let mut hosts = |count: usize| -> Result<Vec<_>, Malformed> {
            (0..count).map(|_| HostId::take(from)).collect()
        };
        Ok(Change {
            removed: hosts(removed)?,
            added: hosts(added)?,
            fork: Field::take(from)?,
        })
    }
}

impl Roll {
    /// Returns the first roll of a machine, from its hosts in order of arrival.
    pub fn founded(hosts: &[HostId]) -> Roll {
        let arrivals = hosts.iter().copied().zip(0..).collect();
        Roll::adopted(Lineage::FIRST, 1, hosts.len() as u32, arrivals)
    }

    /// Returns the first roll of a machine that one host begins.
    pub(crate) fn begun(lineage: Lineage, host: HostId) -> Roll {
        Roll::adopted(lineage, 1, 1, vec![(host, 0)])
    }

    /// Returns the empty roll of a host that knows only its lineage.
    pub(crate) fn awaited(lineage: Lineage) -> Roll {
        Roll {
            lineage,
            ..Roll::default()
        }
    }

    /// Returns a roll as another host has sent it.
    pub(crate) fn adopted(
        lineage: Lineage,
        epoch: u32,
        next: u32,
        mut hosts: Vec<(HostId, u32)>,
    ) -> Roll {
        hosts.sort_unstable();
        hosts.dedup_by_key(|(host, _)| *host);
        let mut roll = Roll {
            lineage,
            epoch,
            hosts,
            next,
            oldest: Vec::new(),
        };
        roll.find_oldest();
        roll
    }

    /// Returns the lineage: the chain of decisions to which the roll belongs.
    pub fn lineage(&self) -> Lineage {
        self.lineage
    }

    /// Returns the number of changes so far; 0 for a host that belongs to no machine yet.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns the number of hosts.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Returns whether there are no hosts.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Returns all hosts, in the order of their addresses.
    pub fn hosts(&self) -> impl Iterator<Item = &HostId> {
        self.hosts.iter().map(|(host, _)| host)
    }

    pub(crate) fn entries(&self) -> &[(HostId, u32)] {
        &self.hosts
    }

    /// Returns the hosts at the address of `host`, of any run.
    pub(crate) fn at_place_of(&self, host: &HostId) -> impl Iterator<Item = HostId> {
        let at = self.hosts.partition_point(|(one, _)| one.is_before(host));
        let runs = self.hosts[at..].iter().map(|(one, _)| *one);
        runs.take_while(move |one| one.same_place(host))
    }

    /// Returns the first place in the order of arrival among the hosts for which `here` is true.
    pub(crate) fn first_arrival(&self, here: impl Fn(&HostId) -> bool) -> u32 {
        let eldest = self.eldest(here);
        let at = eldest.and_then(|host| self.find(&host).ok());
        at.map_or(self.next, |at| self.hosts[at].1)
    }

    pub(crate) fn arrivals(&self) -> u32 {
        self.next
    }

    /// Returns whether `host` is on the roll.
    pub fn contains(&self, host: &HostId) -> bool {
        self.find(host).is_ok()
    }

    /// Returns the host that has been on the roll for the longest time; it decides between equal halves.
    pub fn oldest(&self) -> Option<&HostId> {
        self.oldest.first()
    }

    /// Returns the longest-serving host for which `here` is true.
    pub(crate) fn eldest(&self, here: impl Fn(&HostId) -> bool) -> Option<HostId> {
        let found = self.oldest.iter().find(|host| here(host)).copied();
        found.or_else(|| {
            self.hosts
                .iter()
                .filter(|(host, _)| here(host))
                .min_by_key(|(_, at)| *at)
                .map(|(host, _)| *host)
        })
    }

    /// Returns whether `count` of these hosts are enough to go on: more than half, or exactly half with the oldest among them.
    ///
    /// Any two such sets have a host in common.
    pub fn is_quorum(&self, count: usize, with_oldest: bool) -> bool {
        2 * count > self.len() || (2 * count == self.len() && count > 0 && with_oldest)
    }

    /// Advances to the next epoch. Ignores removed hosts that are not on the roll, and added ones that are.
    pub(crate) fn advance(&mut self, change: &Change) {
        self.epoch += 1;
        self.lineage = change.fork.unwrap_or(self.lineage);
        for host in &change.removed {
            if let Ok(at) = self.find(host) {
                self.hosts.remove(at);
            }
        }
        for host in &change.added {
            if let Err(at) = self.find(host) {
                self.hosts.insert(at, (*host, self.next));
                self.next += 1;
            }
        }
        self.find_oldest();
    }

    fn find(&self, host: &HostId) -> Result<usize, usize> {
        self.hosts.binary_search_by_key(host, |(host, _)| *host)
    }

    fn find_oldest(&mut self) {
        let mut order: Vec<(u32, HostId)> =
            self.hosts.iter().map(|(host, at)| (*at, *host)).collect();
        if order.len() > MAX_ELDERS {
            order.select_nth_unstable(MAX_ELDERS);
            order.truncate(MAX_ELDERS);
        }
        order.sort_unstable();
        self.oldest = order.into_iter().map(|(_, host)| host).collect();
    }
}
