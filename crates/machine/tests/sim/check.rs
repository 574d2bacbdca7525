//! What must hold of a world.

use std::collections::BTreeSet;

use regatta_machine::{Event, HostId, Standing};

use super::World;

impl World {
    /// Whether all that live, being connected, agree on exactly those that live; if not, who differs.
    pub fn agrees(&self) -> Result<(), String> {
        let living: BTreeSet<HostId> = self
            .living()
            .into_iter()
            .map(|host| self.name(host))
            .collect();
        for host in self.living() {
            let mut seen: BTreeSet<HostId> = self
                .daemon(host)
                .hosts()
                .filter(|(_, suspected)| !suspected)
                .map(|(name, _)| name)
                .collect();
            seen.insert(self.name(host));
            if seen != living {
                return Err(format!("{host} sees {seen:?}, alive are {living:?}"));
            }
        }
        Ok(())
    }

    /// Whether all that live also have one and the same roll of exactly them, and may work.
    pub fn is_whole(&self) -> Result<(), String> {
        self.agrees()?;
        let living: BTreeSet<HostId> = self
            .living()
            .into_iter()
            .map(|host| self.name(host))
            .collect();
        for host in self.living() {
            let daemon = self.daemon(host);
            let roll: BTreeSet<HostId> = daemon.roll().hosts().copied().collect();
            if roll != living || daemon.standing() != Standing::Majority {
                return Err(format!(
                    "{host} is {:?}, its roll {} is {roll:?}",
                    daemon.standing(),
                    daemon.roll().epoch()
                ));
            }
        }
        Ok(())
    }

    /// Groups in which somebody believes to be of the majority.
    pub fn majorities(&self) -> BTreeSet<usize> {
        let majority = |host: &usize| self.standing(*host) == Standing::Majority;
        self.living()
            .into_iter()
            .filter(majority)
            .map(|host| self.hosts[host].group)
            .collect()
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
