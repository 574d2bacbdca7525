//! MPICH 5 of PyPI, ch4 over UCX and libfabric, started by Hydra; also its library of the standard ABI, under the
//! program of `regatta-mpi`.

use std::path::Path;
use std::process::Command;

use super::Mark;
use anyhow::Result;

use super::{Facts, Job, Look, Machine, Peer, interfaces};
use crate::discover::Competitor;
use crate::network::Network;
use crate::network::hosts::Hosts;
use crate::operations::Pattern;
use crate::prepare;
use crate::settings::{NetworkScope, Resolved, Set, Tuning, When};

/// Its name in results.
pub const NAME: &str = "mpich";
const DEFAULT: &str = "mpich-default";
const ABI: &str = "mpich-abi";
/// The variable that names its network module.
const NETMOD: &str = "MPIR_CVAR_CH4_NETMOD";
/// The variable that disables its own shared memory.
pub const NOLOCAL: &str = "MPIR_CVAR_NOLOCAL";

const TUNINGS: &[Tuning] = &[
    Tuning::local(
        When::Always,
        &[Pattern::Spawning],
        Set::Variable(NETMOD, "ofi"),
        "100 tasks 2.8 s; with UCX 17 s by TCP, and by default a failure (\"Shared memory error\")",
    ),
    Tuning::local(
        When::Fits,
        &[Pattern::Messages],
        Set::Variable(NOLOCAL, "1"),
        "UCX instead of MPICH's own queue: 64 messages of 8 B 0.11 us each instead of 0.46; 8 B ping-pong the same",
    ),
    Tuning::local(
        When::Fits,
        &[Pattern::Messages],
        Set::Variable("UCX_TLS", "self,posix"),
        "no copy by the kernel: 1 MiB 29 us instead of 66, 16 MiB 560 us instead of 1900",
    ),
    Tuning::local(
        When::Crowded,
        &[],
        Set::Variable("MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD", "1000000000"),
        "its shared-memory collectives never yield: barrier of 32 tasks 0.76 ms instead of 68 ms without them",
    ),
    UCX_BY_TCP,
    Tuning {
        default_too: true,
        ..Tuning::network(
            NetworkScope::Loopback,
            When::Always,
            Set::Variable(NETMOD, "ofi"),
            "UCX cannot connect over 127.0.0.1",
        )
    },
    Tuning::network(
        NetworkScope::Hosts,
        When::Always,
        Set::Variable(NETMOD, "ofi"),
        "8 B between hosts 11.4 us instead of 14, 64 KiB 41 to 89 us instead of 90 to 107 with UCX",
    ),
    Tuning::network(
        NetworkScope::Network,
        When::Always,
        Set::Variable("FI_PROVIDER", "tcp"),
        "stated, not left to libfabric's guess; its provider sockets takes 16 us instead of 9 over 127.0.0.1",
    ),
    Tuning::network(
        NetworkScope::Network,
        When::Crowded,
        Set::Variable("MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD", "1000000000"),
        "its shared-memory collectives never yield: the same barrier 0.2 ms instead of 24 ms without them",
    ),
    NO_SHARED_MEMORY,
];

/// A setting of every MPICH.
pub const UCX_BY_TCP: Tuning = Tuning::all_networks(
    Set::Variable("UCX_TLS", "self,tcp"),
    "UCX sees that both hosts are one machine, and would take its shared memory instead of the network",
);
/// A setting of every MPICH over 127.0.0.1.
pub const NO_SHARED_MEMORY: Tuning = Tuning {
    default_too: true,
    ..Tuning::network(
        NetworkScope::Loopback,
        When::Always,
        Set::Variable(NOLOCAL, "1"),
        "no shared memory of MPICH's own, which this race is not about",
    )
};

/// MPICH 5.
#[derive(Debug)]
pub struct Mpich;

static FACTS: Facts = Facts {
    looks: &[
        Look::new(NAME, "MPICH", "#25935f", Mark::Diamond),
        Look::new(
            DEFAULT,
            "MPICH with its defaults",
            "#8d9410",
            Mark::DiamondOpen,
        ),
        Look::new(ABI, "MPICH, standard ABI", "#5c9a3f", Mark::Pentagon),
    ],
    libraries: &["libmpi.", "libmpi_abi."],
    starts_slowly: true,
    pinning: PINNING,
    tunings: TUNINGS,
    left_behind: LEFT_BEHIND,
    ..Facts::USUAL
};

impl Peer for Mpich {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn find(&'static self, machine: &Machine) -> Vec<Result<Competitor, String>> {
        let mut found = prepare::wheel_in(machine, NAME, DEFAULT, &Mpich, &[]);
        let folder = machine.peers.join(NAME);
        let library = folder.join("lib");
        if let Ok(mpich) = &found[0]
            && library.join("libmpi_abi.so.1").exists()
        {
            found.push(Ok(Competitor {
                name: ABI.to_owned(),
                compiler: folder.join("bin/mpicc_abi"),
                variables: vec![("LD_LIBRARY_PATH".to_owned(), library.display().to_string())],
                on_request: true,
                ..mpich.clone()
            }));
        }
        found
    }

    fn prepare(&self, peers: &Path) -> Option<Result<String>> {
        Some(prepare::wheel(peers, NAME))
    }

    fn program<'a>(&self, competitor: &'a Competitor) -> &'a str {
        match competitor.name.as_str() {
            ABI => interfaces::MPI.name,
            name => name,
        }
    }

    fn path(&self, network: Network, settings: &Resolved) -> &'static str {
        match network {
            Network::Local => path(settings),
            _ if settings.sets(NETMOD) => "ch4 over OFI tcp between hosts",
            _ => UCX_BETWEEN,
        }
    }

    fn launch(&self, job: &Job) -> Command {
        launch(job)
    }

    fn launch_between(&self, job: &Job, hosts: &Hosts) -> Command {
        launch_between(job, hosts)
    }
}

/// Prefixes of the names of files that killed tasks leave behind.
pub const LEFT_BEHIND: &[&str] = &["mpich_sh", "ucx_shm"];
/// The path of messages between hosts without OFI.
pub const UCX_BETWEEN: &str = "ch4 over UCX tcp between hosts";

/// Returns the path of messages on one host.
pub fn path(settings: &Resolved) -> &'static str {
    match settings.sets(NOLOCAL) {
        true => "ch4 over UCX posix, copied in and out",
        false => "ch4 shared memory (posix)",
    }
}

/// Hydra binds only when asked to.
pub const PINNING: [&[&str]; 2] = [&["-bind-to", "core"], &[]];

/// Returns the command that starts a job with Hydra.
pub fn launch(job: &Job) -> Command {
    job.under_launcher(&["-n", &job.tasks.to_string()])
}

/// Returns the command that starts a job with Hydra on several hosts.
pub fn launch_between(job: &Job, hosts: &Hosts) -> Command {
    if hosts.network == Network::Loopback {
        // There is one host, and the settings disable shared memory.
        return launch(job);
    }
    let (tasks, slots) = (job.tasks.to_string(), hosts.slots(job.tasks));
    let rsh = hosts.file("rsh").display().to_string();
    let by_ssh = ["-launcher", "ssh", "-launcher-exec", &rsh];
    job.under_launcher(&[&["-n", &tasks, "-hosts", &slots], &by_ssh[..]].concat())
}
