//! NX programs in Fortran.

use regatta_tests::nx::{Folder, fortran_job};

#[test]
fn a_fortran_program_has_every_call() {
    let ended = fortran_job(3, "nx_fortran", &[]).run().passed();
    ended.said("all of it");
}

#[test]
fn the_files_of_nx_are_there_in_fortran() {
    let folder = Folder::new("fortran");
    let ended = fortran_job(3, "nx_ffiles", &[folder.path()]).run().passed();
    ended.said("all of it");
}
