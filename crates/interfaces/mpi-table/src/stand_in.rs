//! Libraries over libmpi_abi.so.1, and how build scripts link them with it.

use std::path::Path;

use crate::{customary, extensions, functions};

/// Tells cargo to link the crate of this build script with libmpi_abi.so.1.
///
/// It is linked with a library of that name and with its functions, which is made in this folder: cargo knows no order in which
/// the real one would be there first.
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
