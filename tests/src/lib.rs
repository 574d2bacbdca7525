//! The harness of the tests that run whole jobs. The C programs of `tests/programs/` are linked with the library that
//! was just built, and started from outside by the command that was just built.
//!
//! A [`Job`] describes what to start and under which conditions. [`Job::run`] runs it to its end, and [`Ended::passed`]
//! checks the result. A job that exceeds its time limit or leaves a process behind fails the test, which then shows the
//! job's whole output.
#![forbid(unsafe_code)]

pub mod applications;
pub mod chaos;
mod cluster;
pub mod console;
pub mod courses;
pub mod executable;
pub mod express;
pub mod fleet;
pub mod interfaces;
mod job;
pub mod lan;
mod left;
mod looks;
pub mod mpi;
pub mod mpi_fortran;
pub mod mpi_trampoline;
pub mod needs;
mod network;
pub mod nx;
pub mod profiling;
pub mod programs;
pub mod pvm;
pub mod pvm_examples;
pub mod pvm_machine;
pub mod python;
pub mod reactions;
mod skipped;
pub mod soak;

pub use cluster::Cluster;
pub use job::{Ended, Job, Running};
pub use looks::{await_files, look_until, slowness};
pub use programs::{command, program};
pub use skipped::skip;
