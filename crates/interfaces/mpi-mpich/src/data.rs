//! Data that programs of MPICH's ABI read from the library.
//!
//! Addresses that are none have the standard ABI's values, so that they go through as they are.

use std::ffi::{c_int, c_void};
use std::ptr::null;

use crate::outer;
use crate::values::{T_PVAR_ALL_HANDLES, UNWEIGHTED, WEIGHTS_EMPTY};

/// An address that programs read.
#[repr(transparent)]
pub struct Address<T>(*const T);

// SAFETY: the library never changes nor follows it.
unsafe impl<T> Sync for Address<T> {}

macro_rules! exported {
    ($($name:ident: $kind:ty = $value:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub static $name: $kind = $value;
        )*
    };
}

/// Two statuses that are none: programs in C only compare their addresses.
#[repr(transparent)]
pub struct NoStatus([c_int; 5]);

exported! {
    MPI_UNWEIGHTED: Address<c_int> = Address(UNWEIGHTED as *const c_int);
    MPI_WEIGHTS_EMPTY: Address<c_int> = Address(WEIGHTS_EMPTY as *const c_int);
    MPI_T_PVAR_ALL_HANDLES: Address<c_void> = Address(T_PVAR_ALL_HANDLES as *const c_void);
    MPI_F_STATUS_IGNORE: Address<c_int> = Address(null());
    MPI_F_STATUSES_IGNORE: Address<c_int> = Address(null());
    MPIR_F08_MPI_STATUS_IGNORE_OBJ: NoStatus = NoStatus([0; 5]);
    MPIR_F08_MPI_STATUSES_IGNORE_OBJ: NoStatus = NoStatus([0; 5]);
    MPI_F08_STATUS_IGNORE: Address<NoStatus> = Address(&raw const MPIR_F08_MPI_STATUS_IGNORE_OBJ);
    MPI_F08_STATUSES_IGNORE: Address<NoStatus> = Address(&raw const MPIR_F08_MPI_STATUSES_IGNORE_OBJ);
}

/// The function behind MPI_DUP_FN: the copy of an attribute is the attribute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPIR_Dup_fn(
    comm: outer::Comm,
    keyval: c_int,
    extra_state: *mut c_void,
    attribute_val_in: *mut c_void,
    attribute_val_out: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's places, the first one of a pointer.
    unsafe {
        *attribute_val_out.cast::<*mut c_void>() = attribute_val_in;
        *flag = 1;
    }
    0
}
