//! Choice of the hosts on which tasks are started.

use regatta_wire::control::{Place, RequestError};

use super::{HostRecord, Refused, Registry, TaskRecord};

impl Registry {
    /// Divides `count` new tasks requested by `by` among hosts. Returns pairs of a host number and its share, in the
    /// order of the hosts. The least loaded host, by tasks per core, gets the next task.
    pub fn place_tasks(
        &self,
        by: u32,
        place: &Place,
        count: u32,
    ) -> Result<Vec<(u32, u32)>, Refused> {
        let here = self.host_of(by);
        let named =
            |host: &&HostRecord, name: &str| host.name == name || host.number.to_string() == name;
        let alive = self.hosts.iter().filter(|host| host.alive);
        let hosts: Vec<&HostRecord> = match place {
            Place::Any => alive.collect(),
            Place::Here => alive.filter(|host| Some(host.number) == here).collect(),
            Place::Host(name) => alive.filter(|host| named(host, name)).collect(),
            Place::Architecture(name) => alive.filter(|host| host.architecture == *name).collect(),
            Place::Elsewhere(name) => alive
                .filter(|host| match name.is_empty() {
                    true => Some(host.number) != here,
                    false => !named(host, name),
                })
                .collect(),
        };
        if hosts.is_empty() {
            return Err((RequestError::Host, self.no_host(place)));
        }
        let mut shares: Vec<(&HostRecord, u32, u32)> = hosts
            .into_iter()
            .map(|host| (host, self.tasks_on(host.number), 0))
            .collect();
        for _ in 0..count {
            // Among equally loaded hosts, choose the first.
            let least = shares.iter_mut().min_by_key(|(host, tasks, more)| {
                let full = u64::from(tasks + more) * 1000;
                full / u64::from(host.cores.max(1))
            });
            if let Some((_, _, more)) = least {
                *more += 1;
            }
        }
        let shares = shares.into_iter().filter(|(_, _, more)| *more > 0);
        Ok(shares.map(|(host, _, more)| (host.number, more)).collect())
    }

    /// Returns how many tasks of a host have not ended.
    pub(super) fn tasks_on(&self, host: u32) -> u32 {
        let here = |task: &&TaskRecord| task.host == host && task.ended.is_none();
        self.tasks.iter().filter(here).count() as u32
    }

    /// Returns the sentence that the job has no host that matches `place`.
    fn no_host(&self, place: &Place) -> String {
        let names: Vec<&str> = self
            .hosts
            .iter()
            .filter(|host| host.alive)
            .map(|host| host.name.as_str())
            .collect();
        let names = names.join(", ");
        match place {
            Place::Host(name) => format!("no host {name:?} belongs to the job; it has: {names}"),
            Place::Architecture(name) => {
                format!("no host of the job is of the architecture {name:?}; it has: {names}")
            }
            _ => format!("there is no such host; the job has: {names}"),
        }
    }
}
