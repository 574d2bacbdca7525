//! Error handlers of programs. C calls their functions with the address of a handle, whose lower half is Fortran's
//! number, and with the address of the code.

use std::ffi::{c_int, c_void};

use crate::{Errhandler, finish};

macro_rules! makers {
    ($($name:ident $kind:ident;)*) => {$(
        pub unsafe fn $name(
            call: crate::$kind,
            function: *const c_void,
            errhandler: *mut c_int,
            ierror: *mut c_int,
        ) {
            // SAFETY: by the Fortran contract the arguments are valid.
            unsafe {
                let mut made = Errhandler::of(0x140);
                let result = call(function, &mut made);
                *errhandler = made.to_int();
                finish(ierror, result);
            }
        }
    )*};
}

makers! {
    comm_create_errhandler Comm_create_errhandler;
    file_create_errhandler File_create_errhandler;
    session_create_errhandler Session_create_errhandler;
    win_create_errhandler Win_create_errhandler;
}
