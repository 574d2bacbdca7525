//! The search path for programs to be spawned.

use std::path::{Path, PathBuf};

/// Returns PVM's name for this machine's architecture.
pub fn architecture() -> String {
    match std::env::var("PVM_ARCH") {
        Ok(name) if !name.is_empty() => name,
        _ => of_machine(std::env::consts::ARCH).to_owned(),
    }
}

/// Returns PVM's name for an architecture, given Regatta's name.
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

/// Returns PVM's root directory, whether PVM is installed or not.
pub fn root() -> String {
    let named = std::env::var("PVM_ROOT")
        .ok()
        .filter(|root| !root.is_empty());
    named.unwrap_or_else(|| "/usr/lib/pvm3".to_owned())
}

/// Returns the directories that are searched for a program, in order, separated by `:`. They are those of PVM_PATH,
/// then PVM's defaults.
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
    // Debian installs programs of PVM packages here.
    all.push(Path::new("/usr/lib/pvm3/bin").join(&arch));
    let all: Vec<String> = all
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    all.join(":")
}
