//! MPI over `regatta.h`: objects, and a function for each of MPI's calls.
//!
//! The values that callers give and get (handles, constants, statuses) are those of MPI's standard ABI; a library for another
//! ABI translates them, and calls the functions of [`checked`] as libmpi_abi.so does. A call returns `Result<()>`; its
//! library hands an error to the error handler of the call's object ([`error::finish`]).
//!
//! Rules of the paths that small messages take (`calls/send.rs`, `calls/receive.rs`, `requests`): no lock, no allocation, no
//! loop but that over the requests of the call.

pub mod abi;
pub mod arguments;
pub mod attributes;
pub mod blocking_collectives;
pub mod calls;
pub mod checked;
pub mod collective;
pub mod communicator;
pub mod datatype;
pub mod errhandler;
pub mod error;
pub mod files;
pub mod groups;
pub mod info;
pub mod numbers;
pub mod objects;
pub mod operator;
pub mod partitioned;
pub mod ports;
pub mod process;
pub mod progress;
pub mod requests;
mod segment;
pub mod session;
pub mod spawn;
pub mod status_forms;
pub mod tasks;
pub mod text;
pub mod tools;
pub mod topology;
pub mod wake_up;
pub mod window;
