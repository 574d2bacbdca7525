//! Data that programs read from the library: C's values for Fortran's MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE.
//!
//! In Fortran each is a common block. The linker merges common blocks of the same name, so the address is the program's
//! own block if the program is in Fortran; the two blocks here only provide an address otherwise.

use std::ffi::c_int;

use regatta_mpi::abi::Status;

/// A common block with the size of a status. Compilers align common blocks.
#[repr(C, align(32))]
pub struct Block([u8; size_of::<Status>()]);

#[unsafe(no_mangle)]
pub static mut mpi_regatta_status_ignore_: Block = Block([0; size_of::<Status>()]);
#[unsafe(no_mangle)]
pub static mut mpi_regatta_statuses_ignore_: Block = Block([0; size_of::<Status>()]);

/// An address that programs compare with others.
#[repr(transparent)]
pub struct Address<T>(*const T);

// SAFETY: the library never writes to it or dereferences it.
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
