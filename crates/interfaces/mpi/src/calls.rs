//! A function for each of MPI's functions, by its name in lower case. The build scripts of the libraries find them in
//! the files of this folder. Both forms of a function (with int and with large counts) share one implementation.
//!
//! Safety of all of them: pointers are valid as the standard requires, or null where the function's comment allows it.
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments, missing_docs)]

/// Makes calls that have the same parameters and differ in one thing, in the order of their names.
///
/// Their names, separated by commas, stand on one line with `pub unsafe fn`: so the table finds them.
macro_rules! alike {
    ($(
        pub unsafe fn $($name:ident),+($($parameters:tt)*)
            = |$with:ident| $call:expr, of $($what:expr),+;
    )*) => {$(
        alike! { @each ($($parameters)*) |$with| $call, $($name = $what;)+ }
    )*};
    (@each $parameters:tt |$with:ident| $call:expr, $($name:ident = $what:expr;)+) => {$(
        pub unsafe fn $name $parameters -> $crate::error::Result {
            let $with = $what;
            // SAFETY: the caller's promise.
            unsafe { $call }
        }
    )+};
}

pub mod allgather;
pub mod alltoall;
pub mod any;
pub mod binary_interface;
pub mod broadcast;
pub mod buffered;
pub mod communicator_attributes;
pub mod communicator_making;
pub mod communicators;
pub mod completion;
pub mod connecting;
pub mod distributed_graphs;
pub mod environment;
pub mod errhandlers;
pub mod errors;
pub mod exchange;
pub mod extensions;
pub mod file_access;
pub mod file_errhandlers;
pub mod file_views;
pub mod files;
pub mod fortran_statuses;
pub mod gather;
pub mod generalized;
pub mod graphs;
pub mod grids;
pub mod groups;
pub mod info;
pub mod intercommunicators;
pub mod memory;
pub mod neighbour_exchange;
pub mod neighbour_gather;
pub mod operators;
pub mod packing;
pub mod partitioned;
pub mod persistent;
pub mod probe;
pub mod processes;
pub mod receive;
pub mod reduce;
pub mod reduce_scatter;
pub mod removed;
pub mod scan;
pub mod scatter;
pub mod send;
pub mod sessions;
pub mod statuses;
pub mod testing;
pub mod tool_events;
pub mod tool_performance;
pub mod tool_variables;
pub mod type_arrays;
pub mod type_attributes;
pub mod type_facts;
pub mod types;
pub mod window_accumulates;
pub mod window_attributes;
pub mod window_epochs;
pub mod window_transfers;
pub mod windows;
