//! Writes a generated file to standard output: the one that the argument names, by default `mpi.h`.
#![forbid(unsafe_code)]

use std::io::Write;

use regatta_mpi_table::{header, mpich};

fn main() -> std::io::Result<()> {
    let name = std::env::args().nth(1);
    let text = match name.as_deref().unwrap_or("mpi.h") {
        "mpi.h" => header(),
        "mpif.h" => regatta_mpi_table::fortran_include(),
        "mpi.f90" => regatta_mpi_table::fortran_module("mpi"),
        "mpi_f08.f90" => regatta_mpi_table::fortran_module("mpi_f08"),
        "mpich.h" => mpich::header(),
        other => {
            let text = format!(
                "there is no file {other}; there are mpi.h, mpif.h, mpi.f90, mpi_f08.f90, and mpich.h: MPICH's mpi.h"
            );
            return Err(std::io::Error::other(text));
        }
    };
    std::io::stdout().write_all(text.as_bytes())
}
