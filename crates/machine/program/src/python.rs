//! Programs in Python, and the MPI that their mpi4py was built for.
//!
//! mpi4py is built for one MPI's interface, or for several, of which it takes one when it is imported. With another MPI than
//! ours each task would be a world of its own. So the files of the interpreter that is to be started tell which interfaces there
//! are: the tasks are told where our library for one of them is, or the user is told what to do. Nothing is executed for that, and
//! where nothing is found nothing is said.

mod folders;
mod mpi4py;
mod script;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::find;
use crate::libraries::{self, Variable};
use crate::refusal::{Refusal, STATUS_NOT_EXECUTABLE};
use mpi4py::{Choice, Mpi4py, Ours};

/// Names the library that mpi4py is to load; the other one names an interface. A user who has set one of them has chosen.
const LIBRARY: &str = "MPI4PY_LIBMPI";
const INTERFACE: &str = "MPI4PY_MPIABI";

/// The environment with what the mpi4py of a program in Python needs to find our library. Refuses a program that imports one
/// which cannot.
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

/// Returns the variables that a program in Python needs beside those of this process and `added`. For programs that are not started by a job's plan.
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

/// Why the tasks of a program in Python have not joined, if its mpi4py is the reason.
pub(crate) fn reason(program: &Path) -> Option<String> {
    let environment: Vec<Variable> = std::env::vars_os().collect();
    match choice(program, &environment)? {
        Choice::Mismatch(sentence) => Some(sentence),
        _ => {
            let chosen = libraries::value(&environment, LIBRARY)?;
            let (program, chosen) = (program.display(), chosen.to_string_lossy());
            Some(format!(
                "{program} ended before it imported mpi4py.MPI, or mpi4py has loaded the library that {LIBRARY} names ({chosen}), which is not Regatta's"
            ))
        }
    }
}

/// None: the program is not in Python, or has no mpi4py.
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

/// The interpreter that executes a program, by the path by which it is called.
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

/// Returns whether this is the name of a Python: `python`, `python3`, `python3.13`, `python3.13t`.
fn is_python(name: &OsStr) -> bool {
    let version = name.to_str().and_then(|name| name.strip_prefix("python"));
    let version = version.map(|version| version.strip_suffix('t').unwrap_or(version));
    version.is_some_and(|version| version.bytes().all(|it| it.is_ascii_digit() || it == b'.'))
}

#[cfg(test)]
mod tests;
