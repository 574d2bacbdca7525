//! Python programs, and the MPI for which their mpi4py was built.
//!
//! mpi4py is built for one MPI's interface, or for several, of which it selects one when it is imported. With an MPI
//! other than Regatta each task would be a world of its own. So the interfaces are determined from the files of the
//! interpreter that is to be started. Then the tasks get the location of Regatta's library for one of them, or the user
//! gets an error with a remedy. Nothing is executed for that, and if nothing is found, nothing is reported.

mod folders;
mod mpi4py;
mod script;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::find;
use crate::libraries::{self, Variable};
use crate::refusal::{Refusal, STATUS_NOT_EXECUTABLE};
use mpi4py::{Choice, Mpi4py, Ours};

/// The variables with which a user selects mpi4py's library, or an interface. If the user has set one, it is not
/// changed.
const LIBRARY: &str = "MPI4PY_LIBMPI";
const INTERFACE: &str = "MPI4PY_MPIABI";

/// Returns the environment with what the mpi4py of a Python program needs to find Regatta's library. Refuses a program
/// that imports an mpi4py which cannot use it.
pub fn with_library(
    program: &Path,
    arguments: &[OsString],
    mut environment: Vec<Variable>,
) -> Result<Vec<Variable>, Refusal> {
    match choice(program, &environment) {
        None | Some(Choice::Nothing) => {}
        Some(Choice::Load(library)) => environment.push((LIBRARY.into(), library.into())),
        Some(Choice::Folder(folder)) => {
            environment = libraries::in_front(environment, [folder].into_iter());
        }
        Some(Choice::Mismatch(sentence)) => {
            if script::names(program, arguments, "mpi4py") {
                return Err(Refusal::new(STATUS_NOT_EXECUTABLE, sentence));
            }
        }
    }
    Ok(environment)
}

/// Returns the variables that a Python program needs in addition to those of this process and `added`. For programs
/// that are not started by a job's plan.
pub fn variables(
    program: &OsStr,
    arguments: &[OsString],
    added: &[Variable],
) -> Result<Vec<Variable>, Refusal> {
    let is_added = |name: &OsString| added.iter().any(|(known, _)| known == name);
    let before: Vec<Variable> = std::env::vars_os()
        .filter(|(name, _)| !is_added(name))
        .chain(added.iter().cloned())
        .collect();
    let before = libraries::with_libraries(before);
    let Ok(program) = find::find(program, libraries::value(&before, "PATH")) else {
        return Ok(Vec::new());
    };
    let mut after = with_library(&program, arguments, before.clone())?;
    after.retain(|variable| !before.contains(variable));
    Ok(after)
}

/// Returns why the tasks of a Python program have not joined, if its mpi4py is the reason.
pub(crate) fn reason(program: &Path) -> Option<String> {
    let environment: Vec<Variable> = std::env::vars_os().collect();
    match choice(program, &environment)? {
        Choice::Mismatch(sentence) => Some(sentence),
        _ => {
            let chosen = libraries::value(&environment, LIBRARY)?;
            let (program, chosen) = (program.display(), chosen.to_string_lossy());
            Some(format!(
                "{program} ended before it imported mpi4py.MPI, or mpi4py loaded the library named by {LIBRARY} ({chosen}), which is not Regatta's"
            ))
        }
    }
}

/// Returns what mpi4py needs, or `None` if the program is not in Python or has no mpi4py.
fn choice(program: &Path, environment: &[Variable]) -> Option<Choice> {
    let set = |name| libraries::value(environment, name);
    let interpreter = interpreter(program, set("PATH"))?;
    let found = Mpi4py::of(&interpreter, &folders::of(&interpreter, set)?)?;
    let chosen = [LIBRARY, INTERFACE]
        .into_iter()
        .any(|name| set(name).is_some());
    let preloaded = set("LD_PRELOAD").is_some_and(|all| all.to_string_lossy().contains("libmpi"));
    match preloaded {
        true => Some(Choice::Nothing),
        false => Some(found.choose(chosen, &Ours::beside_the_command())),
    }
}

/// Returns the interpreter that executes a program, by the path by which it is called.
fn interpreter(program: &Path, search: Option<&OsStr>) -> Option<PathBuf> {
    if is_python(program.file_name()?) {
        return Some(program.to_owned());
    }
    let mut words = find::first_line(program)?.into_iter();
    let mut called = PathBuf::from(words.next()?);
    if called.file_name()? == "env" {
        let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        called = find::find(name.as_ref(), search).ok()?;
    }
    is_python(called.file_name()?).then_some(called)
}

/// Returns whether this is the name of a Python interpreter: `python`, `python3`, `python3.13`, `python3.13t`.
fn is_python(name: &OsStr) -> bool {
    let version = name.to_str().and_then(|name| name.strip_prefix("python"));
    let version = version.map(|version| version.strip_suffix('t').unwrap_or(version));
    version.is_some_and(|version| version.bytes().all(|it| it.is_ascii_digit() || it == b'.'))
}

#[cfg(test)]
mod tests;
