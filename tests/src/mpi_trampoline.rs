//! The library that MPItrampoline loads, and a program that reaches MPI as that does.

use std::path::PathBuf;
use std::sync::LazyLock;

use crate::{mpi, programs};

const NAME: &str = "libmpiwrapper.so";

/// The library, beside that of the standard ABI, which it loads.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    mpi::library();
    let library = programs::built(NAME, "regatta-mpi-trampoline");
    programs::link(&library, NAME).join(NAME)
});

/// The library itself.
pub fn library() -> PathBuf {
    LIBRARY.clone()
}

/// The program, which is linked with no MPI.
pub fn program() -> PathBuf {
    programs::compile_all("mpi_trampoline", &["mpi/trampoline"], &[], &[])
}
