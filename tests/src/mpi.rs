//! Programs of MPI, compiled with the header that the table makes, on the library of the standard ABI.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::{Ended, Job};

/// The name by which programs look for the library.
const SONAME: &str = "libmpi_abi.so.1";
const REGATTA: &str = "libregatta.so.0";

/// The folder in which programs find it.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let library = crate::programs::built("libmpi_abi.so", "regatta-mpi-abi");
    crate::programs::link(&library, SONAME)
});

/// The folder that has `mpi.h`.
static HEADERS: LazyLock<PathBuf> = LazyLock::new(|| {
    let text = regatta_mpi_table::header();
    crate::programs::file("mpi.h", text.as_bytes())
});

/// The library itself.
pub fn library() -> PathBuf {
    LIBRARY.join(SONAME)
}

/// The folder of `mpi.h`, made of the table.
pub fn headers() -> PathBuf {
    HEADERS.clone()
}

/// The program `tests/programs/mpi/NAME.c`, linked with the library, and with Regatta's own for programs that use both.
pub fn program(name: &str) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/interfaces/c/include");
    let libraries = [SONAME, REGATTA].map(|library| LIBRARY.join(library));
    let path = format!("mpi/{name}");
    crate::programs::compile_all(
        &format!("mpi_{name}"),
        &[&path],
        &[headers(), own],
        &libraries,
    )
}

/// A scenario of such a program by so many processes, which has to end well.
pub fn play(name: &str, processes: u32, scenario: &str) -> Ended {
    Job::of(processes, &program(name), &[scenario])
        .run()
        .passed()
}
