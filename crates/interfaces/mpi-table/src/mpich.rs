//! MPICH's ABI, which libraries of several vendors share: its values, its functions beyond the standard's, and the Rust
//! code of a library that translates them to those of the standard ABI.

mod constants;
mod front;
mod passage;
mod roles;

pub(crate) use constants::{EXTERN, is_int};
pub use constants::{constants, handles_in_rust, values_in_rust};
pub use front::front;
pub use roles::roles_in_rust;

/// Returns the text of `mpi.h`.
pub fn header() -> String {
    crate::header::header_of_mpich()
}
