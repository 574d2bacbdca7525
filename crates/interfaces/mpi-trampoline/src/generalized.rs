//! Generalized requests: the query callback of the program gets a status in the program's form.

use std::ffi::{c_int, c_void};

use crate::MPI_Grequest_start;
use crate::abi::Request;
use crate::statuses::{Status, standard};

type Query = unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int;
type Free = unsafe extern "C" fn(*mut c_void) -> c_int;
type Cancel = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;

/// The program's callbacks and their argument.
struct Program {
    query: Query,
    free: Free,
    cancel: Cancel,
    state: *mut c_void,
}

unsafe extern "C" fn query(program: *mut c_void, status: *mut standard::Status) -> c_int {
    // SAFETY: `program` was made by `MPIABI_Grequest_start`, and MPI passes a valid status.
    unsafe {
        let program = &*program.cast::<Program>();
        let mut outer = Status::outward(&*status);
        let result = (program.query)(program.state, &mut outer);
        *status = outer.inward();
        result
    }
}

unsafe extern "C" fn free(program: *mut c_void) -> c_int {
    // SAFETY: `program` was made by `MPIABI_Grequest_start`, and MPI frees it once.
    unsafe {
        let program = Box::from_raw(program.cast::<Program>());
        (program.free)(program.state)
    }
}

unsafe extern "C" fn cancel(program: *mut c_void, complete: c_int) -> c_int {
    // SAFETY: `program` was made by `MPIABI_Grequest_start`.
    unsafe {
        let program = &*program.cast::<Program>();
        (program.cancel)(program.state, complete)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPIABI_Grequest_start(
    program_query: Query,
    program_free: Free,
    program_cancel: Cancel,
    state: *mut c_void,
    request: *mut Request,
) -> c_int {
    let program = Box::into_raw(Box::new(Program {
        query: program_query,
        free: program_free,
        cancel: program_cancel,
        state,
    }));
    // SAFETY: the callbacks get the `program` that is passed with them; the caller keeps MPI's rules.
    unsafe {
        let result = MPI_Grequest_start(
            query as *const c_void,
            free as *const c_void,
            cancel as *const c_void,
            program.cast(),
            request,
        );
        if result != 0 {
            drop(Box::from_raw(program));
        }
        result
    }
}
