//! Environments that run the very program of another one, so that nothing but the library differs: `mpich-abi` that of `regatta-mpi`, by the
//! standard ABI, and `regatta-mpich` that of `mpich`, by MPICH's.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::discover::Competitor;
use crate::settings::Family;

/// MPICH's library of the standard ABI.
pub const MPICH_ABI: &str = "mpich-abi";
/// Regatta's library of MPICH's ABI.
pub const REGATTA_MPICH: &str = "regatta-mpich";
/// That library as it is built, and as programs look for it.
const LIBRARY: &str = "libmpi_mpich.so";
const SONAME: &str = "libmpi.so.12";
/// Its folder where it is installed, below that of libregatta.so.
const INSTALLED: &str = "regatta/mpich";

/// The environment whose program this one runs, which may be its own.
pub fn source(competitor: &Competitor) -> &str {
    match competitor.name.as_str() {
        MPICH_ABI => "regatta-mpi",
        REGATTA_MPICH => "mpich",
        name => name,
    }
}

/// MPICH 5 by the standard ABI.
pub fn mpich_abi(peers: &Path) -> Option<Competitor> {
    let folder = peers.join("mpich");
    let (launcher, library) = (folder.join("bin/mpirun"), folder.join("lib"));
    let is_here = launcher.exists() && library.join("libmpi_abi.so.1").exists();
    is_here.then(|| Competitor {
        name: MPICH_ABI.to_owned(),
        family: Family::Mpich,
        tuned: true,
        compiler: folder.join("bin/mpicc_abi"),
        flags: Vec::new(),
        launcher,
        arguments: Vec::new(),
        variables: vec![("LD_LIBRARY_PATH".to_owned(), library.display().to_string())],
        on_request: true,
    })
}

/// Regatta with the program of this MPICH; `None` without its library.
pub fn regatta_mpich(regatta: &Competitor, mpich: &Competitor) -> Option<Competitor> {
    library(Path::new(&regatta.flags[0]))?;
    Some(Competitor {
        name: REGATTA_MPICH.to_owned(),
        family: Family::RegattaMpi,
        compiler: mpich.compiler.clone(),
        on_request: true,
        ..regatta.clone()
    })
}

/// The library beside libregatta.so, as it is built, or where it is installed.
fn library(folder: &Path) -> Option<PathBuf> {
    let files = [folder.join(LIBRARY), folder.join(INSTALLED).join(SONAME)];
    files.into_iter().find(|file| file.exists())
}

/// Gives the loader the libraries, in a folder of their own.
pub fn provide(programs: &Path, competitor: &Competitor) -> Result<()> {
    let folder = Path::new(&competitor.flags[0]);
    let library = library(folder).with_context(|| format!("{LIBRARY} has gone"))?;
    let links = links(programs);
    fs::create_dir_all(&links)?;
    let of_regatta = folder.join("libregatta.so");
    for (name, file) in [(SONAME, &library), ("libregatta.so.0", &of_regatta)] {
        let link = links.join(name);
        let _ = fs::remove_file(&link);
        symlink(fs::canonicalize(file)?, &link)?;
    }
    Ok(())
}

fn links(programs: &Path) -> PathBuf {
    programs.join("mpich-lib")
}

/// The variable by which the loader takes Regatta's library, not MPICH's.
pub fn loader(programs: &Path) -> (String, String) {
    let folder = links(programs).display().to_string();
    ("LD_LIBRARY_PATH".to_owned(), folder)
}
