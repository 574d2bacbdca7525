//! The other message-passing libraries that a race can compare with.

use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::tools::{first_line, install, output};

const AREA: &str = "peers";

pub fn findings() -> Vec<Finding> {
    vec![
        mpi("Open MPI", "(Open MPI)", "openmpi"),
        mpi("MPICH", "Version:", "mpich"),
        pvm(),
    ]
}

/// Returns the finding about an MPI library, which is recognized by a line that its `mpirun` prints.
fn mpi(name: &'static str, mark: &str, package: &str) -> Finding {
    let private = regatta_race::discover::default_peers()
        .join(package)
        .join("bin/mpirun");
    let commands = [
        private,
        PathBuf::from("mpirun"),
        PathBuf::from(format!("mpirun.{package}")),
    ];
    let found = commands.iter().find_map(|command| {
        let text = output(command, &["--version"])?;
        let line = text.lines().find(|line| line.contains(mark))?;
        Some((command, line.split_whitespace().last()?.to_owned()))
    });
    match found {
        Some((command, version)) => {
            Finding::ok(AREA, name, format!("{version} ({})", command.display()))
        }
        None => Finding::missing(AREA, name, "not installed; the race runs without it")
            .next("`regatta race prepare` installs it into a private folder"),
    }
}

fn pvm() -> Finding {
    let root = std::env::var_os("PVM_ROOT").map_or(PathBuf::from("/usr/lib/pvm3"), PathBuf::from);
    if !root.join("lib/pvmd").exists() {
        return Finding::missing(AREA, "PVM", "not installed; the race runs without it")
            .next(install("pvm pvm-dev"));
    }
    if !Path::new("/usr/include/pvm3.h").exists() && !root.join("include/pvm3.h").exists() {
        return Finding::missing(
            AREA,
            "PVM",
            format!("{} has the daemon but not the headers", root.display()),
        )
        .next(install("pvm-dev"));
    }
    let version = first_line("dpkg-query", &["-W", "-f=${Version}", "pvm"]).unwrap_or_default();
    Finding::ok(
        AREA,
        "PVM",
        format!("{version} ({})", root.display())
            .trim_start()
            .to_owned(),
    )
}
