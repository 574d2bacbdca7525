//! A stand-in for libmpi_abi.so.1, with which build scripts link libraries that call it.

use std::path::Path;

use crate::{customary, extensions, functions};

/// Tells cargo to link the crate of this build script with libmpi_abi.so.1.
///
/// The crate is linked with a stand-in library, made in this folder, that has the same soname and the same functions:
/// cargo does not guarantee that the real library is built first.
pub fn link_with_mpi_abi(folder: &Path) {
    let all = functions().into_iter();
    let mut text = String::new();
    for function in all.chain(extensions()).chain(customary()) {
        for large in function.forms() {
            let suffix = if *large { "_c" } else { "" };
            let name = format!("{}{}{suffix}", function.prefix(), function.name);
            text.push_str(&format!(
                "void {name}(void) {{}}\nvoid P{name}(void) {{}}\n"
            ));
        }
    }
    let source = folder.join("stand_in.c");
    std::fs::write(&source, text).expect("a file");
    let library = folder.join("libmpi_abi.so");
    let status = cc::Build::new()
        .get_compiler()
        .to_command()
        .args(["-shared", "-fPIC", "-w", "-Wl,-soname,libmpi_abi.so.1"])
        .arg("-o")
        .arg(&library)
        .arg(&source)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "the linker");
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=dylib=mpi_abi");
}
