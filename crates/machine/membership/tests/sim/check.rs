//! The invariants of a simulated world.
//!
//! - Two rolls with the same number are equal, on all hosts and at all times.
//! - At most one side of a split goes on, unless an operator has vouched; and never two of one lineage. (`README.md`
//!   describes a known limit.)
//! - In a good network all living hosts soon have one roll of exactly these hosts, and go on; unless no host may.
//! - No host may go on if no last roll of a lineage has a living quorum, and each lacks a host that may be alive. A
//!   host that was vouched for speaks for the roll that was made then, and for no earlier one.
//! - If no host may go on, a single vouch on any host makes all go on.
//! - A host is told that another one is up, then its description, then that it is gone, in this order.

use std::collections::{BTreeMap, BTreeSet};

use regatta_membership::{Event, HostId, Lineage, Roll, Standing};

use super::World;

impl World {
    /// Records which roll a host has, and detects a different one with the same number.
    pub fn enter_roll(&mut self, host: usize) {
        let Some(daemon) = &self.hosts[host].daemon else {
            return;
        };
        let roll = daemon.roll();
        let number = (roll.lineage(), roll.epoch());
        if roll.epoch() == 0 {
            return;
        }
        let known = self.rolls.entry(number).or_insert_with(|| roll.clone());
        if known != roll && self.torn.is_none() {
            self.torn = Some((known.clone(), roll.clone()));
        }
    }

    /// Checks that rolls with the same number were equal at all times. The error has two that were not.
    pub fn rolls_have_one_number(&self) -> Result<(), String> {
        match &self.torn {
            Some((a, b)) => Err(format!("of one number are {a:?} and {b:?}")),
            None => Ok(()),
        }
    }

    fn living_names(&self) -> BTreeSet<HostId> {
        let living = self.living().into_iter();
        living.map(|host| self.name(host)).collect()
    }

    /// Checks that all living hosts, which must be connected, agree on exactly the living hosts. The error says which
    /// differs.
    pub fn agrees(&self) -> Result<(), String> {
        let living = self.living_names();
        for host in self.living() {
            let mut seen: BTreeSet<HostId> = self
                .daemon(host)
                .hosts()
                .filter(|(_, suspected)| !suspected)
                .map(|(name, _)| name)
                .collect();
            seen.insert(self.name(host));
            if seen != living {
                return Err(format!("{host} does not see all: {}", self.sketch()));
            }
        }
        Ok(())
    }

    /// Returns a line for each living host with its view of the world.
    pub fn sketch(&self) -> String {
        let line = |host: usize| {
            let daemon = self.daemon(host);
            let roll = daemon.roll();
            let seen: Vec<_> = daemon.hosts().collect();
            format!(
                "\n{host}: {:?} is {:?} in {:?}, epoch {} of {:?}, sees {seen:?}",
                daemon.own(),
                daemon.standing(),
                roll.lineage(),
                roll.epoch(),
                roll.hosts().collect::<Vec<_>>(),
            )
        };
        self.living().into_iter().map(line).collect()
    }

    /// Checks that all living hosts also have the same roll of exactly the living hosts, and may accept work.
    pub fn is_whole(&self) -> Result<(), String> {
        self.agrees()?;
        let living = self.living_names();
        for host in self.living() {
            let daemon = self.daemon(host);
            let roll: BTreeSet<HostId> = daemon.roll().hosts().copied().collect();
            if roll != living || daemon.standing() != Standing::Majority {
                return Err(format!("{host} is not one of all: {}", self.sketch()));
            }
        }
        Ok(())
    }

    /// Returns whether no host goes on although all are connected, and none may.
    pub fn stands_still_rightly(&self) -> bool {
        let goes_on = |host: usize| self.standing(host) == Standing::Majority;
        !self.living().into_iter().any(goes_on)
            && self
                .last_rolls()
                .values()
                .all(|roll| self.may_not_go_on(roll))
    }

    /// Returns the last roll of each lineage that a living host has.
    fn last_rolls(&self) -> BTreeMap<Lineage, &Roll> {
        let mut last: BTreeMap<Lineage, &Roll> = BTreeMap::new();
        for host in self.living() {
            let roll = self.daemon(host).roll();
            let known = last.entry(roll.lineage()).or_insert(roll);
            if known.epoch() < roll.epoch() {
                *known = roll;
            }
        }
        last.retain(|_, roll| roll.epoch() > 0);
        last
    }

    /// Returns whether neither a living quorum of the roll follows it, nor all its other hosts are known to be dead
    /// from their later runs.
    fn may_not_go_on(&self, roll: &Roll) -> bool {
        let living = self.living_names();
        let mut followers = self.living();
        followers.retain(|host| self.daemon(*host).roll().lineage() <= roll.lineage());
        let followers: BTreeSet<HostId> = followers.iter().map(|host| self.name(*host)).collect();
        let alive = |host: &HostId| followers.contains(host);
        let outlived = |host: &HostId| living.iter().any(|run| run.succeeds(host));
        let count = roll.hosts().filter(|host| alive(host)).count();
        let has_quorum = roll.is_quorum(count, roll.oldest().is_some_and(alive));
        !has_quorum && !roll.hosts().all(|host| alive(host) || outlived(host))
    }

    /// Returns the groups with a host that is in standing `Majority`, each with the lineages there.
    pub fn majorities_by_lineage(&self) -> BTreeSet<(Lineage, usize)> {
        let majority = |host: &usize| self.standing(*host) == Standing::Majority;
        let living = self.living().into_iter().filter(majority);
        living
            .map(|host| (self.daemon(host).roll().lineage(), self.hosts[host].group))
            .collect()
    }

    /// Returns the groups with a host that is in standing `Majority`.
    pub fn majorities(&self) -> BTreeSet<usize> {
        let groups = self.majorities_by_lineage().into_iter();
        groups.map(|(_, group)| group).collect()
    }

    /// Checks that each host was told of every other that it is up, then its description, and then that it is gone. The
    /// error says what was told instead.
    pub fn is_told_in_order(&self) -> Result<(), String> {
        let mut up: BTreeSet<(usize, HostId)> = BTreeSet::new();
        for (at, by, event) in &self.log {
            match event {
                Event::HostUp(host) => _ = up.insert((*by, *host)),
                Event::Dead(host, _) | Event::Left(host) => _ = up.remove(&(*by, *host)),
                Event::Described(host, _) if !up.contains(&(*by, *host)) => {
                    return Err(format!("at {at:?} {by} hears what {host:?} is like"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub fn count(&self, matching: impl Fn(&Event) -> bool) -> usize {
        self.log
            .iter()
            .filter(|(_, _, event)| matching(event))
            .count()
    }
}
