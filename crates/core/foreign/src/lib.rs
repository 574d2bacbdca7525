//! Launchers of other systems, recognized by the environment of their processes.
//!
//! A launcher is recognized by variables that it sets for each process. One that has a [`StepSource`] gives its
//! processes enough information to become the tasks of one job ([`step()`]). The processes of any other launcher cannot
//! find each other: each of several would be a world of one, so they are refused. Nearly all launchers set a variable
//! to the number of processes. One that does not ([`Found::tasks`] is `None`) may or may not have started this process
//! alone.

#![forbid(unsafe_code)]

pub mod slurm;
mod step;

pub use step::{Names, Step, StepSource};

/// The variable with which a user states that each process of another launcher is to be a world of one.
pub const SINGLETON: &str = "REGATTA_SINGLETON";

/// A function that looks up a variable of the environment. It returns `None` if the variable is missing or empty.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Looks up a variable in this process's own environment.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A launcher, and the variables that it sets for its processes.
struct Launcher {
    name: &'static str,
    /// Variables each of which shows that the launcher has started the process.
    marks: &'static [&'static str],
    /// Variables with the number of processes; the first one that is set counts.
    sizes: &'static [&'static str],
    /// Prefixes of the names of the variables that it sets.
    prefixes: &'static [&'static str],
    /// Whether `srun` may set the marks, too, for programs that use PMI or PMIx. Then they do not prove that this
    /// launcher has started the process.
    may_be_set_by_srun: bool,
    /// How its processes learn of each other, if that suffices to make a job of them; the others are refused.
    steps: Option<&'static dyn StepSource>,
}

/// All known launchers. Among those without steps, the ones that state the number of their processes themselves come
/// first.
const LAUNCHERS: [Launcher; 13] = [
    Launcher {
        name: "Slurm's srun",
        marks: &["SLURM_STEP_ID"],
        sizes: &["SLURM_STEP_NUM_TASKS"],
        prefixes: &["SLURM_"],
        may_be_set_by_srun: false,
        steps: Some(&slurm::Srun),
    },
    Launcher {
        name: "Open MPI's mpirun",
        marks: &["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
        sizes: &["OMPI_COMM_WORLD_SIZE"],
        prefixes: &["OMPI_"],
        may_be_set_by_srun: false,
        steps: None,
    },
    Launcher {
        name: "MVAPICH's mpirun_rsh",
        marks: &["MV2_COMM_WORLD_RANK", "MVP_COMM_WORLD_RANK", "MPIRUN_RANK"],
        sizes: &[
            "MV2_COMM_WORLD_SIZE",
            "MVP_COMM_WORLD_SIZE",
            "MPIRUN_NPROCS",
        ],
        prefixes: &["MV2_", "MVP_", "MPIRUN_"],
        may_be_set_by_srun: false,
        steps: None,
    },
    Launcher {
        name: "IBM's jsrun",
        marks: &["JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"],
        sizes: &["JSM_NAMESPACE_SIZE"],
        prefixes: &["JSM_"],
        may_be_set_by_srun: false,
        steps: None,
    },
    Launcher {
        name: "Flux",
        marks: &["FLUX_TASK_RANK"],
        sizes: &["FLUX_JOB_SIZE"],
        prefixes: &["FLUX_"],
        may_be_set_by_srun: false,
        steps: None,
    },
    Launcher {
        name: "HTCondor's parallel universe",
        marks: &["_CONDOR_PROCNO"],
        sizes: &["_CONDOR_NPROCS"],
        prefixes: &["_CONDOR_"],
        may_be_set_by_srun: false,
        steps: None,
    },
    Launcher {
        name: "NEC MPI's mpirun",
        marks: &["MPIRANK"],
        sizes: &["MPISIZE"],
        prefixes: &["MPIRANK", "MPISIZE"],
        may_be_set_by_srun: false,
        steps: None,
    },
    Launcher {
        name: "Quadrics' prun",
        marks: &["RMS_RANK"],
        sizes: &["RMS_NPROCS"],
        prefixes: &["RMS_"],
        may_be_set_by_srun: false,
        steps: None,
    },
    Launcher {
        name: "a PMI launcher, such as MPICH's or Intel MPI's mpiexec",
        marks: &["PMI_RANK", "PMI_SIZE", "PMI_FD", "PMI_PORT"],
        sizes: &["PMI_SIZE"],
        prefixes: &["PMI_", "HYDI_", "MPI_"],
        may_be_set_by_srun: true,
        steps: None,
    },
    Launcher {
        name: "HPE's PALS",
        marks: &["PALS_RANKID"],
        sizes: &["PMI_SIZE"],
        prefixes: &["PALS_"],
        may_be_set_by_srun: true,
        steps: None,
    },
    Launcher {
        name: "Cray's aprun",
        marks: &["ALPS_APP_PE"],
        sizes: &["PMI_SIZE"],
        prefixes: &["ALPS_"],
        may_be_set_by_srun: false,
        steps: None,
    },
    Launcher {
        name: "HPE MPI's mpiexec_mpt",
        marks: &["MPT_LRANK"],
        sizes: &["PMI_SIZE"],
        prefixes: &["MPT_"],
        may_be_set_by_srun: false,
        steps: None,
    },
    Launcher {
        name: "a PMIx launcher, such as prterun",
        marks: &["PMIX_RANK", "PRTE_LAUNCHED"],
        sizes: &[
            "PMIX_JOB_SIZE",
            "OMPI_COMM_WORLD_SIZE",
            "JSM_NAMESPACE_SIZE",
            "FLUX_JOB_SIZE",
        ],
        prefixes: &["PMIX_", "PRTE_"],
        may_be_set_by_srun: true,
        steps: None,
    },
];

/// A launcher that has started this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The launcher's name, for messages.
    pub launcher: &'static str,
    /// The variable by which it was recognized, as `NAME=VALUE`.
    pub mark: String,
    /// How many processes it has started; `None` if unknown.
    pub tasks: Option<u32>,
}

impl Found {
    /// Returns the message: what was noticed, what it means, and the remedy.
    pub fn sentence(&self) -> String {
        let Found { launcher, mark, .. } = self;
        let (noticed, number) = match self.tasks {
            Some(tasks) => (
                format!(
                    "this process was started by {launcher} as one of {tasks} ({mark}), whose jobs Regatta cannot join: there would be {tasks} worlds of one task each"
                ),
                tasks.to_string(),
            ),
            None => (
                format!(
                    "this process was started by {launcher} ({mark}), whose jobs Regatta cannot join: if there are several processes, each would be a world of its own"
                ),
                "N".to_owned(),
            ),
        };
        format!(
            "{noticed}. Start the program with `regatta run -n {number} PROGRAM`, or set {SINGLETON}=allow if each process is meant to run alone"
        )
    }
}

/// Returns the step of several tasks in which this process was started, if its launcher has steps. An error says what
/// the launcher has not set.
pub fn step(environment: Environment) -> Result<Option<Step>, (Names, String)> {
    for source in sources() {
        let found = source.find(environment);
        if let Some(step) = found.map_err(|why| (source.names(), why))? {
            return Ok(Some(step));
        }
    }
    Ok(None)
}

/// Returns the launchers whose processes become the tasks of one job.
pub fn sources() -> impl Iterator<Item = &'static dyn StepSource> {
    LAUNCHERS.iter().filter_map(|launcher| launcher.steps)
}

/// Returns whether a launcher sets a variable of this name for its processes.
pub fn is_set_by_launcher(name: &str) -> bool {
    let mut prefixes = LAUNCHERS.iter().flat_map(|launcher| launcher.prefixes);
    prefixes.any(|prefix| name.starts_with(prefix))
}

/// Returns the launchers without steps that have started this process or an ancestor of it.
pub fn all(environment: Environment) -> Vec<Found> {
    let others = LAUNCHERS.iter().filter(|it| it.steps.is_none());
    let found = others.filter_map(|launcher| {
        let mut marks = launcher.marks.iter();
        let mark = marks.find_map(|&name| Some(format!("{name}={}", environment(name)?)))?;
        if launcher.may_be_set_by_srun && is_of_slurm(environment) {
            return None;
        }
        let mut sizes = launcher.sizes.iter();
        Some(Found {
            launcher: launcher.name,
            mark,
            tasks: sizes.find_map(|&name| environment(name)?.trim().parse().ok()),
        })
    });
    found.collect()
}

/// Returns the launcher that has started this process as one of several, or may have. If it has started this process
/// alone, the process is a world of one and is not reported.
pub fn of_several(environment: Environment) -> Option<Found> {
    let mut found = all(environment);
    let several = found.iter().position(|found| found.tasks > Some(1));
    let at = several.or_else(|| found.iter().position(|found| found.tasks.is_none()));
    at.map(|at| found.swap_remove(at))
}

/// Returns whether the variables of PMI and PMIx were set by the `srun` whose task this is. A launcher inside a step
/// overwrites them or sets its own in addition.
fn is_of_slurm(environment: Environment) -> bool {
    let (Some(job), Some(step)) = (environment("SLURM_JOB_ID"), environment("SLURM_STEP_ID"))
    else {
        return false;
    };
    // Each of these must agree with Slurm's value, if it is set.
    let agrees = |name: &str, slurm: Option<String>| {
        let said = environment(name);
        said.is_none() || said == slurm
    };
    let of_others = ["HYDI_CONTROL_FD", "PRTE_LAUNCHED"];
    agrees("PMIX_NAMESPACE", Some(format!("slurm.pmix.{job}.{step}")))
        && agrees("PMIX_RANK", environment("SLURM_PROCID"))
        && agrees("PMI_RANK", environment("SLURM_PROCID"))
        && agrees("PALS_RANKID", environment("SLURM_PROCID"))
        && agrees("PMI_SIZE", environment("SLURM_STEP_NUM_TASKS"))
        && of_others.iter().all(|name| environment(name).is_none())
}

#[cfg(test)]
mod tests;
