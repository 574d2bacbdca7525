//! The roll: the hosts that count when a majority is counted.
//!
//! A roll is numbered by its epoch. Each follows from the one before it by a [`Change`] that a quorum of the earlier one has
//! voted for, so two sides of a split can never make different ones ([`crate::ballot`]).

use crate::bytes::{Reader, Short};
use crate::host::HostId;

/// The hosts of one epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roll {
    epoch: u32,
    /// By name, each with its place in the order of arrival.
    hosts: Vec<(HostId, u32)>,
    next: u32,
    oldest: Vec<HostId>,
}

/// So many of the longest-serving hosts are kept at hand to find who leads.
const ELDERS: usize = 16;

/// How far an operator's word lifts the epoch above all that could have been decided meanwhile.
pub(crate) const BY_DECREE: u32 = 1 << 16;

/// What one epoch changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Hosts that are dead or have left.
    pub removed: Vec<HostId>,
    /// Hosts that have come.
    pub added: Vec<HostId>,
}

impl Change {
    /// Most hosts one change names, so that it fits a datagram with room to spare.
    pub const MOST: usize = 40;

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }

    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&[self.removed.len() as u8, self.added.len() as u8]);
        self.removed
            .iter()
            .chain(&self.added)
            .for_each(|host| host.encode(to));
    }

    pub(crate) fn decode(from: &mut Reader<'_>) -> Result<Change, Short> {
        let (removed, added) = (usize::from(from.u8()?), usize::from(from.u8()?));
        if removed + added > Change::MOST {
            return Err(Short);
        }
        let mut hosts = |count| {
            (0..count)
                .map(|_| HostId::decode(from))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Change {
            removed: hosts(removed)?,
            added: hosts(added)?,
        })
    }
}

impl Roll {
    /// The first roll of a machine, its hosts in order of arrival.
    pub fn founded(hosts: &[HostId]) -> Roll {
        let arrivals = hosts.iter().copied().zip(0..).collect();
        Roll::adopted(1, hosts.len() as u32, arrivals)
    }

    /// A roll as another host tells it.
    pub(crate) fn adopted(epoch: u32, next: u32, mut hosts: Vec<(HostId, u32)>) -> Roll {
        hosts.sort_unstable();
        hosts.dedup_by_key(|(host, _)| *host);
        let mut roll = Roll {
            epoch,
            hosts,
            next,
            oldest: Vec::new(),
        };
        roll.find_oldest();
        roll
    }

    /// How many changes there were; 0 for a host that belongs to no machine yet.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// How many hosts are known.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Whether no hosts are known.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// All hosts, in the order of their addresses.
    pub fn hosts(&self) -> impl Iterator<Item = &HostId> {
        self.hosts.iter().map(|(host, _)| host)
    }

    pub(crate) fn entries(&self) -> &[(HostId, u32)] {
        &self.hosts
    }

    pub(crate) fn arrivals(&self) -> u32 {
        self.next
    }

    /// Whether `host` counts.
    pub fn contains(&self, host: &HostId) -> bool {
        self.find(host).is_ok()
    }

    /// The host that has been here longest; it decides between equal halves.
    pub fn oldest(&self) -> Option<&HostId> {
        self.oldest.first()
    }

    /// The longest-serving host for which `here` holds.
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

    /// Whether `count` of these hosts are enough to go on: more than half, or just half with the oldest among them.
    ///
    /// Any two such sets have a host in common.
    pub fn is_quorum(&self, count: usize, with_oldest: bool) -> bool {
        2 * count > self.len() || (2 * count == self.len() && count > 0 && with_oldest)
    }

    /// The next epoch. Hosts a change names in vain are passed over.
    pub(crate) fn advance(&mut self, change: &Change) {
        self.epoch += 1;
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
        if order.len() > ELDERS {
            order.select_nth_unstable(ELDERS);
            order.truncate(ELDERS);
        }
        order.sort_unstable();
        self.oldest = order.into_iter().map(|(_, host)| host).collect();
    }
}
