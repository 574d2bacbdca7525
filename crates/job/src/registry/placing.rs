//! On which hosts tasks are started.

use regatta_wire::control::{Place, Why};

use super::{Desk, Host, Refused};

impl Desk {
    /// How many of `count` tasks that `by` starts go to which host, in the order of their numbers.
    pub(crate) fn place(
        &self,
        by: u32,
        place: &Place,
        count: u32,
    ) -> Result<Vec<(u32, u32)>, Refused> {
        let here = self.host_of(by);
        let named = |host: &&Host, name: &str| host.name == name || host.number.to_string() == name;
        let living = self.hosts.iter().filter(|host| host.lives);
        let hosts: Vec<&Host> = match place {
            Place::Any => living.collect(),
            Place::Here => living.filter(|host| Some(host.number) == here).collect(),
            Place::Host(name) => living.filter(|host| named(host, name)).collect(),
            Place::Architecture(name) => living.filter(|host| host.architecture == *name).collect(),
            Place::Elsewhere(name) => living
                .filter(|host| match name.is_empty() {
                    true => Some(host.number) != here,
                    false => !named(host, name),
                })
                .collect(),
        };
        if hosts.is_empty() {
            return Err((Why::Host, self.no_host(place)));
        }
        let mut shares: Vec<(&Host, u32, u32)> = hosts
            .into_iter()
            .map(|host| (host, self.tasks_on(host.number), 0))
            .collect();
        for _ in 0..count {
            // The one that is least full; of equals the first.
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

    fn no_host(&self, place: &Place) -> String {
        let names: Vec<&str> = self
            .hosts
            .iter()
            .filter(|host| host.lives)
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
