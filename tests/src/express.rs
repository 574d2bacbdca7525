//! Programs of Express and CrOS III on Regatta's libraries.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Name under which programs load the library of Express.
const SONAME: &str = "libexpress.so.0";
const REGATTA: &str = "libregatta.so.0";
/// Libraries for Fortran programs.
const FORTRAN: [&str; 3] = ["libfcubix.a", "libfexpress.a", "libfplotix.a"];
const FOLDER: &str = "../crates/interfaces/express";

/// Folder in which programs find the library of Express.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let library = crate::programs::built("libexpress.so", "regatta-express");
    let folder = crate::programs::link(&library, SONAME);
    let script = file("../../../scripts/express-libraries");
    let made = Command::new(script).arg(&folder).status();
    assert!(
        made.is_ok_and(|status| status.success()),
        "libfexpress and libcubix"
    );
    folder
});

/// Returns the path of a file in the crate of Express.
pub fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(FOLDER)
        .join(path)
}

/// Returns the path of the library of Express.
pub fn library() -> PathBuf {
    LIBRARY.join(SONAME)
}

/// Compiles `tests/programs/NAME.c`, linked with the libraries of Express and Regatta.
pub fn program(name: &str) -> PathBuf {
    let headers = ["include", "../c/include"].map(file);
    let libraries = [SONAME, REGATTA].map(|library| LIBRARY.join(library));
    crate::programs::compile_with(name, &headers, &libraries)
}

/// Returns the path of the library of Cubix.
pub fn cubix() -> PathBuf {
    LIBRARY.join("libcubix.so.0")
}

/// Compiles `tests/programs/NAME.c`, linked with the library of Cubix as well.
pub fn cubix_program(name: &str) -> PathBuf {
    let headers = ["include", "../c/include"].map(file);
    let others = [SONAME, REGATTA].map(|library| LIBRARY.join(library));
    let libraries = [&[cubix()][..], &others].concat();
    crate::programs::compile_with(name, &headers, &libraries)
}

/// Returns the path of the library of Plotix.
pub fn plotix() -> PathBuf {
    let library = crate::programs::built("libplotix.so", "regatta-plotix");
    crate::programs::link(&library, "libplotix.so.0").join("libplotix.so.0")
}

/// Compiles `tests/programs/NAME.c`, linked with the libraries of Plotix and Express.
pub fn plotix_program(name: &str) -> PathBuf {
    let headers = ["../plotix/include", "include", "../c/include"].map(file);
    let others = [SONAME, REGATTA].map(|library| LIBRARY.join(library));
    let libraries = [&[plotix()][..], &others].concat();
    crate::programs::compile_with(name, &headers, &libraries)
}

/// Returns the path of the library of CrOS III.
pub fn cros() -> PathBuf {
    let library = crate::programs::built("libcros.so", "regatta-cros");
    crate::programs::link(&library, "libcros.so.0").join("libcros.so.0")
}

/// Compiles `tests/programs/NAME.c`, linked with the library of CrOS III.
pub fn cros_program(name: &str) -> PathBuf {
    let headers = ["../cros/include", "../c/include"].map(file);
    let regatta = crate::programs::library().join(REGATTA);
    crate::programs::compile_with(name, &headers, &[cros(), regatta])
}

/// Compiles the Fortran program `tests/programs/NAME.f`. Skips the test if gfortran is not installed.
pub fn fortran_program(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("programs/{name}.f"));
    let program = LIBRARY.join(format!("{name}-{}", std::process::id()));
    let output = Command::new(crate::needs::program("gfortran", "gfortran"))
        .args(["-fallow-argument-mismatch", "-std=legacy", "-w", "-o"])
        .arg(&program)
        .arg(source)
        .args(FORTRAN.map(|library| LIBRARY.join(library)))
        .arg(plotix())
        .args([SONAME, REGATTA].map(|library| LIBRARY.join(library)))
        .output()
        .expect("gfortran");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}.f: {said}");
    program
}

/// Returns the functions that a library exports.
pub fn exported(library: &Path) -> Vec<String> {
    symbols(&["-D", "--defined-only"], library)
}

/// Returns the routines that a Fortran library defines.
pub fn fortran_routines(library: &str) -> Vec<String> {
    symbols(&["--defined-only"], &LIBRARY.join(library))
}

fn symbols(options: &[&str], library: &Path) -> Vec<String> {
    let mut command = Command::new("nm");
    let output = command.args(options).arg(library).output();
    let text = String::from_utf8(output.expect("nm, of binutils").stdout).expect("names");
    let names = text.lines().filter_map(|line| line.split_once(" T "));
    names.map(|(_, name)| name.to_owned()).collect()
}
