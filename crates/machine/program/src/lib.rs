//! Examination of a program: the file that a name means, the libraries to which it is linked, what it needs to become a
//! task, and why it does not become one.
//!
//! A job's program is chosen by the user. It may be a script, be written in Python, or be linked to another MPI's or
//! PVM's library, or to Regatta's where the loader does not find it. In each of these cases every task would be a world
//! of its own, or end with the loader's error. So the file is examined before anything starts ([`find()`],
//! [`check_libraries`], [`admit`]), and a problem is reported as one sentence, a [`Refusal`]. Nothing of the program is
//! executed for that, but glibc's loader may be called.

#![forbid(unsafe_code)]

mod elf;
mod find;
mod foreign_mpi;
mod libraries;
mod loaded;
mod profiled;
mod python;
mod refusal;
pub mod stranger;
mod trampoline;
mod why_alone;

use std::ffi::OsString;
use std::path::Path;

pub use find::{explain, find};
pub use libraries::{Variable, with_libraries, with_libraries_of};
pub use loaded::check as check_libraries;
pub use profiled::{FOLDER as PROFILE, RECORDER};
pub use python::{variables as variables_for_python, with_library as with_mpi_for_python};
pub use refusal::{Refusal, STATUS_NOT_EXECUTABLE, STATUS_NOT_FOUND, STATUS_REFUSED, STATUS_USAGE};
pub use why_alone::why_alone;

/// Returns the environment with everything that this program needs to become a task here. Refuses a program whose
/// processes would not become tasks because it is built for an MPI that Regatta does not have, and a program that is to
/// be profiled but cannot be.
pub fn admit(
    program: &Path,
    arguments: &[OsString],
    environment: Vec<Variable>,
) -> Result<Vec<Variable>, Refusal> {
    profiled::check(program, &environment)?;
    foreign_mpi::check(program, &environment)?;
    with_mpi_for_python(program, arguments, environment)
}
