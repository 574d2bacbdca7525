//! Writes `mpi.h` to standard output.
#![forbid(unsafe_code)]

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(regatta_mpi_table::header().as_bytes())
}
