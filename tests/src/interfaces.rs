//! The examples of several interfaces, on Regatta's libraries: `examples/interfaces`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{express, nx, pvm};

/// The folder of the examples, from that of the tests' programs.
const FOLDER: &str = "../../examples/interfaces";
/// The names under which programs look for the libraries, all in one folder.
const LIBRARIES: [&str; 4] = [
    "libpvm3.so.3",
    "libnx.so.0",
    "libexpress.so.0",
    "libregatta.so.0",
];

/// The folder with all of them, once they are there.
fn libraries() -> PathBuf {
    let folder = |library: PathBuf| library.parent().map(Path::to_owned);
    let folders = [pvm::library(), nx::library(), express::library()].map(folder);
    assert!(folders.iter().all(|one| *one == folders[0]), "{folders:?}");
    folders[0].clone().expect("a library is in a folder")
}

/// The C program `three.c`, on the three of them.
pub fn three() -> PathBuf {
    let folder = libraries();
    let headers = ["pvm", "nx", "express"].map(|name| {
        let path = format!("../crates/interfaces/{name}/include");
        Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
    });
    let file = format!("{FOLDER}/three");
    let all = LIBRARIES.map(|library| folder.join(library));
    crate::programs::compile_all("three", &[&file], &headers, &all)
}

/// The Fortran program of this name, with the rows it works on. gfortran must be installed: `scripts/need test` does that.
pub fn gauss(name: &str) -> PathBuf {
    let folder = libraries();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("programs")
        .join(FOLDER);
    let program = folder.join(format!("{name}-{}", std::process::id()));
    let libraries = ["libfexpress.a"].into_iter().chain(LIBRARIES);
    let output = Command::new("gfortran")
        .args([
            "-O2",
            "-std=legacy",
            "-fallow-argument-mismatch",
            "-w",
            "-o",
        ])
        .arg(&program)
        .args([name, "gauss_rows"].map(|file| sources.join(format!("{file}.f"))))
        .arg(format!(
            "-I{}/../crates/interfaces/nx/include",
            env!("CARGO_MANIFEST_DIR")
        ))
        .arg("-Wl,--as-needed")
        .args(libraries.map(|library| folder.join(library)))
        .output()
        .expect("gfortran, which scripts/need test installs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}.f: {said}");
    program
}
