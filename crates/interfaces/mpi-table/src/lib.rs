//! The single source of MPI's names and values: `table/functions` has every function with its parameters, and
//! `table/constants.txt` every constant. All code that needs them (the library's functions, the constants of
//! `regatta-mpi`, `mpi.h`) is generated from these.
//!
//! A function's line is its C declaration without `MPI_`, and without the return type if that is `int`. A `~` after a
//! parameter's type means that the type is larger in the large-count form of the function, whose name ends in `_c`:
//! `int~` becomes MPI_Count, `int~Aint` becomes MPI_Aint. Functions without such a parameter have no large-count form.
//!
//! `table/fortran.txt` states, by parameter name, what C's types do not determine. `table/functions/removed.txt` and
//! `table/functions/fortran.txt` have functions that are not in the standard ABI.
//!
//! A constant's line is its type, its name and its value, which may be the name of another constant. A line that begins
//! with `#` is a heading.
#![forbid(unsafe_code)]

mod constants;
mod fortran;
mod functions;
mod header;
pub mod mpich;
mod rust;
mod stand_in;
pub mod trampoline;

pub use constants::{Constant, constants};
pub use fortran::{
    front as fortran_front, handles as fortran_handles, include as fortran_include,
    module as fortran_module, names as fortran_names,
};
pub use functions::{
    Function, Parameter, customary, extensions, functions, opaque_callbacks, removed,
};
pub use header::header;
pub use rust::{checked, constants_in_rust, front, implemented};
pub use stand_in::link_with_mpi_abi;
