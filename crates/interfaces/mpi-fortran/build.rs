//! Generates the library's routines from the table, and sets how the library is linked: to libmpi_abi.so.1, and with
//! its own name.

use std::path::PathBuf;

fn main() {
    for path in ["../mpi-table/table", "build.rs"] {
        println!("cargo:rerun-if-changed={path}");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo's folder"));
    let write = |name: &str, text: String| std::fs::write(out.join(name), text).expect("a file");
    write("front.rs", regatta_mpi_table::fortran_front());
    write("handles.rs", regatta_mpi_table::fortran_handles());
    write("callbacks.rs", regatta_mpi_table::opaque_callbacks());
    regatta_mpi_table::link_with_mpi_abi(&out);
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libregatta_mpifort.so.0");
    // When installed, libmpi_abi.so.1 lies beside this library.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN");
}
