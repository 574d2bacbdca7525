//! Datatypes of MPI: queries, messages, packing, and reduction operators.

use regatta_tests::mpi;

#[test]
fn types_tell_what_they_are() {
    mpi::play("types", 1, "facts");
    mpi::play("types", 1, "large");
    mpi::play("types", 1, "names");
}

#[test]
fn wrong_types_are_errors() {
    mpi::play("types", 1, "errors");
}

#[test]
fn types_have_attributes() {
    mpi::play("types", 1, "attributes");
}

#[test]
fn columns_travel_in_all_modes() {
    mpi::play("types", 1, "columns");
    mpi::play("types", 2, "columns");
    mpi::play("types", 3, "columns");
}

#[test]
fn irregular_types_travel() {
    mpi::play("types", 1, "irregular");
    mpi::play("types", 2, "irregular");
    mpi::play("types", 5, "irregular");
}

#[test]
fn parts_of_types_travel() {
    mpi::play("types", 1, "parts");
    mpi::play("types", 2, "parts");
    mpi::play("types", 2, "nobody");
    mpi::play("types", 3, "bottom");
}

#[test]
fn elements_are_packed() {
    mpi::play("packing", 2, "packed");
    mpi::play("packing", 1, "external");
}

#[test]
fn operators_combine_elements() {
    mpi::play("packing", 1, "operators");
}
