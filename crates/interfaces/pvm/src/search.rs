//! Where programs to be spawned are searched for.

use std::path::{Path, PathBuf};

/// The name that PVM has for this kind of machine.
pub fn architecture() -> String {
    match std::env::var("PVM_ARCH") {
        Ok(name) if !name.is_empty() => name,
        _ => of_machine(std::env::consts::ARCH).to_owned(),
    }
}

/// PVM's name for an architecture as Regatta names it.
pub fn of_machine(architecture: &str) -> &str {
    match architecture {
        "x86_64" => "LINUX64",
        "x86" => "LINUX",
        "aarch64" => "LINUXAARCH64",
        "arm" => "LINUXARM",
        "powerpc64" => "LINUXPPC64",
        "s390x" => "LINUXS390X",
        "riscv64" => "LINUXRISCV64",
        other => other,
    }
}

/// Where PVM is, or would be.
pub fn root() -> String {
    let named = std::env::var("PVM_ROOT")
        .ok()
        .filter(|root| !root.is_empty());
    named.unwrap_or_else(|| "/usr/lib/pvm3".to_owned())
}

/// The directories in which a program is searched for, in their order, with `:` between them: what PVM searches by
/// default, or what PVM_PATH names.
pub fn directories() -> String {
    let arch = architecture();
    let mut all: Vec<PathBuf> = Vec::new();
    if let Ok(path) = std::env::var("PVM_PATH") {
        all.extend(std::env::split_paths(&path));
    }
    if let Some(home) = std::env::var_os("HOME") {
        all.push(Path::new(&home).join("pvm3/bin").join(&arch));
    }
    if let Some(root) = std::env::var_os("PVM_ROOT") {
        all.push(Path::new(&root).join("bin").join(&arch));
    }
    // Debian's place for the programs of its packages.
    all.push(Path::new("/usr/lib/pvm3/bin").join(&arch));
    let all: Vec<String> = all
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    all.join(":")
}
