//! Programs of NX in Fortran.

use regatta_tests::nx::fortran_job;

#[test]
fn a_fortran_program_has_every_call() {
    let ended = fortran_job(3, "nx_fortran").run().passed();
    ended.said("all of it");
}
