//! Slurm: one `srun`, as one of its tasks sees it, and Slurm's compact lists.

mod lists;

pub use lists::{counts, names, numbers};

use crate::{Environment, Names, Step, StepSource};

/// Slurm's names, for messages.
pub const NAMES: Names = Names {
    launcher: "Slurm",
    command: "srun",
    instead: "`regatta run PROGRAM` inside salloc or sbatch",
};

/// The source of the steps that `srun` starts.
pub struct Srun;

impl StepSource for Srun {
    fn names(&self) -> Names {
        NAMES
    }

    fn find(&self, environment: Environment) -> Result<Option<Step>, String> {
        let number = |name: &str| -> Result<u32, String> {
            let text = environment(name).ok_or_else(|| format!("{name} is missing"))?;
            text.parse()
                .map_err(|_| format!("{name}={text} is not a number"))
        };
        if environment("SLURM_STEP_ID").is_none() {
            return Ok(None);
        }
        let Ok(size @ 2..) = number("SLURM_STEP_NUM_TASKS") else {
            return Ok(None);
        };
        let text = |name: &str| environment(name).ok_or_else(|| format!("{name} is missing"));
        let nodes = names(&text("SLURM_STEP_NODELIST")?)?;
        let mut here = numbers(&text("SLURM_GTIDS")?)?;
        here.sort_unstable();
        here.dedup();
        let step = Step {
            names: NAMES,
            id: format!("{}.{}", number("SLURM_JOB_ID")?, number("SLURM_STEP_ID")?),
            rank: number("SLURM_PROCID")?,
            size,
            node: number("SLURM_NODEID")?,
            nodes,
            here,
        };
        if environment("SLURM_HET_SIZE").is_some() {
            return Err("it is a step of a heterogeneous job".to_owned());
        }
        step.is_sound().then_some(Some(step)).ok_or_else(|| {
            "its variables SLURM_PROCID, SLURM_GTIDS, SLURM_NODEID and SLURM_STEP_NODELIST contradict each other".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [(&str, &str); 7] = [
        ("SLURM_JOB_ID", "7"),
        ("SLURM_STEP_ID", "1"),
        ("SLURM_STEP_NUM_TASKS", "4"),
        ("SLURM_PROCID", "2"),
        ("SLURM_NODEID", "1"),
        ("SLURM_STEP_NODELIST", "n[1-2]"),
        ("SLURM_GTIDS", "3,2"),
    ];

    fn with(changes: &[(&str, Option<&str>)]) -> Result<Option<Step>, String> {
        Srun.find(&|name| {
            let changed = changes.iter().find(|(variable, _)| *variable == name);
            let good = GOOD.iter().find(|(variable, _)| *variable == name);
            changed
                .map_or(good.map(|(_, value)| *value), |(_, value)| *value)
                .map(str::to_owned)
        })
    }

    #[test]
    fn a_step_is_read() {
        let step = with(&[]).expect("sense").expect("a step");
        assert_eq!((step.id.as_str(), step.rank, step.size), ("7.1", 2, 4));
        assert_eq!(
            (step.node, step.nodes.len(), &step.here[..]),
            (1, 2, &[2, 3][..])
        );
    }

    #[test]
    fn one_task_alone_is_no_step_of_several() {
        for alone in [
            ("SLURM_STEP_ID", None),
            ("SLURM_STEP_NUM_TASKS", None),
            ("SLURM_STEP_NUM_TASKS", Some("1")),
        ] {
            assert_eq!(with(&[alone]), Ok(None));
        }
    }

    #[test]
    fn what_is_missing_or_does_not_fit_is_said() {
        for (name, value) in [
            ("SLURM_GTIDS", None),
            ("SLURM_PROCID", Some("x")),
            ("SLURM_PROCID", Some("0")),
            ("SLURM_GTIDS", Some("2,9")),
            ("SLURM_NODEID", Some("2")),
            ("SLURM_HET_SIZE", Some("2")),
        ] {
            assert!(with(&[(name, value)]).is_err(), "{name}={value:?}");
        }
    }
}
