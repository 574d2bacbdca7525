//! Checks whether the loader of this host finds the libraries of Regatta to which a program is linked, and not those of
//! another MPI.
//!
//! The program must exist on each host under the same path. Regatta's libraries may be missing there, as the launcher
//! only sends its command. Checked before anything starts, this gives one error; otherwise each task would end with an
//! error of the loader.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::elf;
use crate::foreign_mpi::is_mpich;
use crate::libraries::{Variable, is_ours};
use crate::refusal::{Refusal, STATUS_NOT_FOUND};

/// Refuses a program if the loader says that one of Regatta's libraries is missing. Accepts it if the loader gives no
/// answer.
pub fn check(program: &Path, environment: &[Variable]) -> Result<(), Refusal> {
    let wanted = elf::needed(program).unwrap_or_default();
    if !wanted.iter().any(|name| is_ours(name)) {
        return Ok(());
    }
    let missing = list(program, environment)
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.trim().strip_suffix("=> not found"))
        .map(|name| name.trim().to_owned())
        .find(|name| is_ours(name));
    let Some(library) = missing else {
        return Ok(());
    };
    Err(Refusal::new(
        STATUS_NOT_FOUND,
        format!(
            "{} is linked to {library}, which the loader does not find there; install Regatta on that host, put the folder of the library in LD_LIBRARY_PATH, or link the program with the library's archive (.a)",
            program.display()
        ),
    ))
}

/// Refuses a program for which the loader finds another MPI's library with MPICH's interface: each of its tasks would
/// be alone.
pub(crate) fn check_mpich(program: &Path, environment: &[Variable]) -> Result<(), Refusal> {
    let listed = list(program, environment).unwrap_or_default();
    let found = listed.lines().find_map(|line| {
        let (name, rest) = line.trim().split_once(" => ")?;
        let (path, _) = rest.rsplit_once(" (")?;
        is_mpich(name).then_some(path)
    });
    let libraries = found.and_then(|path| elf::needed(Path::new(path)));
    match (found, libraries) {
        (Some(path), Some(libraries))
            if !libraries
                .iter()
                .any(|name| name.starts_with("libregatta.so")) =>
        {
            Err(Refusal::new(
                STATUS_NOT_FOUND,
                format!(
                    "{} is linked to MPICH's interface, and the loader finds {path} for it, which belongs to another MPI; start it with the mpirun of that MPI, or install Regatta (make install), whose folder lib/regatta/mpich has a library for such programs. If Regatta is installed, the program's RPATH names the other library's folder: remove it with patchelf --remove-rpath",
                    program.display()
                ),
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the libraries that glibc's loader would load, determined as ldd(1) does. Only glibc's loader, recognized by
/// its file name, is called: another loader would ignore the variable and run the program.
fn list(program: &Path, environment: &[Variable]) -> Option<String> {
    let loader = elf::loader(program)?;
    let name = Path::new(&loader).file_name()?.to_str()?;
    if !name.starts_with("ld-linux") && !name.starts_with("ld64") {
        return None;
    }
    let output = Command::new(&loader)
        .arg(program)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    String::from_utf8(output.stdout).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_others_are_none_of_our_business() {
        for program in ["/bin/sh", "/proc/version", "/does/not/exist"] {
            assert!(check(Path::new(program), &[]).is_ok());
        }
    }

    #[test]
    fn the_loader_lists_what_a_program_is_linked_to() {
        let listed = list(Path::new("/bin/sh"), &[]).expect("an answer of glibc's loader");
        assert!(listed.contains("libc.so.6 => /"), "{listed}");
    }
}
