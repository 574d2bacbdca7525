//! Generates the library's functions and constants from the table, and sets how the library is linked: to
//! libregatta.so, and with the name that MPICH's programs expect.

use std::path::{Path, PathBuf};

use regatta_mpi_table::{implemented, mpich};

fn main() {
    let (calls, own) = (Path::new("../mpi/src/calls"), Path::new("src/own"));
    for path in [calls, own, Path::new("../mpi-table/table")] {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo's folder"));
    let write = |name: &str, text: String| std::fs::write(out.join(name), text).expect("a file");
    write(
        "front.rs",
        mpich::front(&implemented(calls), &implemented(own)),
    );
    write("roles.rs", mpich::roles_in_rust());
    write("handles.rs", mpich::handles_in_rust());
    write("values.rs", mpich::values_in_rust());
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi.so.12");
    // In cargo's target folder libregatta.so lies beside this library; this library is installed two folders below
    // libregatta.so.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN:$ORIGIN/../..");
}
