//! The common part of the interfaces with numbered nodes: joining, items of messages, reductions by functions of
//! programs, concatenations, and faults. It uses only `regatta.h`; the libraries that use this crate are linked with
//! libregatta.so.
//!
//! As in these libraries, only one thread at a time may be in a call.
#![allow(missing_docs)]

pub mod concatenation;
pub mod fault;
pub mod items;
pub mod own;
pub mod place;
pub mod reduction;

pub use regatta_sys as rg;
