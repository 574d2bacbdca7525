//! Routines whose arguments need more than the table says. Each gets C's function, or its profiling name, first.

pub mod attributes;
pub mod datareps;
pub mod environment;
pub mod errhandlers;
pub mod generalized;
pub mod operators;
pub mod removed;
pub mod spawning;
pub mod values;
