//! Applications without an environment: one task, for its time and its answer.

use std::process::Command;

use super::Mark;

use super::{Facts, Job, Look, Machine, Peer};
use crate::discover::Competitor;
use crate::operations::Need;

/// Its name in results.
pub const NAME: &str = "serial";

/// The peer without an environment.
#[derive(Debug)]
pub struct Serial;

static FACTS: Facts = Facts {
    looks: &[Look::new(NAME, "one task alone", "#4d5560", Mark::Square)],
    adapter: "serial",
    lacks: |need| match need {
        Need::Application(_) => None,
        _ => Some("it runs a single task"),
    },
    misses: |network| (!network.is_local()).then_some("is one task, on one host"),
    crowded: Ok(()),
    one_task: true,
    rival: false,
    ..Facts::USUAL
};

impl Peer for Serial {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn find(&'static self, _machine: &Machine) -> Vec<Result<Competitor, String>> {
        vec![Ok(Competitor::bare(NAME, &Serial))]
    }

    fn launch(&self, job: &Job) -> Command {
        Command::new(job.program)
    }
}
