//! Regatta's library with MPICH's ABI, under the same program as `mpich`, so that only the library differs.

use std::path::Path;
use std::process::Command;

use super::Mark;
use anyhow::Result;

use super::regatta::{self, Library};
use super::{Facts, Job, Look, Machine, Peer, mpich};
use crate::discover::Competitor;
use crate::results::OURS;

/// Its name in results.
pub const NAME: &str = "regatta-mpich";
/// The soname of the library.
const SONAME: &str = "libmpi.so.12";
const LIBRARY: Library = Library {
    file: "libmpi_mpich.so",
    installed: ("regatta/mpich", SONAME),
    package: "regatta-mpi-mpich",
};

/// Programs of MPICH on Regatta's library.
#[derive(Debug)]
pub struct RegattaMpich;

static FACTS: Facts = Facts {
    looks: &[Look::new(NAME, "Regatta as MPICH", "#8a6fd1", Mark::Circle)],
    libraries: &["libmpi."],
    misses: regatta::misses,
    ours: true,
    pinning: regatta::PINNING,
    dealt: regatta::DEALT,
    ..Facts::USUAL
};

impl Peer for RegattaMpich {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    /// Finds it only if MPICH is found. Without MPICH it is not reported as missing.
    fn find(&'static self, machine: &Machine) -> Vec<Result<Competitor, String>> {
        let (Some(regatta), Some(mpich)) = (machine.named(OURS), machine.named(mpich::NAME)) else {
            return Vec::new();
        };
        let found = LIBRARY.competitor(NAME, &RegattaMpich, regatta);
        let with_its_compiler = found.map(|one| Competitor {
            compiler: mpich.compiler.clone(),
            ..one
        });
        with_its_compiler.ok().into_iter().map(Ok).collect()
    }

    fn program<'a>(&self, _competitor: &'a Competitor) -> &'a str {
        mpich::NAME
    }

    fn flags(&self, programs: &Path, competitor: &Competitor) -> Result<Vec<String>> {
        let links = programs.join(LINKS);
        let own = Path::new(&competitor.flags[0]).join(regatta::LIBRARY);
        regatta::link(&links, &[SONAME], &LIBRARY.get(competitor)?)?;
        regatta::link(&links, &["libregatta.so.0"], &own)?;
        Ok(Vec::new())
    }

    fn loader(&self, programs: &Path) -> Option<(String, String)> {
        let links = programs.join(LINKS).display().to_string();
        Some(("LD_LIBRARY_PATH".to_owned(), links))
    }

    fn launch(&self, job: &Job) -> Command {
        regatta::launch(job)
    }
}

/// Name of the folder of links through which the loader finds Regatta's library.
const LINKS: &str = "mpich-lib";
