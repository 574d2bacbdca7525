//! Programs that were built for an MPI whose interface Regatta does not have.
//!
//! If Regatta started such a program, each task would be a world of its own: the same work would be done once per task,
//! without any notice. So the program is refused before anything starts. Programs for MPICH's interface run on
//! Regatta's library for it, if the loader finds that ([`crate::loaded`]).

use std::path::Path;

use crate::libraries::Variable;
use crate::refusal::{Refusal, STATUS_NOT_EXECUTABLE};
use crate::{elf, loaded};

/// How to get a program to use an MPI that works here.
const REBUILD_ADVICE: &str = "compile it with the options of `pkg-config --cflags --libs regatta-mpi`, or start it with that library's mpirun";
/// Words that every program with MPICH inside contains: prefixes of the variables that MPICH reads.
const MPICH_WORDS: [&[u8]; 2] = [b"MPIR_CVAR_", b"PMI_RANK"];

/// Refuses a program that is linked to a library with another MPI's own interface, or has an MPI inside, or for which
/// the loader finds a library of MPICH's interface that is not Regatta's.
pub(crate) fn check(program: &Path, environment: &[Variable]) -> Result<(), Refusal> {
    let libraries = elf::needed(program).unwrap_or_default();
    let has = |words: &[&[u8]]| elf::contains(program, words);
    let reason = match reason(&libraries, has) {
        None if libraries.is_empty() && elf::is_static(program) && has(&MPICH_WORDS) => {
            Some(format!("is statically linked with MPICH: {REBUILD_ADVICE}"))
        }
        reason => reason,
    };
    match reason {
        None if libraries.iter().any(|it| is_mpich(it)) => {
            loaded::check_mpich(program, environment)
        }
        None => Ok(()),
        Some(reason) => {
            let program = program.display();
            Err(Refusal::new(
                STATUS_NOT_EXECUTABLE,
                format!("{program} {reason}"),
            ))
        }
    }
}

/// Returns whether a file of this name is a library with MPICH's ABI.
pub(crate) fn is_mpich(library: &str) -> bool {
    library.starts_with("libmpi.so.12") || library.starts_with("libmpich.so.12")
}

/// Returns why a program that needs these libraries, and contains these words, cannot run here, if there is a reason.
fn reason(libraries: &[String], has: impl Fn(&[&[u8]]) -> bool) -> Option<String> {
    let linked = |part: &str| libraries.iter().find(|library| library.starts_with(part));
    let standard = linked("libmpi_abi.so");
    let own = linked("libmpi.so.").or_else(|| linked("libmpich.so."))?;
    if let Some(standard) = standard {
        return Some(format!(
            "is linked to two MPI libraries, {standard} and {own}, of which only one can join the job: {REBUILD_ADVICE}"
        ));
    }
    // Open MPI 1.10 had the same version number as MPICH's interface.
    let open = b"ompi_mpi_comm_world".as_slice();
    if own.starts_with("libmpi.so.40") || own.starts_with("libmpi.so.20") || has(&[open]) {
        return Some(format!(
            "was built for Open MPI ({own}), whose ABI contains addresses of that library: {REBUILD_ADVICE}"
        ));
    }
    if !is_mpich(own) {
        return Some(format!(
            "was built for the ABI of another MPI library ({own}): {REBUILD_ADVICE}"
        ));
    }
    let fortran = linked("libmpifort.so").or_else(|| linked("libmpichfort.so"));
    match fortran {
        // Compiler wrappers link programs in C to it, too.
        Some(library) if has(&[b"\0mpi_init_\0"]) || has(&[b"\0mpi_init_thread_\0"]) => {
            Some(format!(
                "is a Fortran program for the ABI of MPICH ({library}), of which Regatta supports only C programs: start it with that library's mpirun"
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason_of(libraries: &[&str], words: &[&[u8]]) -> Option<String> {
        let libraries: Vec<String> = libraries.iter().map(|name| (*name).to_owned()).collect();
        reason(&libraries, |wanted| {
            wanted.iter().all(|word| words.contains(word))
        })
    }

    #[test]
    fn programs_of_other_mpis_are_refused_with_a_sentence() {
        assert_eq!(reason_of(&["libc.so.6"], &[]), None);
        assert_eq!(reason_of(&["libmpi_abi.so.1", "libc.so.6"], &[]), None);
        let said = reason_of(&["libmpi.so.40"], &[]).expect("a reason");
        assert!(said.contains("Open MPI"), "{said}");
        let said = reason_of(&["libmpi.so.12"], &[b"ompi_mpi_comm_world"]).expect("a reason");
        assert!(said.contains("Open MPI"), "{said}");
        let said = reason_of(&["libmpi.so.1"], &[]).expect("a reason");
        assert!(said.contains("another MPI"), "{said}");
        let said = reason_of(&["libmpi_abi.so.1", "libmpi.so.12"], &[]).expect("a reason");
        assert!(said.contains("two MPI libraries"), "{said}");
    }

    #[test]
    fn programs_of_mpich_run_unless_they_are_in_fortran() {
        assert_eq!(reason_of(&["libmpi.so.12"], &[]), None);
        assert_eq!(reason_of(&["libmpich.so.12", "libc.so.6"], &[]), None);
        let both = ["libmpifort.so.12", "libmpi.so.12"];
        assert_eq!(reason_of(&both, &[]), None);
        let said = reason_of(&both, &[b"\0mpi_init_\0"]).expect("a reason");
        assert!(said.contains("Fortran"), "{said}");
    }
}
