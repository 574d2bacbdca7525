//! The symbols that a program finds in this library besides MPI's: versions, and the types of handles and callbacks.

use std::ffi::{c_int, c_void};

/// The version of MPItrampoline's ABI that this library has. Programs require this version or a lower one.
#[unsafe(no_mangle)]
pub static mpiabi_version_major: c_int = 2;
#[unsafe(no_mangle)]
pub static mpiabi_version_minor: c_int = 10;
#[unsafe(no_mangle)]
pub static mpiabi_version_patch: c_int = 0;

/// Parses a number of decimal digits.
const fn number(text: &str) -> c_int {
    let (digits, mut value, mut at) = (text.as_bytes(), 0, 0);
    while at < digits.len() {
        value = value * 10 + (digits[at] - b'0') as c_int;
        at += 1;
    }
    value
}

/// The version of this library, for reports.
#[unsafe(no_mangle)]
pub static mpiwrapper_version_major: c_int = number(env!("CARGO_PKG_VERSION_MAJOR"));
#[unsafe(no_mangle)]
pub static mpiwrapper_version_minor: c_int = number(env!("CARGO_PKG_VERSION_MINOR"));
#[unsafe(no_mangle)]
pub static mpiwrapper_version_patch: c_int = number(env!("CARGO_PKG_VERSION_PATCH"));

/// Does nothing. MPItrampoline calls it before it reads Fortran's constants, which already have their values.
#[unsafe(no_mangle)]
pub extern "C" fn mpiwrapper_export_fortran_constants_() {}

macro_rules! handles {
    ($($name:ident)*) => { $(pub type $name = usize;)* };
}

handles! { Comm Datatype Errhandler File Group Info Message Op Request Session Win }

include!(concat!(env!("OUT_DIR"), "/callbacks.rs"));

/// The address of Fortran's MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE.
#[repr(transparent)]
pub struct Address(*const c_void);

// SAFETY: the library never writes or dereferences the address.
unsafe impl Sync for Address {}

unsafe extern "C" {
    static mpi_regatta_status_ignore_: c_void;
    static mpi_regatta_statuses_ignore_: c_void;
}

#[unsafe(no_mangle)]
pub static MPIABI_F_STATUS_IGNORE: Address = Address(&raw const mpi_regatta_status_ignore_);
#[unsafe(no_mangle)]
pub static MPIABI_F_STATUSES_IGNORE: Address = Address(&raw const mpi_regatta_statuses_ignore_);
