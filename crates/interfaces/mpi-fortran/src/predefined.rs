//! Predefined functions of the standard that have no counterpart in C: attribute functions that programs pass, and the
//! parts of modules that need code.

use std::ffi::{c_int, c_void};

use crate::facts::logical;
use crate::{SUCCESS, Status, finish};

macro_rules! copies {
    ($($name:ident $value:ty, $copies:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            _object: *mut c_int,
            _keyval: *mut c_int,
            _extra_state: *mut $value,
            value_in: *mut $value,
            value_out: *mut $value,
            flag: *mut c_int,
            ierror: *mut c_int,
        ) {
            // SAFETY: by the Fortran contract the arguments are valid.
            unsafe {
                if $copies {
                    *value_out = *value_in;
                }
                *flag = logical($copies.into());
                finish(ierror, SUCCESS);
            }
        }
    )*};
}

copies! {
    mpi_null_copy_fn_ c_int, false;
    mpi_dup_fn_ c_int, true;
    mpi_comm_null_copy_fn_ i64, false;
    mpi_comm_dup_fn_ i64, true;
    mpi_type_null_copy_fn_ i64, false;
    mpi_type_dup_fn_ i64, true;
    mpi_win_null_copy_fn_ i64, false;
    mpi_win_dup_fn_ i64, true;
}

macro_rules! deletes {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            _object: *mut c_int,
            _keyval: *mut c_int,
            _value: *mut c_void,
            _extra_state: *mut c_void,
            ierror: *mut c_int,
        ) {
            // SAFETY: by the Fortran contract the argument is valid.
            unsafe { finish(ierror, SUCCESS) };
        }
    )*};
}

deletes! { mpi_null_delete_fn_ mpi_comm_null_delete_fn_ mpi_type_null_delete_fn_ mpi_win_null_delete_fn_ }

/// MPI_CONVERSION_FN_NULL. Only its address is used.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_conversion_fn_null_() {}

/// Its variant for large counts. Only its address is used.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_conversion_fn_null_c_() {
    mpi_conversion_fn_null_();
}

macro_rules! comparisons {
    ($($equal:ident $different:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $equal(one: *const c_int, other: *const c_int) -> c_int {
            // SAFETY: by the Fortran contract the arguments are valid.
            logical(unsafe { *one == *other }.into())
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $different(one: *const c_int, other: *const c_int) -> c_int {
            // SAFETY: by the Fortran contract the arguments are valid.
            logical(unsafe { *one != *other }.into())
        }
    )*};
}

comparisons! {
    mpi_comm_eq_ mpi_comm_ne_
    mpi_datatype_eq_ mpi_datatype_ne_
    mpi_errhandler_eq_ mpi_errhandler_ne_
    mpi_file_eq_ mpi_file_ne_
    mpi_group_eq_ mpi_group_ne_
    mpi_info_eq_ mpi_info_ne_
    mpi_message_eq_ mpi_message_ne_
    mpi_op_eq_ mpi_op_ne_
    mpi_request_eq_ mpi_request_ne_
    mpi_session_eq_ mpi_session_ne_
    mpi_win_eq_ mpi_win_ne_
}

macro_rules! sizes {
    ($($name:ident $size:literal)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(_x: *const c_void, size: *mut c_int, ierror: *mut c_int) {
            // SAFETY: by the Fortran contract the arguments are valid.
            unsafe {
                *size = $size;
                finish(ierror, SUCCESS);
            }
        }
    )*};
}

// MPI_SIZEOF: a module has one for each type, and the compiler selects it.
sizes! {
    mpi_sizeof_character_ 1
    mpi_sizeof_logical1_ 1 mpi_sizeof_logical2_ 2 mpi_sizeof_logical4_ 4 mpi_sizeof_logical8_ 8
    mpi_sizeof_integer1_ 1 mpi_sizeof_integer2_ 2 mpi_sizeof_integer4_ 4 mpi_sizeof_integer8_ 8
    mpi_sizeof_real4_ 4 mpi_sizeof_real8_ 8
    mpi_sizeof_complex4_ 8 mpi_sizeof_complex8_ 16
}

macro_rules! statuses {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(from: *const Status, to: *mut Status, ierror: *mut c_int) {
            // SAFETY: by the Fortran contract the arguments are valid.
            unsafe {
                *to = *from;
                finish(ierror, SUCCESS);
            }
        }
    )*};
}

statuses! { mpi_status_f2f08_ mpi_status_f082f_ }

/// Does nothing (MPI_F_SYNC_REG): the compiler has to assume that it changes its argument.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_f_sync_reg_(_buf: *mut c_void) {}

/// Does the same for the module `mpi_f08`.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_f_sync_reg_f08_(_buf: *mut c_void) {}
