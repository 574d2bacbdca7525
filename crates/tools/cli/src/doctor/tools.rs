//! Compilers and other programs: their versions, or how to get them.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use super::finding::Finding;

const AREA: &str = "tools";

/// The command that installs the Rust compiler. Packages of distributions have older versions than Regatta needs.
const RUSTUP: &str = "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh";

/// A program, the option that prints its version, its package, and its purpose.
const TOOLS: [(&str, &str, &str, &str); 7] = [
    ("cc", "--version", "gcc", "programs in C, and the race"),
    ("gfortran", "--version", "gfortran", "programs in Fortran"),
    (
        "cargo",
        "--version",
        "cargo",
        "building Regatta and programs in Rust",
    ),
    ("make", "--version", "make", "`make race` and `make test`"),
    (
        "pkg-config",
        "--version",
        "pkg-config",
        "finding regatta.h and libregatta when building",
    ),
    (
        "python3",
        "--version",
        "python3",
        "a private folder for the race's peers from PyPI",
    ),
    ("git", "--version", "git", "fetching Regatta"),
];

pub fn findings() -> Vec<Finding> {
    TOOLS
        .iter()
        .map(|&(name, option, package, purpose)| tool(name, option, package, purpose))
        .collect()
}

fn tool(name: &str, option: &str, package: &str, purpose: &str) -> Finding {
    match first_line(name, &[option]) {
        Some(version) => Finding::ok(AREA, name, version),
        None => {
            Finding::missing(AREA, name, format!("for {purpose}")).next(way_to_get(name, package))
        }
    }
}

/// Returns how to get a program from this package.
fn way_to_get(name: &str, package: &str) -> String {
    match name {
        "cargo" => RUSTUP.to_owned(),
        _ => install(package),
    }
}

/// Returns the first line that a program prints, if it runs and succeeds.
pub fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    output(program, arguments)?
        .lines()
        .next()
        .map(|line| line.trim().to_owned())
}

/// Returns a program's output, if it runs and succeeds.
pub fn output(program: impl AsRef<OsStr>, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    let output = command
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the command that installs a package with this name on this host.
pub fn install(package: &str) -> String {
    let managers = [
        ("apt-get", "apt-get install"),
        ("dnf", "dnf install"),
        ("zypper", "zypper install"),
        ("apk", "apk add"),
        ("pacman", "pacman -S"),
    ];
    let found = managers.iter().find(|(program, _)| {
        ["/usr/bin", "/sbin", "/bin"]
            .iter()
            .any(|folder| std::path::Path::new(folder).join(program).exists())
    });
    match found {
        Some((_, command)) => format!("{command} {package} (as root)"),
        None => format!("install {package}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_comes_from_rustup_since_packages_have_older_ones() {
        assert!(way_to_get("cargo", "cargo").contains("https://sh.rustup.rs"));
        assert!(way_to_get("git", "git").contains("git"));
    }
}
