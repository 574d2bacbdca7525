//! The common part of the interfaces of numbered nodes: becoming a node, items of messages, reductions by functions of programs,
//! concatenations, failures. Everything stands on `regatta.h`; the libraries that use this are linked with libregatta.so.
//!
//! Their rule holds here, too: one thread at a time is in a library.
#![allow(missing_docs)]

pub mod concatenation;
pub mod fault;
pub mod items;
pub mod own;
pub mod place;
pub mod reduction;

pub use regatta_sys as rg;
