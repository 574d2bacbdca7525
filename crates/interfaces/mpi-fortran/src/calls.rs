//! Routines that need more than the table describes. The first parameter of each is the C function to call, by its
//! plain or its profiling name.

pub mod attributes;
pub mod datareps;
pub mod environment;
pub mod errhandlers;
pub mod generalized;
pub mod operators;
pub mod removed;
pub mod spawning;
pub mod values;
