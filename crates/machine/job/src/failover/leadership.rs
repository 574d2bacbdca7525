//! The leader's part in failover: the succession order that it sends, and whether it must give up because other hosts
//! may go on without it.

use std::collections::BTreeMap;

use super::{Candidate, MembershipView, SuccessionOrder};

/// A host that leads a job of a virtual machine.
#[derive(Debug)]
pub struct Leadership {
    /// This host's name and run.
    name: String,
    run: String,
    /// The runs of the job's hosts, by their numbers.
    runs: BTreeMap<u32, String>,
    given_up: bool,
}

impl Leadership {
    /// Returns the leadership of the host with this name and run.
    pub fn new(name: &str, run: &str, runs: BTreeMap<u32, String>) -> Self {
        Self {
            name: name.to_owned(),
            run: run.to_owned(),
            runs,
            given_up: false,
        }
    }

    /// Adds a host that has joined the job.
    pub fn add(&mut self, number: u32, run: &str) {
        self.runs.insert(number, run.to_owned());
    }

    /// Returns whether `host` is the leader's own host.
    pub fn is_here(&self, host: u32) -> bool {
        self.runs.get(&host) == Some(&self.run)
    }

    /// Returns the succession order of the hosts that are left, which are given by number and name.
    pub fn order<'a>(&self, left: impl Iterator<Item = (u32, &'a str)>) -> SuccessionOrder {
        let candidate = |(number, name): (u32, &str)| {
            let run = self.runs.get(&number)?.clone();
            let name = name.to_owned();
            (run != self.run).then_some(Candidate { number, name, run })
        };
        let mut candidates: Vec<Candidate> = left.filter_map(candidate).collect();
        candidates.sort_by_key(|candidate| candidate.number);
        SuccessionOrder {
            launcher: self.run.clone(),
            name: self.name.clone(),
            candidates,
        }
    }

    /// Returns whether the daemon of this host reports another run than the one that leads: the other hosts had
    /// declared this host dead.
    pub fn is_another_run(&self, view: &MembershipView) -> bool {
        view.own.as_ref().is_some_and(|own| *own != self.run)
    }

    /// Returns the other hosts of the job that are silent while this host may not take on work: they may go on without
    /// it.
    pub fn cut_off(&self, view: &MembershipView) -> Vec<u32> {
        if view.hindrance.is_none() {
            return Vec::new();
        }
        let others = self.runs.iter().filter(|(_, run)| **run != self.run);
        let silent = others.filter(|(_, run)| view.is_suspected(run));
        silent.map(|(number, _)| *number).collect()
    }

    /// Records that this host has left the job to others.
    pub fn give_up(&mut self) {
        self.given_up = true;
    }

    /// Returns whether the job was left to others.
    pub fn has_given_up(&self) -> bool {
        self.given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failover::HostState;

    fn leader() -> Leadership {
        let runs = [(0, "r0"), (2, "r2"), (1, "r1")];
        let runs = runs.map(|(number, run)| (number, run.to_owned()));
        Leadership::new("h0", "r0", runs.into_iter().collect())
    }

    #[test]
    fn candidates_are_the_other_hosts_that_are_left_by_number() {
        let mut leader = leader();
        leader.add(3, "r3");
        let left = [(3, "h3"), (0, "h0"), (1, "h1"), (9, "unknown")];
        let order = leader.order(left.into_iter());
        assert_eq!((order.launcher.as_str(), order.name.as_str()), ("r0", "h0"));
        let numbers: Vec<u32> = order.candidates.iter().map(|host| host.number).collect();
        assert_eq!(numbers, [1, 3]);
        assert!(leader.is_here(0) && !leader.is_here(1) && !leader.is_here(9));
    }

    #[test]
    fn a_leader_is_cut_off_by_silent_hosts_of_its_job_if_it_may_not_go_on() {
        let leader = leader();
        let states = [
            ("r0", HostState::Suspected),
            ("r1", HostState::Suspected),
            ("r2", HostState::Alive),
            ("r9", HostState::Suspected),
        ];
        let mut view = MembershipView {
            own: Some("r0".to_owned()),
            left: states.map(|(run, state)| (run.to_owned(), state)).into(),
            hindrance: None,
        };
        assert!(leader.cut_off(&view).is_empty() && !leader.is_another_run(&view));
        view.hindrance = Some("it sees no majority".to_owned());
        assert_eq!(leader.cut_off(&view), [1]);
        view.own = Some("r7".to_owned());
        assert!(leader.is_another_run(&view));
    }
}
