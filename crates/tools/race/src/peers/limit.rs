//! The limit of the hardware: shared memory without a library on one host, sockets without a library between hosts.

use std::process::Command;

use super::Mark;
use super::{Facts, Job, Look, Machine, Peer};
use crate::discover::Competitor;
use crate::network::Network;
use crate::network::hosts::Hosts;
use crate::operations::Need;

/// Its name in results.
pub const NAME: &str = "limit";
/// The adapter for sockets without a library.
pub const SOCKETS: &str = "sockets";

/// The environment without a library.
#[derive(Debug)]
pub struct Limit;

static FACTS: Facts = Facts {
    looks: &[Look::new(NAME, "limit", "#7d858f", Mark::TriangleDown)],
    adapter: "limit",
    libraries: &[],
    lacks,
    limit: true,
    rival: false,
    ..Facts::USUAL
};

/// Returns why programs without a library lack this ability, or `None` if they have it.
pub fn lacks(need: Need) -> Option<&'static str> {
    match need {
        Need::Messages => None,
        Need::Spawning | Need::Deaths => Some("there is no library that keeps track of tasks"),
        _ => Some("there is no library, so it has no calls of one"),
    }
}

impl Peer for Limit {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn find(&'static self, _machine: &Machine) -> Vec<Result<Competitor, String>> {
        vec![Ok(Competitor::bare(NAME, &Limit))]
    }

    fn adapter(&self, network: Network) -> &'static str {
        match network.is_local() {
            true => "limit",
            false => SOCKETS,
        }
    }

    fn launch(&self, job: &Job) -> Command {
        job.by_itself()
    }

    fn launch_between(&self, job: &Job, hosts: &Hosts) -> Command {
        let mut command = job.by_itself();
        command.env("RACE_HOSTS", hosts.words(false));
        command
    }
}
