//! Generates the library's functions from the table, and sets how the library is linked: to libregatta.so, and with the
//! name from the standard.

use std::path::{Path, PathBuf};

fn main() {
    let calls = Path::new("../mpi/src/calls");
    for path in [calls, Path::new("../mpi-table/table")] {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    let implemented = regatta_mpi_table::implemented(calls);
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo's folder"));
    let front = regatta_mpi_table::front(&implemented);
    std::fs::write(out.join("front.rs"), front).expect("a file");
    regatta_unwinder::link();
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    // In cargo's target folder libregatta.so lies beside this library; when installed it lies one folder above.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN:$ORIGIN/..");
}
