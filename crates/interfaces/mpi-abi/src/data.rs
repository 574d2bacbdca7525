//! Data that programs read from the library: what C has for Fortran's MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE.
//!
//! In Fortran each is a common block. The linker gives it one address in the whole program, which is the program's own if that is in
//! Fortran; the two blocks here only give it one where nothing else has it.

use std::ffi::c_int;

use regatta_mpi::abi::Status;

/// A common block of a status. Compilers align common blocks.
#[repr(C, align(32))]
pub struct Block([u8; size_of::<Status>()]);

#[unsafe(no_mangle)]
pub static mut mpi_regatta_status_ignore_: Block = Block([0; size_of::<Status>()]);
#[unsafe(no_mangle)]
pub static mut mpi_regatta_statuses_ignore_: Block = Block([0; size_of::<Status>()]);

/// An address that programs compare others with.
#[repr(transparent)]
pub struct Address<T>(*const T);

// SAFETY: the library never changes nor follows it.
unsafe impl<T> Sync for Address<T> {}

#[unsafe(no_mangle)]
pub static MPI_F_STATUS_IGNORE: Address<c_int> =
    Address((&raw const mpi_regatta_status_ignore_).cast());
#[unsafe(no_mangle)]
pub static MPI_F_STATUSES_IGNORE: Address<c_int> =
    Address((&raw const mpi_regatta_statuses_ignore_).cast());
#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: Address<Status> =
    Address((&raw const mpi_regatta_status_ignore_).cast());
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: Address<Status> =
    Address((&raw const mpi_regatta_statuses_ignore_).cast());
