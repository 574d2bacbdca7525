//! The one source of MPI's names and values: `table/functions` has every function with its parameters, `table/constants.txt`
//! every constant. All code that has to have them (the library's functions, the core's constants, `mpi.h`) is made of these.
//!
//! A line of a function is its declaration in C without `MPI_`, and without `int` if that is what it returns. A parameter's
//! type is followed by `~` if it is larger in the function's form for large counts, whose name ends in `_c`: `int~` becomes
//! MPI_Count, `int~Aint` becomes MPI_Aint. Functions without such a parameter have no such form.
//!
//! `table/fortran.txt` says by the names of parameters what C's types leave open. `table/functions/removed.txt` and
//! `table/functions/fortran.txt` have functions that are not in the standard ABI.
//!
//! A line of a constant is its type, its name and its value, which may be another constant's name; `#` begins a heading.
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
