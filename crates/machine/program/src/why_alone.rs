//! Explains why the tasks of a program have not joined their job.

use std::path::Path;

use crate::foreign_mpi::is_mpich;
use crate::{elf, find, python};

/// Returns why a program does not join, as far as its file shows.
pub fn why_alone(name: &str, path: &Path) -> String {
    if let Some(reason) = python::reason(path) {
        return reason;
    }
    if find::interpreter(path).is_some() {
        return format!("{name} is a script, and the program that it starts does not use Regatta");
    }
    let libraries = elf::needed(path).unwrap_or_default();
    let linked = |part: &str| libraries.iter().find(|library| library.starts_with(part));
    if linked("libmpi_abi").is_some() {
        return format!(
            "{name} is linked to libmpi_abi, but ended before it called MPI_Init, or the loader found another MPI's library of that name; put Regatta's folder lib/regatta-mpi first in LD_LIBRARY_PATH"
        );
    }
    if let Some(library) = libraries.iter().find(|it| is_mpich(it)) {
        return format!(
            "{name} is linked to {library}, but ended before it called MPI_Init, or the loader found another MPI's library of that name; put Regatta's folder lib/regatta/mpich first in LD_LIBRARY_PATH"
        );
    }
    if let Some(library) = linked("libmpi") {
        return format!(
            "{name} is linked to {library}, another message-passing library: start it with that library's mpirun"
        );
    }
    if let Some(library) = linked("libpvm3").or_else(|| linked("libgpvm3")) {
        return format!(
            "{name} is linked to {library}: either it ended before it called PVM, or the loader found the original PVM's library, which has its own daemon; put the folder of Regatta's PVM library first in LD_LIBRARY_PATH"
        );
    }
    if linked("libnx").is_some() {
        return format!("{name} is linked to libnx, but ended before it called NX");
    }
    if linked("libregatta").is_some() {
        return format!("{name} is linked to libregatta, but ended before it called rg_init");
    }
    format!(
        "{name} is not a Regatta program (it is not linked to libregatta), or ended before it called rg_init"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_linked_to_nothing_of_ours_is_said_to_be_none_of_ours() {
        let said = why_alone("sh", Path::new("/bin/sh"));
        assert!(said.starts_with("sh is not a Regatta program"), "{said}");
    }
}
