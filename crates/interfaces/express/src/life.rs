//! Joining as a node, and the frame of every call.

use std::ffi::c_int;

use regatta_nodes::fault::{Fault, answer};
use regatta_nodes::place::{joined, place};
use regatta_nodes::rg;

use crate::constants::HOST;
use crate::{handlers, pending};

/// The name of the library in error messages.
pub const LIBRARY: &str = "express";

/// Runs the work of a call and converts its result. A program that does not call `exinit` becomes a node by its first
/// call.
#[inline(always)]
pub fn call(function: &str, work: impl FnOnce() -> Result<c_int, Fault>) -> c_int {
    let worked = || {
        joined()?;
        pending::settle();
        handlers::run()?;
        work()
    };
    let answer = answer(LIBRARY, function, worked());
    pending::settle();
    answer
}

/// Joins as a node. Returns 0, or -1.
#[unsafe(no_mangle)]
extern "C" fn exinit() -> c_int {
    call("exinit", || Ok(0))
}

/// `struct nodenv` of `express.h`.
#[repr(C)]
pub struct Environment {
    procnum: c_int,
    nprocs: c_int,
    host: c_int,
    taskid: c_int,
}

/// Describes this node's number and the number of nodes to the program. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exparam(environment: *mut Environment) -> c_int {
    call("exparam", || {
        if environment.is_null() {
            return Err(Fault::says("the pointer for the environment is NULL"));
        }
        let place = place();
        let told = Environment {
            procnum: place.node,
            nprocs: place.nodes,
            host: HOST,
            // SAFETY: the call takes plain values only.
            taskid: unsafe { rg::rg_tid() },
        };
        // SAFETY: by the C contract the struct is writable.
        unsafe { environment.write(told) };
        Ok(0)
    })
}
