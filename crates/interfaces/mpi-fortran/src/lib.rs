//! libregatta_mpifort.so: MPI's routines as Fortran compilers call them, on top of the functions of MPI's standard ABI.
//! `build.rs` generates most of them from the table of functions; `calls` contains handwritten ones, whose arguments
//! the table cannot describe.
//!
//! Everything is passed by reference, so an INTEGER argument is an address. Handles are INTEGERs, too: C's handles as
//! numbers. A status is C's, in eight INTEGERs. The lengths of CHARACTER arguments are passed last. IERROR is a null
//! pointer if the program omits it.
#![allow(
    missing_docs,
    unused_variables,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    clippy::useless_conversion,
    non_snake_case,
    non_camel_case_types,
    non_upper_case_globals
)]

use std::ffi::{c_char, c_int, c_void};

mod calls;
mod facts;
mod handles;
mod predefined;
mod sentinels;
mod texts;

use calls::{
    attributes, datareps, environment, errhandlers, generalized, operators, removed, spawning,
    values,
};
use facts::logicals;
use handles::*;

// A handle's number is the lower half of C's pointer, because functions of programs are called with the address of such
// a pointer.
const _: () = assert!(cfg!(target_endian = "little") && size_of::<usize>() == 8);

/// A status, the same in C and Fortran.
pub type Status = [c_int; 8];

include!(concat!(env!("OUT_DIR"), "/callbacks.rs"));

const SUCCESS: c_int = 0;
const UNDEFINED: c_int = -32766;

/// Returns the error code to the program, unless it omits IERROR.
#[inline(always)]
unsafe fn finish(ierror: *mut c_int, result: c_int) {
    if !ierror.is_null() {
        // SAFETY: by the Fortran contract the argument is valid.
        unsafe { *ierror = result };
    }
}

/// Converts array indices that C has written to Fortran's, which begin at 1. Leaves MPI_UNDEFINED (negative) unchanged.
#[inline(always)]
unsafe fn positions(first: *mut c_int, count: c_int) {
    for index in 0..count.max(0) as usize {
        // SAFETY: the library has set `count` elements of the program's array.
        unsafe {
            let position = first.add(index);
            if *position >= 0 {
                *position += 1;
            }
        }
    }
}

/// Returns the number of types in an exchange: none if it is in place, because they are ignored then.
fn unless_in_place(sendbuf: *mut c_void, count: impl FnOnce() -> i64) -> i64 {
    match sentinels::is_in_place(sendbuf) {
        true => 0,
        false => count(),
    }
}

/// Returns the number of processes with which a collective of this communicator exchanges.
unsafe fn peers(comm: c_int) -> i64 {
    let comm = Comm::of(comm);
    let (mut between, mut size) = (0, 0);
    // SAFETY: the pointers point to local variables. An error is passed to the communicator's error handler.
    unsafe {
        if PMPI_Comm_test_inter(comm, &mut between) != SUCCESS {
            return 0;
        }
        match between {
            0 => PMPI_Comm_size(comm, &mut size),
            _ => PMPI_Comm_remote_size(comm, &mut size),
        };
    }
    size.into()
}

/// Returns the number of neighbours to which this process sends, or from which it receives.
unsafe fn neighbours(comm: c_int, sends: bool) -> i64 {
    let communicator = Comm::of(comm);
    let (mut kind, mut number, mut outgoing, mut other) = (0, 0, 0, 0);
    // SAFETY: the pointers point to local variables. An error is passed to the communicator's error handler.
    unsafe {
        if PMPI_Topo_test(communicator, &mut kind) != SUCCESS {
            return 0;
        }
        match kind {
            CART => {
                PMPI_Cartdim_get(communicator, &mut number);
                number *= 2;
            }
            GRAPH => {
                PMPI_Comm_rank(communicator, &mut other);
                PMPI_Graph_neighbors_count(communicator, other, &mut number);
            }
            DIST_GRAPH => {
                PMPI_Dist_graph_neighbors_count(
                    communicator,
                    &mut number,
                    &mut outgoing,
                    &mut other,
                );
                if sends {
                    number = outgoing;
                }
            }
            _ => {}
        }
    }
    number.into()
}

const CART: c_int = 211;
const GRAPH: c_int = 212;
const DIST_GRAPH: c_int = 213;

include!(concat!(env!("OUT_DIR"), "/front.rs"));
