//! MPICH 4.0 as Debian builds it, ch4 over UCX: unpacked into the peers' folder, or installed in the system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Mark;
use anyhow::{Context, Result};

use super::{Facts, Job, Look, Machine, Peer, lacks_of_mpi, missing, mpich};
use crate::discover::{Competitor, c_compiler};
use crate::network::Network;
use crate::network::hosts::Hosts;
use crate::operations::{Need, Pattern};
use crate::prepare::quietly;
use crate::settings::{Resolved, Set, Tuning, When};

/// Its name in results.
pub const NAME: &str = "mpich-debian";
/// Path of its launcher below the root of the packages.
const LAUNCHER: &str = "usr/bin/mpiexec.hydra";

const TUNINGS: &[Tuning] = &[
    Tuning::local(
        When::Fits,
        &[],
        Set::Variable("UCX_TLS", "self,posix"),
        "no copy by the kernel: 64 KiB 1.8 us instead of 5.8, 16 MiB 580 us instead of 2030",
    ),
    Tuning::local(
        When::Fits,
        &[Pattern::Messages, Pattern::Barrier, Pattern::Broadcast],
        Set::Variable(mpich::NOLOCAL, "1"),
        "UCX instead of MPICH's own queue: barrier 0.17 us instead of 0.29; global-sum is slower with it",
    ),
    mpich::UCX_BY_TCP,
    mpich::NO_SHARED_MEMORY,
];

/// MPICH 4.0 of Debian.
#[derive(Debug)]
pub struct MpichDebian;

static FACTS: Facts = Facts {
    looks: &[Look::new(NAME, "MPICH (Debian)", "#0f758a", Mark::Cross)],
    libraries: &["libmpich."],
    lacks: |need| match need {
        Need::Windows => Some("transfers of MPICH 4.0 have not arrived when their flush returns"),
        Need::Spawning => Some("its MPI_Comm_spawn fails (\"Error in spawn call\")"),
        need => lacks_of_mpi(need),
    },
    crowded: Err(
        "never gives up a processor while it waits: a barrier of 32 tasks on 2 cores takes 0.3 s",
    ),
    starts_slowly: true,
    pinning: mpich::PINNING,
    tunings: TUNINGS,
    left_behind: mpich::LEFT_BEHIND,
    takes_package_lists: true,
    ..Facts::USUAL
};

impl Peer for MpichDebian {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn find(&'static self, machine: &Machine) -> Vec<Result<Competitor, String>> {
        let private = machine.peers.join(NAME).join("root");
        let found = [private, PathBuf::from("/")]
            .into_iter()
            .find_map(|root| below(&root));
        vec![found.ok_or_else(|| missing(NAME, "MPICH 4.0 of Debian, unpacked privately"))]
    }

    fn prepare(&self, peers: &Path) -> Option<Result<String>> {
        Some(unpack(peers))
    }

    fn path(&self, network: Network, settings: &Resolved) -> &'static str {
        match network {
            Network::Local => mpich::path(settings),
            _ => mpich::UCX_BETWEEN,
        }
    }

    fn launch(&self, job: &Job) -> Command {
        mpich::launch(job)
    }

    fn launch_between(&self, job: &Job, hosts: &Hosts) -> Command {
        mpich::launch_between(job, hosts)
    }
}

fn below(root: &Path) -> Option<Competitor> {
    let launcher = root.join(LAUNCHER);
    let library = folder_with(&root.join("usr/lib"), "libmpich.so")?;
    let include = root
        .join("usr/include")
        .join(library.file_name()?)
        .join("mpich");
    if !launcher.exists() || !include.join("mpi.h").exists() {
        return None;
    }
    let folder = library.to_string_lossy().into_owned();
    Some(Competitor {
        name: NAME.to_owned(),
        peer: &MpichDebian,
        tuned: true,
        compiler: c_compiler(),
        flags: vec![
            format!("-I{}", include.display()),
            // MPICH 4.0 defines MPI_STATUSES_IGNORE as an invalid pointer, about which gcc 12 warns.
            "-Wno-stringop-overflow".to_owned(),
            format!("-L{folder}"),
            format!("-Wl,-rpath,{folder}"),
            "-lmpich".to_owned(),
        ],
        launcher,
        arguments: Vec::new(),
        variables: vec![("LD_LIBRARY_PATH".to_owned(), folder)],
        on_request: false,
    })
}

/// Returns the subfolder (one per architecture) that contains a file.
fn folder_with(folder: &Path, file: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.join(file).exists())
}

/// Unpacks Debian's MPICH, its development files and the libraries that are missing here into the peers' folder.
/// Returns what was done.
fn unpack(peers: &Path) -> Result<String> {
    let folder = peers.join(NAME);
    let root = folder.join("root");
    if root.join(LAUNCHER).exists() || Path::new("/").join(LAUNCHER).exists() {
        return Ok("is here".to_owned());
    }
    let packages = needed_packages()
        .context("Debian's or Ubuntu's package lists are needed: `apt-get update`")?;
    fs::create_dir_all(&root)?;
    quietly(
        Command::new("apt-get")
            .arg("download")
            .args(&packages)
            .current_dir(&folder),
    )?;
    for entry in fs::read_dir(&folder)?.flatten() {
        if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "deb")
        {
            quietly(Command::new("dpkg").arg("-x").arg(entry.path()).arg(&root))?;
            fs::remove_file(entry.path())?;
        }
    }
    Ok(format!(
        "{} packages unpacked into {}",
        packages.len(),
        folder.display()
    ))
}

/// Returns the names of the packages that apt would install for mpich. The package of header files is added without its
/// own dependencies.
fn needed_packages() -> Result<Vec<String>> {
    let arguments = ["install", "--simulate", "--no-install-recommends", "mpich"];
    let plan = quietly(Command::new("apt-get").args(arguments))?;
    let names = plan
        .lines()
        .filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next());
    let mut packages: Vec<String> = names.map(str::to_owned).collect();
    packages.push("libmpich-dev".to_owned());
    Ok(packages)
}
