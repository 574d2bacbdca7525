//! Writes a file that is made of the table to standard output: `mpi.h`, or the one that is named.
#![forbid(unsafe_code)]

use std::io::Write;

use regatta_mpi_table::{fortran_include, fortran_module, header, mpich};

fn main() -> std::io::Result<()> {
    let name = std::env::args().nth(1);
    let text = match name.as_deref().unwrap_or("mpi.h") {
        "mpi.h" => header(),
        "mpich" => mpich::header(),
        "mpif.h" => fortran_include(),
        "mpi.f90" => fortran_module("mpi"),
        "mpi_f08.f90" => fortran_module("mpi_f08"),
        other => {
            let text = format!(
                "there is no file {other}; there are mpi.h, mpich (its mpi.h), mpif.h, mpi.f90 and mpi_f08.f90"
            );
            return Err(std::io::Error::other(text));
        }
    };
    std::io::stdout().write_all(text.as_bytes())
}
