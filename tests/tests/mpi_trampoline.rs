//! Programs that reach MPI through MPItrampoline, which looks up constants and functions in libmpiwrapper.so.

use regatta_tests::{Job, mpi_trampoline};

#[test]
fn a_program_that_looks_everything_up_has_the_mpi_of_the_standard_abi() {
    let library = mpi_trampoline::library();
    let library = library.to_str().expect("a path");
    Job::of(2, &mpi_trampoline::program(), &[library])
        .run()
        .passed();
}
