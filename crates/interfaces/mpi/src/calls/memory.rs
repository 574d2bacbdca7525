//! Allocation of memory for programs (MPI_Alloc_mem).

use std::ffi::c_void;

use crate::abi::*;
use crate::arguments::Out;
use crate::error::{Error, Result};
use crate::info;
use crate::process;

/// Default alignment of allocated memory, in bytes.
const ALIGNMENT: usize = 64;

/// Returns the alignment that the hints request, or the default one if that is larger.
fn alignment(info: Info) -> Result<usize> {
    let hints = info::optional(info)?;
    let wanted = hints.text(c"mpi_minimum_memory_alignment");
    let wanted = wanted.and_then(|text| text.parse::<usize>().ok());
    let wanted = wanted.filter(|it| it.is_power_of_two());
    Ok(wanted.map_or(ALIGNMENT, |it| it.max(ALIGNMENT)))
}

pub unsafe fn alloc_mem(size: i64, info: Info, baseptr: Out<*mut c_void>) -> Result {
    process::require()?;
    let alignment = alignment(info)?;
    let length = usize::try_from(size)
        .map_err(|_| Error::new(ERR_ARG, format!("the size is {size}; it must be 0 or more")))?;
    let mut block = std::ptr::null_mut();
    // SAFETY: the pointer is written; the alignment is a power of two and a multiple of a pointer's size.
    if unsafe { libc::posix_memalign(&mut block, alignment, length.max(1)) } != 0 {
        let text = format!("{size} bytes of memory cannot be allocated");
        return Err(Error::new(ERR_NO_MEM, text));
    }
    baseptr.put(block);
    Ok(())
}

pub unsafe fn free_mem(base: *mut c_void) -> Result {
    process::require()?;
    // SAFETY: the memory comes from `alloc_mem`, or the pointer is null.
    unsafe { libc::free(base) };
    Ok(())
}
