//! How a shared library gets the unwinder that Rust's standard library needs: from the compiler's archive, so that no task has to load
//! `libgcc_s.so`.
//!
//! A library that unwinds through its own frames alone, as those of ours do, needs no unwinder in common with others.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

const ARCHIVE: &str = "libgcc_eh.a";

/// Tells cargo to link the archive into the crate of this build script. Where there is none, all stays as it is.
pub fn link() {
    println!("cargo:rerun-if-env-changed=CC");
    if let Some(folder) = archive().as_deref().and_then(Path::parent) {
        println!("cargo:rustc-link-search=native={}", folder.display());
        // An archive of ours is not to have it: whoever links that names an unwinder.
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// The archive of the compiler that links; a compiler that has none repeats the name.
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
