//! Generates the library's constants and functions from the table, and links it with libmpi_abi.so.1.

use std::path::PathBuf;

fn main() {
    for path in ["../mpi-table/table", "build.rs"] {
        println!("cargo:rerun-if-changed={path}");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo's folder"));
    let write = |name: &str, text: String| std::fs::write(out.join(name), text).expect("a file");
    write("front.rs", regatta_mpi_table::trampoline::front());
    write("callbacks.rs", regatta_mpi_table::opaque_callbacks());
    regatta_mpi_table::link_with_mpi_abi(&out);
    regatta_unwinder::link();
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpiwrapper.so");
    // The installed libmpi_abi.so.1 is in the same folder as this library.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN");
}
