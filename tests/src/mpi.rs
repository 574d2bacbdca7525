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
    program_of(&format!("mpi_{name}"), &[&format!("mpi/{name}")])
}

/// The program of these files of `tests/programs`, linked with both libraries.
pub(crate) fn program_of(name: &str, files: &[&str]) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/interfaces/c/include");
    let libraries = [SONAME, REGATTA].map(|library| LIBRARY.join(library));
    crate::programs::compile_all(name, files, &[headers(), own], &libraries)
}

/// Programs of MPICH's interface, compiled with the header of that.
pub mod mpich {
    use super::{Ended, Job, LazyLock, Path, PathBuf, REGATTA};

    /// The name by which programs look for the library.
    const SONAME: &str = "libmpi.so.12";

    /// The folder in which programs find it.
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
        let library = crate::programs::built("libmpi_mpich.so", "regatta-mpi-mpich");
        crate::programs::link(&library, SONAME)
    });

    /// The folder that has its `mpi.h`, in a place where no other one is.
    static HEADERS: LazyLock<PathBuf> = LazyLock::new(|| {
        let text = regatta_mpi_table::mpich::header();
        let folder = crate::programs::file("mpich.h", text.as_bytes());
        let own = folder.join("mpich");
        std::fs::create_dir_all(&own).expect("a folder");
        std::fs::rename(folder.join("mpich.h"), own.join("mpi.h")).expect("the header");
        own
    });

    /// The library itself.
    pub fn library() -> PathBuf {
        LIBRARY.join(SONAME)
    }

    /// The program `tests/programs/mpi/NAME.c`, linked with the library.
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

    /// A scenario of such a program by so many processes, which has to end well.
    pub fn play(name: &str, processes: u32, scenario: &str) -> Ended {
        Job::of(processes, &program(name), &[scenario])
            .run()
            .passed()
    }
}

/// A scenario of such a program by so many processes, which has to end well.
pub fn play(name: &str, processes: u32, scenario: &str) -> Ended {
    Job::of(processes, &program(name), &[scenario])
        .run()
        .passed()
}
