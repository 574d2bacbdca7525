//! Special arguments, such as MPI_BOTTOM. Each is a common block: the linker gives it one address in the whole program,
//! by which this library recognizes it.

use std::ffi::{c_int, c_void};

use crate::Status;

/// A common block of this many bytes. Compilers align common blocks.
#[repr(C, align(32))]
pub struct Block<const BYTES: usize>([u8; BYTES]);

macro_rules! blocks {
    ($($name:ident $bytes:literal)*) => {
        $(
            #[unsafe(no_mangle)]
            pub static mut $name: Block<$bytes> = Block([0; $bytes]);
        )*
    };
}

blocks! {
    mpi_regatta_bottom_ 4
    mpi_regatta_in_place_ 4
    mpi_regatta_buffer_automatic_ 4
    mpi_regatta_status_ignore_ 32
    mpi_regatta_statuses_ignore_ 32
    mpi_regatta_errcodes_ignore_ 4
    mpi_regatta_argv_null_ 1
    mpi_regatta_argvs_null_ 1
    mpi_regatta_unweighted_ 4
    mpi_regatta_weights_empty_ 4
}

/// Returns whether an argument is this common block.
macro_rules! is {
    ($argument:expr, $name:ident) => {
        $argument.cast::<u8>().cast_const() == (&raw const $name).cast::<u8>()
    };
}

/// Converts a buffer argument: MPI_BOTTOM, MPI_IN_PLACE and MPI_BUFFER_AUTOMATIC become C's values.
#[inline(always)]
pub fn choice(buffer: *mut c_void) -> *mut c_void {
    if is!(buffer, mpi_regatta_bottom_) {
        return std::ptr::null_mut();
    }
    if is_in_place(buffer) {
        return std::ptr::without_provenance_mut(1);
    }
    if is!(buffer, mpi_regatta_buffer_automatic_) {
        return std::ptr::without_provenance_mut(2);
    }
    buffer
}

/// Returns whether a buffer is MPI_IN_PLACE.
#[inline(always)]
pub fn is_in_place(buffer: *mut c_void) -> bool {
    is!(buffer, mpi_regatta_in_place_)
}

/// Converts a status argument: MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE become a null pointer.
#[inline(always)]
pub fn status(status: *mut Status) -> *mut Status {
    let ignored =
        is!(status, mpi_regatta_status_ignore_) || is!(status, mpi_regatta_statuses_ignore_);
    match ignored {
        true => std::ptr::null_mut(),
        false => status,
    }
}

/// Converts an argument with weights of edges: MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY become C's values.
pub fn weights(weights: *mut c_int) -> *mut c_int {
    if is!(weights, mpi_regatta_unweighted_) {
        return std::ptr::without_provenance_mut(10);
    }
    if is!(weights, mpi_regatta_weights_empty_) {
        return std::ptr::without_provenance_mut(11);
    }
    weights
}

/// Converts an argument for error codes: MPI_ERRCODES_IGNORE becomes a null pointer.
pub fn codes(codes: *mut c_int) -> *mut c_int {
    match is!(codes, mpi_regatta_errcodes_ignore_) {
        true => std::ptr::null_mut(),
        false => codes,
    }
}

/// Returns whether program arguments are MPI_ARGV_NULL or MPI_ARGVS_NULL.
pub fn is_no_arguments(text: *mut u8) -> bool {
    is!(text, mpi_regatta_argv_null_) || is!(text, mpi_regatta_argvs_null_)
}
