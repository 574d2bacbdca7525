//! Generalized requests, whose functions belong to the program.

use std::ffi::{c_int, c_void};

use crate::facts::logical;
use crate::{Request, SUCCESS, Status, finish};

/// The functions of a request, and their extra state. The state is the program's own variable, which the functions may
/// change, as in other MPI libraries.
struct Functions {
    query: unsafe extern "C" fn(*mut i64, *mut Status, *mut c_int),
    free: unsafe extern "C" fn(*mut i64, *mut c_int),
    cancel: unsafe extern "C" fn(*mut i64, *mut c_int, *mut c_int),
    state: *mut i64,
}

unsafe extern "C" fn query(functions: *mut c_void, status: *mut Status) -> c_int {
    let functions: *mut Functions = functions.cast();
    let mut result = SUCCESS;
    // SAFETY: the program has passed these functions with the request, and they are valid until it is freed.
    unsafe { ((*functions).query)((*functions).state, status, &mut result) };
    result
}

unsafe extern "C" fn free(functions: *mut c_void) -> c_int {
    // SAFETY: `grequest_start` has made the box, and the request is freed once.
    let functions = unsafe { Box::from_raw(functions.cast::<Functions>()) };
    let mut result = SUCCESS;
    // SAFETY: the program has passed this function with the request.
    unsafe { (functions.free)(functions.state, &mut result) };
    result
}

unsafe extern "C" fn cancel(functions: *mut c_void, complete: c_int) -> c_int {
    let functions: *mut Functions = functions.cast();
    let (mut complete, mut result) = (logical(complete), SUCCESS);
    // SAFETY: the program has passed these functions with the request, and they are valid until it is freed.
    unsafe { ((*functions).cancel)((*functions).state, &mut complete, &mut result) };
    result
}

pub unsafe fn grequest_start(
    call: crate::Grequest_start,
    query_fn: *const c_void,
    free_fn: *const c_void,
    cancel_fn: *const c_void,
    extra_state: *mut i64,
    request: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: by the program's contract the arguments are valid, and the functions have these types.
    unsafe {
        let functions = Box::into_raw(Box::new(Functions {
            query: std::mem::transmute::<
                *const c_void,
                unsafe extern "C" fn(*mut i64, *mut [i32; 8], *mut i32),
            >(query_fn),
            free: std::mem::transmute::<*const c_void, unsafe extern "C" fn(*mut i64, *mut i32)>(
                free_fn,
            ),
            cancel: std::mem::transmute::<
                *const c_void,
                unsafe extern "C" fn(*mut i64, *mut i32, *mut i32),
            >(cancel_fn),
            state: extra_state,
        }));
        let mut made = Request::of(0x180);
        let result = call(
            query as *const c_void,
            free as *const c_void,
            cancel as *const c_void,
            functions.cast(),
            &mut made,
        );
        if result != SUCCESS {
            drop(Box::from_raw(functions));
        }
        *request = made.to_int();
        finish(ierror, result);
    }
}
