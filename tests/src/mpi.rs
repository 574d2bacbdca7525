//! Programs of MPI, compiled with the generated header and linked with the library of the standard ABI.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::{Ended, Job};

/// Name under which programs load the library.
const SONAME: &str = "libmpi_abi.so.1";
const REGATTA: &str = "libregatta.so.0";

/// Folder in which programs find the library.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let library = crate::programs::built("libmpi_abi.so", "regatta-mpi-abi");
    crate::programs::link(&library, SONAME)
});

/// Folder of the generated `mpi.h`.
static HEADERS: LazyLock<PathBuf> = LazyLock::new(|| {
    let text = regatta_mpi_table::header();
    crate::programs::file("mpi.h", text.as_bytes())
});

/// Returns the path of the library.
pub fn library() -> PathBuf {
    LIBRARY.join(SONAME)
}

/// Returns the folder of `mpi.h`, which is generated from the table of functions.
pub fn headers() -> PathBuf {
    HEADERS.clone()
}

/// Compiles `tests/programs/mpi/NAME.c`, linked with this library and with Regatta's own, which some programs use too.
pub fn program(name: &str) -> PathBuf {
    program_of(&format!("mpi_{name}"), &[&format!("mpi/{name}")])
}

/// Compiles these files of `tests/programs` into one program, linked with both libraries.
pub(crate) fn program_of(name: &str, files: &[&str]) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/interfaces/c/include");
    let libraries = [SONAME, REGATTA].map(|library| LIBRARY.join(library));
    crate::programs::compile_all(name, files, &[headers(), own], &libraries)
}

/// Programs compiled with MPICH's `mpi.h` for the library of MPICH's ABI.
pub mod mpich {
    use super::{Ended, Job, LazyLock, Path, PathBuf, REGATTA};

    /// Name under which programs load the library.
    const SONAME: &str = "libmpi.so.12";

    /// Folder in which programs find the library.
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
        let library = crate::programs::built("libmpi_mpich.so", "regatta-mpi-mpich");
        crate::programs::link(&library, SONAME)
    });

    /// Folder of the generated `mpi.h` for MPICH's ABI; it contains no other `mpi.h`.
    static HEADERS: LazyLock<PathBuf> = LazyLock::new(|| {
        let text = regatta_mpi_table::mpich::header();
        let folder = crate::programs::file("mpich.h", text.as_bytes());
        let own = folder.join("mpich");
        std::fs::create_dir_all(&own).expect("a folder");
        std::fs::rename(folder.join("mpich.h"), own.join("mpi.h")).expect("the header");
        own
    });

    /// Returns the path of the library.
    pub fn library() -> PathBuf {
        LIBRARY.join(SONAME)
    }

    /// Compiles `tests/programs/mpi/NAME.c`, linked with the library.
    pub fn program(name: &str) -> PathBuf {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/interfaces/c/include");
        let libraries = [SONAME, REGATTA].map(|library| LIBRARY.join(library));
        crate::programs::compile_all(
            &format!("mpich_{name}"),
            &[&format!("mpi/{name}")],
            &[HEADERS.clone(), own],
            &libraries,
        )
    }

    /// Runs a scenario of such a program in `processes` processes, and checks that it passes.
    pub fn play(name: &str, processes: u32, scenario: &str) -> Ended {
        Job::of(processes, &program(name), &[scenario])
            .run()
            .passed()
    }
}

/// Runs a scenario of a program of the standard ABI in `processes` processes, and checks that it passes.
pub fn play(name: &str, processes: u32, scenario: &str) -> Ended {
    Job::of(processes, &program(name), &[scenario])
        .run()
        .passed()
}
