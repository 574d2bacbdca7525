//! TCP without a library, as in the program TTCP of the papers' time.
//!
//! Its tasks sleep while they wait, unlike those of `limit` between hosts, which poll.

use std::process::Command;

use super::Mark;
use super::limit::{Limit, SOCKETS, lacks};
use super::{Facts, Job, Look, Machine, Peer};
use crate::discover::Competitor;
use crate::network::hosts::Hosts;
use crate::speed;

/// Its name in results.
pub const NAME: &str = "ttcp";
/// The address by which the tasks of this host reach each other.
const LOOPBACK_ADDRESS: &str = "127.0.0.1";

/// TCP without a library.
#[derive(Debug)]
pub struct Ttcp;

static FACTS: Facts = Facts {
    looks: &[Look::new(NAME, "TCP, no library", "#9a8f5c", Mark::DiamondTall).of_a_suite()],
    adapter: SOCKETS,
    libraries: &[],
    lacks,
    rival: false,
    ..Facts::USUAL
};

impl Peer for Ttcp {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn find(&'static self, _machine: &Machine) -> Vec<Result<Competitor, String>> {
        vec![Ok(Competitor {
            flags: vec!["-DENV_SLEEPS".to_owned()],
            on_request: true,
            ..Competitor::bare(NAME, &Ttcp)
        })]
    }

    /// Returns the command that starts a job. Each task gets a processor of its own if there are enough.
    fn launch(&self, job: &Job) -> Command {
        let mut command = job.by_itself();
        command.env("RACE_HOSTS", words(job.tasks, &speed::allowed()));
        command
    }

    fn launch_between(&self, job: &Job, hosts: &Hosts) -> Command {
        Limit.launch_between(job, hosts)
    }
}

/// Returns this many tasks in the adapter's notation, on these processors in turn.
fn words(tasks: u32, processors: &[usize]) -> String {
    let processor = |task: u32| {
        let number = processors.len().max(1);
        processors
            .get(task as usize % number)
            .copied()
            .unwrap_or_default()
    };
    let word = |task| format!("={LOOPBACK_ADDRESS}={}", processor(task));
    (0..tasks).map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_share_processors_only_when_there_are_more_of_them() {
        assert_eq!(words(2, &[3, 5]), "=127.0.0.1=3 =127.0.0.1=5");
        assert_eq!(words(3, &[3, 5]), "=127.0.0.1=3 =127.0.0.1=5 =127.0.0.1=3");
        assert_eq!(words(1, &[]), "=127.0.0.1=0");
    }
}
