//! The ABI of MPICH, which libraries of several makers share: its values, its functions beyond the standard's, and Rust code
//! of a library that translates them into the standard ABI's.

mod constants;
mod front;
mod passage;
mod roles;

pub(crate) use constants::{EXTERN, is_int};
pub use constants::{constants, handles_in_rust, values_in_rust};
pub use front::front;
pub use roles::roles_in_rust;

/// The text of `mpi.h`.
pub fn header() -> String {
    crate::header::header_of_mpich()
}
