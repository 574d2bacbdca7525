//! Links the unwinder that Rust's standard library needs into a shared library, from the compiler's archive, so that no
//! task has to load `libgcc_s.so`.
//!
//! A library that unwinds only through its own frames, like ours, does not need to share an unwinder with others.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

const ARCHIVE: &str = "libgcc_eh.a";

/// Tells cargo to link the archive into the crate of this build script. Does nothing if there is no archive.
pub fn link() {
    println!("cargo:rerun-if-env-changed=CC");
    if let Some(folder) = archive().as_deref().and_then(Path::parent) {
        println!("cargo:rustc-link-search=native={}", folder.display());
        // Do not bundle it into our static libraries (`-bundle`): whoever links those chooses an unwinder.
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// Returns the path of the archive that the C compiler would link. If there is none, the compiler prints the bare file
/// name.
fn archive() -> Option<PathBuf> {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let told = Command::new(compiler)
        .arg(format!("-print-file-name={ARCHIVE}"))
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(told.stdout).ok()?.trim());
    path.is_absolute()
        .then_some(path)
        .filter(|path| path.exists())
}
