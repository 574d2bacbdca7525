//! Programs that were built for an MPI whose interface Regatta does not have.
//!
//! Started by us, each task of such a program would be a world of its own: as many times the same work as there are tasks, and
//! nothing that tells of it. So it is refused before anything starts.

use std::path::Path;

use crate::elf;
use crate::refusal::{Refusal, STATUS_NOT_EXECUTABLE};

/// Refuses a program that is linked to the library of another MPI's own interface.
pub(crate) fn check(program: &Path) -> Result<(), Refusal> {
    let libraries = elf::needed(program).unwrap_or_default();
    match reason(&libraries) {
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

/// Why a program that needs these libraries cannot run here.
fn reason(libraries: &[String]) -> Option<String> {
    let linked = |part: &str| libraries.iter().find(|library| library.starts_with(part));
    let again = "compile it with the options of `pkg-config --cflags --libs regatta-mpi`, or start it with that library's mpirun";
    let standard = linked("libmpi_abi.so");
    let own = linked("libmpi.so.").or_else(|| linked("libmpich.so."))?;
    Some(match standard {
        Some(standard) => format!(
            "is linked to two MPIs, {standard} and {own}, of which only one can know the job: {again}"
        ),
        None if own.starts_with("libmpi.so.40") => format!(
            "was built for Open MPI ({own}), whose own interface has addresses of that library in it: {again}"
        ),
        None => format!("was built for the interface of MPICH ({own}): {again}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason_of(libraries: &[&str]) -> Option<String> {
        let libraries: Vec<String> = libraries.iter().map(|name| (*name).to_owned()).collect();
        reason(&libraries)
    }

    #[test]
    fn programs_of_other_mpis_are_refused_with_a_sentence() {
        assert_eq!(reason_of(&["libc.so.6"]), None);
        assert_eq!(reason_of(&["libmpi_abi.so.1", "libc.so.6"]), None);
        let said = reason_of(&["libmpi.so.40"]).expect("a reason");
        assert!(said.contains("Open MPI"), "{said}");
        let said = reason_of(&["libmpi.so.12"]).expect("a reason");
        assert!(said.contains("MPICH"), "{said}");
        let said = reason_of(&["libmpi_abi.so.1", "libmpi.so.12"]).expect("a reason");
        assert!(said.contains("two MPIs"), "{said}");
    }
}
