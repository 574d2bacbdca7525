//! Data that programs of MPICH's ABI read from the library.
//!
//! Special addresses have the same values as in the standard ABI, so they need no conversion.

use std::ffi::{c_int, c_void};
use std::ptr::null;

use crate::outer;
use crate::values::{T_PVAR_ALL_HANDLES, UNWEIGHTED, WEIGHTS_EMPTY};

/// An address that programs read.
#[repr(transparent)]
pub struct Address<T>(*const T);

// SAFETY: the library never writes to it or dereferences it.
unsafe impl<T> Sync for Address<T> {}

macro_rules! exported {
    ($($name:ident: $kind:ty = $value:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub static $name: $kind = $value;
        )*
    };
}

/// Two dummy statuses. C programs only compare their addresses.
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

/// Copies an attribute by value: the function behind MPI_DUP_FN.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPIR_Dup_fn(
    comm: outer::Comm,
    keyval: c_int,
    extra_state: *mut c_void,
    attribute_val_in: *mut c_void,
    attribute_val_out: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: by the C contract the results are writable; the first one is a pointer.
    unsafe {
        *attribute_val_out.cast::<*mut c_void>() = attribute_val_in;
        *flag = 1;
    }
    0
}
