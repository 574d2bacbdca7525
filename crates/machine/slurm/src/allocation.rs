//! An allocation: nodes, and the number of tasks for each.

use regatta_foreign::slurm::{counts, names};

use crate::Environment;

/// The nodes that Slurm has given to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The job id.
    pub job: String,
    /// Its nodes, in Slurm's order.
    pub nodes: Vec<Node>,
}

/// A node of an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name in Slurm.
    pub name: String,
    /// How many tasks may be started on it.
    pub slots: u32,
    /// How many of its processors belong to the job.
    pub processors: u32,
}

impl Allocation {
    /// Returns the allocation that this process is in, or `None` if it is in none.
    pub fn find(environment: Environment) -> Result<Option<Self>, String> {
        let (Some(job), Some(list)) = (
            environment("SLURM_JOB_ID"),
            environment("SLURM_JOB_NODELIST"),
        ) else {
            return Ok(None);
        };
        let names = names(&list)?;
        let each = |variable: &str| -> Result<Option<Vec<u32>>, String> {
            let Some(text) = environment(variable) else {
                return Ok(None);
            };
            let all = counts(&text)?;
            if all.len() != names.len() {
                return Err(format!(
                    "{variable}={text} does not match SLURM_JOB_NODELIST={list}"
                ));
            }
            Ok(Some(all))
        };
        let tasks = each("SLURM_TASKS_PER_NODE")?;
        let processors = each("SLURM_JOB_CPUS_PER_NODE")?
            .or_else(|| tasks.clone())
            .ok_or("the variable SLURM_JOB_CPUS_PER_NODE is missing")?;
        let number = |variable: &str| environment(variable).and_then(|text| text.parse().ok());
        let per_task = number("SLURM_CPUS_PER_TASK").unwrap_or(1).max(1);
        // If no number of tasks was requested, Slurm says one task per node.
        let asked =
            environment("SLURM_NTASKS").is_some() || environment("SLURM_NTASKS_PER_NODE").is_some();
        let slots = match tasks.filter(|_| asked) {
            Some(tasks) => tasks,
            None => processors.iter().map(|&all| all / per_task).collect(),
        };
        let nodes = names
            .into_iter()
            .zip(slots)
            .zip(processors)
            .map(|((name, slots), processors)| Node {
                name,
                slots: slots.max(1),
                processors: processors.max(1),
            })
            .collect();
        Ok(Some(Self { job, nodes }))
    }

    /// Returns how many tasks may be started in all.
    pub fn slots(&self) -> u32 {
        self.nodes
            .iter()
            .fold(0, |sum, node| sum.saturating_add(node.slots))
    }
}

/// Variables of a job's environment that set options for its steps. They must not affect a step of one process that
/// only carries bytes.
pub const OF_ONE_STEP: [&str; 26] = [
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NNODES",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_CORE",
    "SLURM_NTASKS_PER_SOCKET",
    "SLURM_NTASKS_PER_GPU",
    "SLURM_CPUS_PER_TASK",
    "SRUN_CPUS_PER_TASK",
    "SLURM_TRES_PER_TASK",
    "SLURM_GPUS_PER_TASK",
    "SLURM_DISTRIBUTION",
    "SLURM_HINT",
    "SLURM_THREADS_PER_CORE",
    "SLURM_EXACT",
    "SLURM_EXCLUSIVE",
    "SLURM_CORE_SPEC",
    "SLURM_LABELIO",
    "SLURM_STDINMODE",
    "SLURM_STDOUTMODE",
    "SLURM_STDERRMODE",
    "SLURM_MULTI_PROG",
    "SLURM_WAIT",
    "SLURM_KILL_BAD_EXIT",
    "SLURM_CPU_BIND",
    "SLURM_DEBUG",
];

/// Returns whether a variable of a process in a step describes that step, its node, or the resources given to it there.
pub fn is_of_step(name: &str) -> bool {
    const EXACT: [&str; 13] = [
        "SLURMD_NODENAME",
        "SLURM_NODEID",
        "SLURM_PROCID",
        "SLURM_LOCALID",
        "SLURM_GTIDS",
        "SLURM_TASK_PID",
        "SLURM_STEPID",
        "SLURM_CPUS_ON_NODE",
        "SLURM_TOPOLOGY_ADDR",
        "CUDA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "ZE_AFFINITY_MASK",
        "GPU_DEVICE_ORDINAL",
    ];
    EXACT.contains(&name)
        || ["SLURM_STEP_", "SLURM_CPU_BIND", "SLURM_SRUN_COMM_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Result<Option<Allocation>, String> {
        Allocation::find(&|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn slots(variables: &[(&str, &str)]) -> Vec<u32> {
        let of_job = [("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "n[1-2]")];
        let found = find(&[&of_job, variables].concat()).expect("sense");
        let nodes = found.expect("an allocation").nodes;
        nodes.iter().map(|node| node.slots).collect()
    }

    #[test]
    fn outside_there_is_none() {
        assert_eq!(find(&[("SLURM_CONF", "/etc/slurm.conf")]), Ok(None));
    }

    #[test]
    fn tasks_are_counted_as_they_were_asked_for() {
        let asked = [
            ("SLURM_NTASKS", "3"),
            ("SLURM_TASKS_PER_NODE", "2,1"),
            ("SLURM_JOB_CPUS_PER_NODE", "4(x2)"),
        ];
        assert_eq!(slots(&asked), [2, 1]);
        // No number of tasks was requested: the processors count.
        assert_eq!(slots(&asked[1..]), [4, 4]);
        let threaded = [("SLURM_CPUS_PER_TASK", "3"), asked[1], asked[2]];
        assert_eq!(slots(&threaded), [1, 1]);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let error = find(&[
            ("SLURM_JOB_ID", "7"),
            ("SLURM_JOB_NODELIST", "n[1-2]"),
            ("SLURM_JOB_CPUS_PER_NODE", "4(x3)"),
        ]);
        assert!(error.is_err_and(|error| error.contains("4(x3)")));
    }
}
