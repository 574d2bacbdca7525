//! Becoming a node, and the frame of each call.

use std::ffi::c_int;

use regatta_nodes::fault::{Fault, answer};
use regatta_nodes::place::{joined, place};
use regatta_nodes::rg;

use crate::constants::HOST;
use crate::{handlers, pending};

/// The name under which failures are told.
pub const LIBRARY: &str = "express";

/// Does the work of a call. A program without `exinit` becomes a node by its first one.
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

/// Begin. Returns 0, or -1.
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

/// Tell a program its number and how many nodes there are.
#[unsafe(no_mangle)]
unsafe extern "C" fn exparam(environment: *mut Environment) -> c_int {
    call("exparam", || {
        if environment.is_null() {
            return Err(Fault::says("no place is given for the environment"));
        }
        let place = place();
        let told = Environment {
            procnum: place.node,
            nprocs: place.nodes,
            host: HOST,
            // SAFETY: a plain question.
            taskid: unsafe { rg::rg_tid() },
        };
        // SAFETY: the C contract: a place for the struct.
        unsafe { environment.write(told) };
        Ok(0)
    })
}
