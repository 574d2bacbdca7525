//! The interfaces for which an mpi4py was built, and the consequence for a job.
//!
//! A package that was compiled on a machine has one module, linked to that machine's MPI library. A wheel has one
//! module for each interface, with the interface in the file's name, and loads the one that matches the library it
//! finds.

use std::path::{Path, PathBuf};

use super::folders::Folders;
use crate::elf;

/// An MPI's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interface {
    Standard,
    Mpich,
    OpenMpi,
}

/// A module of mpi4py.
#[derive(Debug)]
struct Module {
    file: PathBuf,
    interface: Interface,
    /// Whether it is one of several from which the package selects.
    is_choice: bool,
}

/// An installed mpi4py.
#[derive(Debug)]
pub(super) struct Mpi4py {
    interpreter: PathBuf,
    folder: PathBuf,
    modules: Vec<Module>,
}

/// The consequence for a job.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// It finds Regatta's library, or the user has selected one.
    Nothing,
    /// It must be told to load this file.
    Load(PathBuf),
    /// The loader must search this folder first.
    Folder(PathBuf),
    /// It cannot run here; the reason and the remedy.
    Mismatch(String),
}

/// Regatta's libraries, as far as they are installed.
#[derive(Debug, Default)]
pub(super) struct Ours {
    /// The library with the standard interface.
    pub(super) standard: Option<PathBuf>,
    /// The library with MPICH's interface.
    pub(super) mpich: Option<PathBuf>,
    /// The compiler for MPI programs.
    pub(super) compiler: Option<PathBuf>,
}

/// The possible locations of Regatta's libraries, relative to the command's directory.
const STANDARD: [&str; 3] = [
    "../lib/regatta-mpi/libmpi_abi.so.1",
    "libmpi_abi.so.1",
    "libmpi_abi.so",
];
const COMPILER: [&str; 1] = ["../lib/regatta/mpi/mpicc"];
const MPICH: [&str; 2] = ["../lib/regatta/mpich/libmpi.so.12", "mpich/libmpi.so.12"];

impl Ours {
    pub(super) fn beside_the_command() -> Ours {
        let command = std::env::current_exe().unwrap_or_default();
        let folder = command.parent().unwrap_or(Path::new("/"));
        let first = |places: &[&str]| {
            let mut files = places.iter().map(|place| folder.join(place));
            let file = files.find(|file| regatta_trust::check(file).is_ok())?;
            Some(file.parent()?.canonicalize().ok()?.join(file.file_name()?))
        };
        Ours {
            standard: first(&STANDARD),
            mpich: first(&MPICH),
            compiler: first(&COMPILER),
        }
    }
}

impl Mpi4py {
    /// Returns the first mpi4py in these folders, if it has a module for the interpreter.
    pub(super) fn of(interpreter: &Path, folders: &Folders) -> Option<Mpi4py> {
        let mut all = folders.all.iter().map(|folder| folder.join("mpi4py"));
        let folder = all.find(|folder| folder.join("__init__.py").is_file())?;
        let files = std::fs::read_dir(&folder).ok()?;
        let mut modules: Vec<Module> = files
            .flatten()
            .filter_map(|entry| module(entry.path(), folders.version.as_deref()))
            .collect();
        modules.sort_by(|one, other| one.file.cmp(&other.file));
        (!modules.is_empty()).then_some(Mpi4py {
            interpreter: interpreter.to_owned(),
            folder,
            modules,
        })
    }

    /// Returns the consequence, given whether the user has selected a library and which of Regatta's libraries exist.
    pub(super) fn choose(&self, chosen: bool, ours: &Ours) -> Choice {
        if let Some(module) = self.modules.iter().find(|module| !module.is_choice) {
            return self.of_linked(module, ours);
        }
        let has = |interface| {
            self.modules
                .iter()
                .any(|module| module.interface == interface)
        };
        let standard = ours.standard.as_ref().filter(|_| has(Interface::Standard));
        let mpich = ours.mpich.as_ref().filter(|_| has(Interface::Mpich));
        match standard.or(mpich) {
            _ if chosen => Choice::Nothing,
            Some(library) => Choice::Load(library.clone()),
            None => {
                let names: Vec<&str> = self.modules.iter().map(|it| it.interface.name()).collect();
                self.mismatch(&names.join(" and "), ours)
            }
        }
    }

    /// Returns the consequence for a package that is linked to one library.
    fn of_linked(&self, module: &Module, ours: &Ours) -> Choice {
        let library = match module.interface {
            Interface::OpenMpi => None,
            Interface::Mpich => ours.mpich.as_ref(),
            Interface::Standard => ours.standard.as_ref(),
        };
        let linked = elf::linked(&module.file).unwrap_or_default();
        let found = library.and_then(|library| Some((library, library.parent()?)));
        let Some((library, folder)) = found else {
            // Without a library of Regatta the loader finds another one by itself, or none.
            return match module.interface {
                Interface::Standard => Choice::Nothing,
                other => self.mismatch(other.name(), ours),
            };
        };
        let own_names = linked
            .needed
            .iter()
            .filter(|name| name.starts_with("libmpi"));
        let hidden = own_names
            .clone()
            .find_map(|name| first_of(&linked.first, &module.file, name));
        if let Some(hidden) = hidden.filter(|hidden| !is_same(hidden, library)) {
            return Choice::Mismatch(format!(
                "the mpi4py in {} names {} in its RPATH, which the loader searches first, so it would not join this job: start it with LD_PRELOAD={}, or remove the RPATH from {} (patchelf --remove-rpath)",
                self.folder.display(),
                hidden.display(),
                library.display(),
                module.file.display(),
            ));
        }
        let mut there = own_names.map(|name| folder.join(name).exists());
        match module.interface {
            // That folder is in the loader's path in any case.
            Interface::Standard => Choice::Nothing,
            _ if there.all(|it| it) => Choice::Folder(folder.to_owned()),
            other => self.mismatch(other.name(), ours),
        }
    }

    fn mismatch(&self, interfaces: &str, ours: &Ours) -> Choice {
        let (folder, python) = (self.folder.display(), self.interpreter.display());
        let compiler = ours.compiler.as_deref().unwrap_or(Path::new("mpicc"));
        let compiler = compiler.display();
        Choice::Mismatch(format!(
            "the mpi4py in {folder} was built for {interfaces}, whose ABI Regatta does not provide here, so each task would be a world of its own: build it for Regatta with `MPICC={compiler} MPI4PY_BUILD_MPIABI=1 {python} -m pip install --no-cache-dir --force-reinstall --no-binary mpi4py mpi4py`, with Regatta's mpicc, or start it with that MPI's mpiexec"
        ))
    }
}

impl Interface {
    fn name(self) -> &'static str {
        match self {
            Interface::Standard => "the standard",
            Interface::Mpich => "MPICH",
            Interface::OpenMpi => "Open MPI",
        }
    }
}

/// Returns the module `MPI` for an interpreter's version, if the file is one.
fn module(file: PathBuf, version: Option<&str>) -> Option<Module> {
    let name = file.file_name()?.to_str()?;
    let middle = name.strip_prefix("MPI.")?.strip_suffix("so")?;
    let mut parts = middle.split('.').filter(|part| !part.is_empty()).peekable();
    let chosen = parts.peek().copied().and_then(|part| match part {
        "mpiabi" => Some(Interface::Standard),
        "mpich" | "impi" => Some(Interface::Mpich),
        "openmpi" => Some(Interface::OpenMpi),
        _ => None,
    });
    if chosen.is_some() {
        parts.next();
    }
    if !parts.all(|tag| is_of(tag, version)) {
        return None;
    }
    let linked = || {
        let needed = elf::needed(&file)?;
        needed.iter().find_map(|library| interface_of(library))
    };
    Some(Module {
        interface: chosen.or_else(linked)?,
        is_choice: chosen.is_some(),
        file,
    })
}

/// Returns whether a file with this tag, for example `cpython-311-x86_64-linux-gnu`, is for this version.
fn is_of(tag: &str, version: Option<&str>) -> bool {
    let (Some(rest), Some(version)) = (tag.strip_prefix("cpython-"), version) else {
        return true;
    };
    let digits = rest.split('-').next().unwrap_or_default();
    digits.trim_end_matches(|it: char| it.is_ascii_alphabetic()) == version.replace('.', "")
}

/// Returns the interface of a library, by its name.
fn interface_of(library: &str) -> Option<Interface> {
    if library.starts_with("libmpi_abi.so") {
        return Some(Interface::Standard);
    }
    if library.starts_with("libmpi.so.40") {
        return Some(Interface::OpenMpi);
    }
    let is_mpich = library.starts_with("libmpi.so.12") || library.starts_with("libmpich.so.12");
    is_mpich.then_some(Interface::Mpich)
}

/// Returns the file of this name in the first of these directories that has one.
fn first_of(directories: &str, module: &Path, name: &str) -> Option<PathBuf> {
    let origin = module
        .canonicalize()
        .ok()?
        .parent()?
        .to_string_lossy()
        .into_owned();
    let places = directories.split(':').filter(|place| !place.is_empty());
    places
        .map(|place| {
            place
                .replace("${ORIGIN}", &origin)
                .replace("$ORIGIN", &origin)
        })
        .map(|place| Path::new(&place).join(name))
        .find(|file| file.exists())
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
