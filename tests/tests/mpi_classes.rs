//! Invalid arguments of MPI calls return the error classes that the standard and other libraries give them.

use regatta_tests::mpi::play;

#[test]
fn wrong_arguments_have_their_classes() {
    play("classes", 1, "check");
    play("classes", 2, "check");
}
