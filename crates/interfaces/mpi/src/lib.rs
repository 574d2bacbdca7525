//! MPI implemented with `regatta.h`: objects, and a function for each MPI function.
//!
//! The values that callers pass and get (handles, constants, statuses) are those of MPI's standard ABI. A library for
//! another ABI translates them and calls the functions of [`checked`], as libmpi_abi.so does. A call returns
//! `Result<()>`, and the library passes an error to the error handler of the call's object ([`error::finish`]).
//!
//! Rules for the paths of small messages (`calls/send.rs`, `calls/receive.rs`, `requests`): no lock, no allocation, and
//! no loop except over the requests of the call.

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
