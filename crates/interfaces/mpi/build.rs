//! MPI's constants, made of the table.

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=../mpi-table/table");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo's folder"));
    let text = regatta_mpi_table::constants_in_rust();
    std::fs::write(out.join("constants.rs"), text).expect("a file");
}
