//! The ABI of MPICH, which libraries of several makers share: its values, its functions beyond the standard's, and Rust code
//! of a library that translates them into the standard ABI's.

mod constants;
mod front;
mod passage;
mod roles;

use crate::Function;
use crate::functions::{parsed, removed};

pub(crate) use constants::{EXTERN, is_int};
pub use constants::{constants, handles_in_rust, values_in_rust};
pub use front::front;
pub use roles::roles_in_rust;

/// The chapter of functions that this ABI alone has: conversions of handles and statuses.
const CHAPTER: &str = "mpich";

/// The text of `mpi.h`.
pub fn header() -> String {
    crate::header::header_of_mpich()
}

/// Functions beyond the standard's: those that it has removed, and this ABI's own.
pub fn functions() -> Vec<Function> {
    let mut all = removed();
    all.extend(parsed(&[(
        CHAPTER,
        include_str!("../table/mpich/functions.txt"),
    )]));
    all
}
