//! The settings each environment is raced with, and the measurement behind each.
//!
//! Peers race at their best: for every kind of operation, the settings that were fastest when tried
//! on 2 cores of an AMD EPYC (Zen 5, one socket, virtual machine). That is more than a user could do in
//! one job, since settings belong to the whole job; so no peer loses for want of a setting. An
//! environment whose name ends in `-default` runs as it comes.

use crate::results::Setting;
use crate::{family, mpi_operations, portability};

/// Which launcher and which variables an environment understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Regatta's own C interface, started by `regatta run`.
    Regatta,
    /// Open MPI, started by its mpirun.
    OpenMpi,
    /// MPICH 5, ch4 over UCX and libfabric, started by Hydra.
    Mpich,
    /// MPICH 4.0 as Debian builds it, ch4 over UCX.
    Mpich4,
    /// PVM 3.4: a daemon, and tasks it spawns.
    Pvm,
    /// The program of PVM on Regatta's libraries.
    RegattaPvm,
    /// Programs of Intel's NX on Regatta's library, started by `regatta run`.
    RegattaNx,
    /// Programs of Express on Regatta's library, started by `regatta run`.
    RegattaExpress,
    /// Programs of MPI, compiled for its standard ABI, on Regatta's library, started by `regatta run`.
    RegattaMpi,
    /// No library: bare shared memory, or bare sockets.
    Limit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// There is a processor for each task.
    Fits,
    /// More tasks than processors.
    Crowded,
}

enum Set {
    Arguments(&'static [&'static str]),
    Variable(&'static str, &'static str),
}

struct Tuning {
    family: Family,
    when: When,
    /// Operations it is for; none: all.
    operations: &'static [&'static str],
    set: Set,
    reason: &'static str,
}

/// Settings made up for one launch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Resolved {
    /// Arguments of the launcher.
    pub arguments: Vec<String>,
    /// Variables of the tasks.
    pub variables: Vec<(String, String)>,
}

const MESSAGES: &[&str] = &["one-to-one", "exchange", "ring", "message-rate"];

const TUNINGS: &[Tuning] = &[
    Tuning {
        family: Family::OpenMpi,
        when: When::Always,
        operations: &[],
        set: Set::Arguments(&["--mca", "pml", "ob1", "--mca", "btl", "self,sm"]),
        reason: "no other transport to poll: barrier of 16 tasks 50 us instead of 60; 2 tasks the same",
    },
    Tuning {
        family: Family::OpenMpi,
        when: When::Fits,
        operations: &[],
        set: Set::Arguments(&["--mca", "smsc", "^cma"]),
        reason: "two copies at once instead of one by the kernel: 64 KiB 1.7 us instead of 5.3, 4 MiB 85 us instead of 260",
    },
    Tuning {
        family: Family::OpenMpi,
        when: When::Fits,
        operations: &[],
        set: Set::Arguments(&["--mca", "btl_sm_max_send_size", "65536"]),
        reason: "longer pieces: 4 MiB 79 us instead of 84; with 131072 75 us, but 16 MiB 530 us instead of 440",
    },
    Tuning {
        family: Family::OpenMpi,
        when: When::Fits,
        operations: &[],
        set: Set::Arguments(&["--mca", "btl_sm_eager_limit", "32768"]),
        reason: "no rendezvous below 32 KiB: 4 KiB 0.31 us instead of 0.42 (1.65 by default), 16 KiB 0.52 instead of 0.71",
    },
    Tuning {
        family: Family::OpenMpi,
        when: When::Fits,
        operations: &["broadcast"],
        set: Set::Arguments(&["--mca", "coll_sm_priority", "100"]),
        reason: "broadcast of 1 KiB 0.10 us instead of 0.19; other collectives are slower with it",
    },
    Tuning {
        family: Family::OpenMpi,
        when: When::Crowded,
        operations: &[],
        set: Set::Arguments(&["--mca", "mpi_yield_when_idle", "1"]),
        reason: "stated, not left to the launcher's guess; the same as its default when oversubscribed",
    },
    Tuning {
        family: Family::OpenMpi,
        when: When::Crowded,
        operations: &["concatenation"],
        set: Set::Arguments(&["--mca", "coll", "basic,libnbc"]),
        reason: "32 tasks: 8 B 115 us instead of 171, 1 KiB 274 us instead of 941",
    },
    Tuning {
        family: Family::OpenMpi,
        when: When::Fits,
        operations: &[mpi_operations::THREADS],
        set: Set::Arguments(&["--mca", "mpi_yield_when_idle", "1"]),
        reason: "threads of a task share a core: 8 B 0.19 us each, without it from 0.13 us to 36",
    },
    Tuning {
        family: Family::OpenMpi,
        when: When::Always,
        operations: &[family::SPAWN],
        set: Set::Arguments(&["--mca", "pml", "ob1", "--mca", "btl", "self,sm,tcp"]),
        reason: "TCP, since sm does not reach the tasks of a later launch: 10 tasks 0.64 s instead of 1.7 by default",
    },
    Tuning {
        family: Family::Mpich,
        when: When::Always,
        operations: &[family::SPAWN],
        set: Set::Variable("MPIR_CVAR_CH4_NETMOD", "ofi"),
        reason: "100 tasks 2.8 s; with UCX 17 s by TCP, and by default a failure (\"Shared memory error\")",
    },
    Tuning {
        family: Family::Mpich,
        when: When::Fits,
        operations: MESSAGES,
        set: Set::Variable("MPIR_CVAR_NOLOCAL", "1"),
        reason: "UCX instead of MPICH's own queue: 64 messages of 8 B 0.11 us each instead of 0.46; 8 B ping-pong the same",
    },
    Tuning {
        family: Family::Mpich,
        when: When::Fits,
        operations: MESSAGES,
        set: Set::Variable("UCX_TLS", "self,posix"),
        reason: "no copy by the kernel: 1 MiB 29 us instead of 66, 16 MiB 560 us instead of 1900",
    },
    Tuning {
        family: Family::Mpich,
        when: When::Crowded,
        operations: &[],
        set: Set::Variable("MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD", "1000000000"),
        reason: "its shared-memory collectives never yield: barrier of 32 tasks 0.76 ms instead of 68 ms without them",
    },
    Tuning {
        family: Family::Mpich4,
        when: When::Fits,
        operations: &[],
        set: Set::Variable("UCX_TLS", "self,posix"),
        reason: "no copy by the kernel: 64 KiB 1.8 us instead of 5.8, 16 MiB 580 us instead of 2030",
    },
    Tuning {
        family: Family::Mpich4,
        when: When::Fits,
        operations: &[
            "one-to-one",
            "exchange",
            "ring",
            "message-rate",
            "barrier",
            "broadcast",
        ],
        set: Set::Variable("MPIR_CVAR_NOLOCAL", "1"),
        reason: "UCX instead of MPICH's own queue: barrier 0.17 us instead of 0.29; global-sum is slower with it",
    },
    Tuning {
        family: Family::Pvm,
        when: When::Always,
        operations: &[],
        set: Set::Arguments(&["pvm_setopt(PvmRoute, PvmRouteDirect)"]),
        reason: "tasks talk to each other, not through the daemon; pvm_psend and pvm_precv, which neither pack nor convert",
    },
    Tuning {
        family: Family::RegattaPvm,
        when: When::Always,
        operations: &[],
        set: Set::Arguments(&["pvm_setopt(PvmRoute, PvmRouteDirect)"]),
        reason: "the same program as on PVM; Regatta has one route only",
    },
];

impl Family {
    /// Is the program launched itself, and starts its other tasks?
    pub fn starts_itself(self) -> bool {
        matches!(self, Family::Pvm | Family::RegattaPvm | Family::Limit)
    }

    /// Is the program started by `regatta run`?
    pub fn is_started_by_regatta(self) -> bool {
        matches!(
            self,
            Family::Regatta | Family::RegattaNx | Family::RegattaExpress | Family::RegattaMpi
        )
    }
}

/// The settings for one operation with as many tasks as fit, or more.
pub fn resolve(family: Family, tuned: bool, operation: &str, crowded: bool) -> Resolved {
    let mut resolved = match operation {
        family::SPAWN => unpinned(family),
        // It binds the host and the nodes that this starts, each by itself.
        name if portability::has_host(name) && family.is_started_by_regatta() => {
            Resolved::default()
        }
        _ => pinning(family, crowded),
    };
    for tuning in TUNINGS
        .iter()
        .filter(|t| tuned && applies(t, family, operation, crowded))
    {
        match tuning.set {
            // PVM's tuning is part of its adapter: there is no launcher to tell.
            Set::Arguments(_) if family.starts_itself() => {}
            Set::Arguments(arguments) => resolved
                .arguments
                .extend(arguments.iter().map(|a| (*a).to_owned())),
            Set::Variable(name, value) => {
                resolved.variables.push((name.to_owned(), value.to_owned()))
            }
        }
    }
    resolved
}

fn applies(tuning: &Tuning, family: Family, operation: &str, crowded: bool) -> bool {
    tuning.family == family
        && match tuning.operations {
            // A trial between tasks of one launch says nothing about the tasks that one of them starts.
            [] => operation != family::SPAWN,
            operations => operations.contains(&operation),
        }
        && match tuning.when {
            When::Always => true,
            When::Fits => !crowded,
            When::Crowded => crowded,
        }
}

/// A processor of its own for each task while there are enough. In a crowd each environment's best: blocks of
/// neighbours on a core for Regatta (its default) and Open MPI (32 tasks, 2 cores: ring 380 us against 475 unbound).
fn pinning(family: Family, crowded: bool) -> Resolved {
    let arguments: &[&str] = match (family, crowded) {
        (Family::OpenMpi, false) => &["--bind-to", "core"],
        (Family::OpenMpi, true) => &[
            "--map-by",
            "core:OVERSUBSCRIBE",
            "--bind-to",
            "core:overload-allowed",
        ],
        (Family::Mpich | Family::Mpich4, false) => &["-bind-to", "core"],
        (family, false) if family.is_started_by_regatta() => &["--bind", "core"],
        // Hydra binds only when told; the adapters of PVM and limit pin tasks themselves.
        _ => &[],
    };
    Resolved {
        arguments: arguments.iter().map(|a| (*a).to_owned()).collect(),
        variables: Vec::new(),
    }
}

/// For one task that starts others. Open MPI would put them all on its core (10 tasks 0.79 s against 0.27 unbound); Regatta
/// binds by itself, the others do not bind.
fn unpinned(family: Family) -> Resolved {
    let arguments: &[&str] = match family {
        Family::OpenMpi => &["--map-by", "core:OVERSUBSCRIBE", "--bind-to", "none"],
        _ => &[],
    };
    Resolved {
        arguments: arguments.iter().map(|a| (*a).to_owned()).collect(),
        variables: Vec::new(),
    }
}

/// All settings of an environment, for the results file and the table.
pub fn describe(family: Family, tuned: bool) -> Vec<Setting> {
    let pinned = [false, true].into_iter().filter_map(|crowded| {
        let arguments = pinning(family, crowded).arguments;
        (!arguments.is_empty()).then(|| Setting {
            setting: arguments.join(" "),
            when: if crowded {
                "tasks > cores"
            } else {
                "tasks <= cores"
            }
            .to_owned(),
            reason: match crowded {
                false => "all environments alike: a core per task",
                true => "best of those tried",
            }
            .to_owned(),
        })
    });
    let tunings = TUNINGS
        .iter()
        .filter(|t| tuned && t.family == family)
        .map(|tuning| Setting {
            setting: match tuning.set {
                Set::Arguments(arguments) => arguments.join(" "),
                Set::Variable(name, value) => format!("{name}={value}"),
            },
            when: when_text(tuning),
            reason: tuning.reason.to_owned(),
        });
    let alone = unpinned(family).arguments;
    let unpinned = (!alone.is_empty()).then(|| Setting {
        setting: alone.join(" "),
        when: format!("{} only", family::SPAWN),
        reason: "tasks bound to the core of the one that starts them take three times as long"
            .to_owned(),
    });
    pinned.chain(unpinned).chain(tunings).collect()
}

/// Which way messages go by these settings, for libraries that do not tell.
pub fn path(family: Family, resolved: &Resolved) -> &'static str {
    let ucx = resolved
        .variables
        .iter()
        .any(|(name, _)| name == "MPIR_CVAR_NOLOCAL");
    let no_cma = resolved.arguments.iter().any(|argument| argument == "^cma");
    match family {
        Family::OpenMpi if no_cma => "ob1 over btl sm, copied in and out",
        Family::OpenMpi => "ob1 over btl sm, long messages copied once by the kernel (CMA)",
        Family::Mpich | Family::Mpich4 if ucx => "ch4 over UCX posix, copied in and out",
        Family::Mpich | Family::Mpich4 => "ch4 shared memory (posix)",
        Family::Regatta
        | Family::RegattaNx
        | Family::RegattaExpress
        | Family::RegattaMpi
        | Family::Pvm
        | Family::RegattaPvm
        | Family::Limit => "",
    }
}

fn when_text(tuning: &Tuning) -> String {
    let when = match tuning.when {
        When::Always => "always",
        When::Fits => "tasks <= cores",
        When::Crowded => "tasks > cores",
    };
    match tuning.operations {
        [] => when.to_owned(),
        operations => format!("{when}; {}", operations.join(", ")),
    }
}

/// Does the environment take part when there are more tasks than processors?
pub fn takes_part_crowded(family: Family) -> Result<(), &'static str> {
    match family {
        Family::Mpich4 => Err(
            "never gives up a processor while it waits: a barrier of 32 tasks on 2 cores takes 0.3 s",
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_as_it_comes_has_only_its_pinning() {
        assert_eq!(
            resolve(Family::OpenMpi, false, "broadcast", false).arguments,
            ["--bind-to", "core"]
        );
        assert_eq!(describe(Family::OpenMpi, false).len(), 3);
    }

    #[test]
    fn settings_follow_operation_and_crowding() {
        let broadcast = resolve(Family::OpenMpi, true, "broadcast", false);
        let barrier = resolve(Family::OpenMpi, true, "barrier", false);
        assert_ne!(broadcast, barrier);
        assert!(broadcast.arguments.contains(&"coll_sm_priority".to_owned()));
        let crowded = resolve(Family::Mpich, true, "barrier", true);
        assert_eq!(
            crowded.variables[0].0,
            "MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD"
        );
    }

    #[test]
    fn a_task_that_starts_others_has_settings_of_its_own() {
        let spawn = resolve(Family::OpenMpi, true, "spawn", true).arguments;
        assert!(spawn.contains(&"self,sm,tcp".to_owned()) && spawn.contains(&"none".to_owned()));
        assert!(!spawn.contains(&"self,sm".to_owned()), "{spawn:?}");
        for operation in ["spawn", "host-broadcast"] {
            assert_eq!(
                resolve(Family::Regatta, true, operation, false),
                Resolved::default()
            );
        }
        assert_eq!(
            resolve(Family::RegattaNx, true, "barrier", false).arguments,
            ["--bind", "core"]
        );
    }

    #[test]
    fn every_setting_has_a_reason() {
        for family in [
            Family::OpenMpi,
            Family::Mpich,
            Family::Mpich4,
            Family::Pvm,
            Family::RegattaPvm,
        ] {
            assert!(
                describe(family, true)
                    .iter()
                    .all(|s| !s.reason.is_empty() && !s.when.is_empty())
            );
        }
    }
}
