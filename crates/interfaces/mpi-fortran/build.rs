//! The library's routines, made of the table, and how it is linked: with libmpi_abi.so.1, and by this name.

use std::path::{Path, PathBuf};

fn main() {
    for path in ["../mpi-table/table", "build.rs"] {
        println!("cargo:rerun-if-changed={path}");
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo's folder"));
    let write = |name: &str, text: String| std::fs::write(out.join(name), text).expect("a file");
    write("front.rs", regatta_mpi_table::fortran_front());
    write("handles.rs", regatta_mpi_table::fortran_handles());
    stand_in(&out);
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=dylib=mpi_abi");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libregatta_mpifort.so.0");
    // Installed, libmpi_abi.so.1 lies beside this library.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN");
}

/// A library by the name and with the functions of libmpi_abi.so.1, to be linked with: cargo knows no order in which that
/// would be there first.
fn stand_in(out: &Path) {
    let all = regatta_mpi_table::functions().into_iter();
    let mut text = String::new();
    for function in all.chain(regatta_mpi_table::extensions()) {
        let suffixes = if function.has_large() {
            &["", "_c"][..]
        } else {
            &[""]
        };
        for suffix in suffixes {
            let name = format!("{}{}{suffix}", function.prefix(), function.name);
            text.push_str(&format!(
                "void {name}(void) {{}}\nvoid P{name}(void) {{}}\n"
            ));
        }
    }
    let source = out.join("stand_in.c");
    std::fs::write(&source, text).expect("a file");
    let library = out.join("libmpi_abi.so");
    let status = cc::Build::new()
        .get_compiler()
        .to_command()
        .args(["-shared", "-fPIC", "-w", "-Wl,-soname,libmpi_abi.so.1"])
        .arg("-o")
        .arg(&library)
        .arg(&source)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "the linker");
}
