//! Data representations that programs register. As in C they are never freed.

use std::ffi::{c_char, c_int, c_void};

use crate::predefined::mpi_conversion_fn_null_;
use crate::texts::text;
use crate::{Datatype, SUCCESS, finish};

type Convert<Count> = unsafe extern "C" fn(
    *mut c_void,
    *mut c_int,
    *mut Count,
    *mut c_void,
    *mut i64,
    *mut i64,
    *mut c_int,
);

/// The functions of a representation, and their extra state.
struct Functions {
    read: *const c_void,
    write: *const c_void,
    extent: unsafe extern "C" fn(*mut c_int, *mut i64, *mut i64, *mut c_int),
    state: i64,
}

unsafe extern "C" fn convert<Count, const WRITES: bool>(
    userbuf: *mut c_void,
    datatype: Datatype,
    mut count: Count,
    filebuf: *mut c_void,
    mut position: i64,
    functions: *mut c_void,
) -> c_int {
    let functions: *mut Functions = functions.cast();
    let (mut datatype, mut result) = (datatype.to_int(), SUCCESS);
    // SAFETY: the program has passed a function of this type with the representation.
    unsafe {
        let function = match WRITES {
            true => (*functions).write,
            false => (*functions).read,
        };
        let function: Convert<Count> = std::mem::transmute(function);
        let state = &raw mut (*functions).state;
        function(
            userbuf,
            &mut datatype,
            &mut count,
            filebuf,
            &mut position,
            state,
            &mut result,
        );
    }
    result
}

unsafe extern "C" fn extent(datatype: Datatype, extent: *mut i64, functions: *mut c_void) -> c_int {
    let functions: *mut Functions = functions.cast();
    let (mut datatype, mut result) = (datatype.to_int(), SUCCESS);
    // SAFETY: the program has passed this function with the representation.
    unsafe {
        let state = &raw mut (*functions).state;
        ((*functions).extent)(&mut datatype, extent, state, &mut result);
    }
    result
}

type Register = unsafe extern "C" fn(
    *const c_char,
    *const c_void,
    *const c_void,
    *const c_void,
    *mut c_void,
) -> c_int;

unsafe fn register<Count>(
    call: Register,
    datarep: (*mut u8, usize),
    [read, write, extent_fn]: [*const c_void; 3],
    extra_state: *mut i64,
    ierror: *mut c_int,
) {
    let none = mpi_conversion_fn_null_ as *const c_void;
    // SAFETY: by the program's contract the arguments are valid, and the functions have these types.
    unsafe {
        let name = text(datarep.0, datarep.1);
        let functions = Box::new(Functions {
            read,
            write,
            extent: std::mem::transmute::<
                *const c_void,
                unsafe extern "C" fn(*mut i32, *mut i64, *mut i64, *mut i32),
            >(extent_fn),
            state: *extra_state,
        });
        let given = |function: *const c_void, ours: *const c_void| match function == none {
            true => std::ptr::null(),
            false => ours,
        };
        let result = call(
            name.as_ptr(),
            given(read, convert::<Count, false> as *const c_void),
            given(write, convert::<Count, true> as *const c_void),
            extent as *const c_void,
            Box::into_raw(functions).cast(),
        );
        finish(ierror, result);
    }
}

macro_rules! registers {
    ($($name:ident $kind:ident $count:ty;)*) => {$(
        pub unsafe fn $name(
            call: crate::$kind,
            datarep: *mut u8,
            read: *const c_void,
            write: *const c_void,
            extent: *const c_void,
            extra_state: *mut i64,
            ierror: *mut c_int,
            length: usize,
        ) {
            // SAFETY: by the Fortran contract the arguments are valid.
            unsafe {
                register::<$count>(call, (datarep, length), [read, write, extent], extra_state, ierror);
            }
        }
    )*};
}

registers! {
    register_datarep Register_datarep c_int;
    register_datarep_c Register_datarep_c i64;
}
