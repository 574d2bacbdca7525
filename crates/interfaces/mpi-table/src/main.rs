//! Writes `mpi.h` to standard output: of the standard ABI, or with the word `mpich` of that one.
#![forbid(unsafe_code)]

use std::io::Write;

use regatta_mpi_table::{header, mpich};

fn main() -> std::io::Result<()> {
    let text = match std::env::args().nth(1).as_deref() {
        Some("mpich") => mpich::header(),
        _ => header(),
    };
    std::io::stdout().write_all(text.as_bytes())
}
