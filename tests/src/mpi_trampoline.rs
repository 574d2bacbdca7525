//! The library that MPItrampoline loads, and a program that reaches MPI as MPItrampoline does.

use std::path::PathBuf;
use std::sync::LazyLock;

use crate::{mpi, programs};

const NAME: &str = "libmpiwrapper.so";

/// Path of the library. It lies beside the library of the standard ABI, which it loads.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    mpi::library();
    let library = programs::built(NAME, "regatta-mpi-trampoline");
    programs::link(&library, NAME).join(NAME)
});

/// Returns the path of the library.
pub fn library() -> PathBuf {
    LIBRARY.clone()
}

/// Compiles the program, which is not linked with any MPI library.
pub fn program() -> PathBuf {
    programs::compile_all("mpi_trampoline", &["mpi/trampoline"], &[], &[])
}
