//! The invariants of a world, each a sentence.
//!
//! - Two rolls of one number are equal, whenever and by whomever they are held.
//! - Of two sides of a split at most one goes on, unless an operator has vouched; and never two of one lineage. (`README.md` names a known limit.)
//! - In a good network all hosts that live soon hold one roll of exactly them, and go on; unless no host may.
//! - No host may go on if no roll that is the last of its lineage has a quorum alive, and each lacks somebody who may live. A host that
//!   was vouched for speaks for the roll that was made then, and for no earlier one.
//! - If no host may go on, a single vouch on any host makes all go on.
//! - A host hears of another that it is there, then what it is like, then that it is gone, in this order.

use std::collections::{BTreeMap, BTreeSet};

use regatta_membership::{Event, HostId, Lineage, Roll, Standing};

use super::World;

impl World {
    /// Takes down which roll a host holds, and notices if another one has the same number.
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

    /// Whether any two rolls of one number, held at any time, were equal; if not, which were not.
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

    /// Whether all that live, being connected, agree on exactly those that live; if not, who differs.
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

    /// How every host that lives sees the world, a line each.
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

    /// Whether all that live also have one and the same roll of exactly them, and may work.
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

    /// Whether hosts may stand still although all are connected: nobody goes on, and rightly so.
    pub fn stands_still_rightly(&self) -> bool {
        let goes_on = |host: usize| self.standing(host) == Standing::Majority;
        !self.living().into_iter().any(goes_on)
            && self
                .last_rolls()
                .values()
                .all(|roll| self.may_not_go_on(roll))
    }

    /// The last roll of each lineage, as far as a living host holds it.
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

    /// Neither does a quorum of the roll live that follows it, nor are all others of it known to be dead by their later runs.
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

    /// Groups in which somebody believes to be of the majority, each with the lineages there.
    pub fn majorities_by_lineage(&self) -> BTreeSet<(Lineage, usize)> {
        let majority = |host: &usize| self.standing(*host) == Standing::Majority;
        let living = self.living().into_iter().filter(majority);
        living
            .map(|host| (self.daemon(host).roll().lineage(), self.hosts[host].group))
            .collect()
    }

    /// Groups in which somebody believes to be of the majority.
    pub fn majorities(&self) -> BTreeSet<usize> {
        let groups = self.majorities_by_lineage().into_iter();
        groups.map(|(_, group)| group).collect()
    }

    /// Whether each host heard of every other that it is up, then what it is like, and then that it is gone; if not, who heard what else.
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
