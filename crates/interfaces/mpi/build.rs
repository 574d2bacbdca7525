//! Generates MPI's constants and the checks of arguments from the table.

use std::path::{Path, PathBuf};

use regatta_mpi_table::{checked, constants_in_rust, implemented};

fn main() {
    let calls = Path::new("src/calls");
    for path in [calls, Path::new("../mpi-table/table")] {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo's folder"));
    let write = |name, text| std::fs::write(out.join(name), text).expect("a file");
    write("constants.rs", constants_in_rust());
    write("checked.rs", checked(&implemented(calls)));
}
