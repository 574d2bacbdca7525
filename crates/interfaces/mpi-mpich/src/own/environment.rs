//! Facts of this ABI, and the end of a job.

use std::ffi::{c_char, c_int};

use regatta_mpi::abi;
use regatta_mpi::arguments::Out;
use regatta_mpi::checked;
use regatta_mpi::error::{Result, not_null};
use regatta_mpi::text;

use crate::outer::Info;
use crate::outer::{Comm, Datatype, Handle};
use crate::places::Place;
use crate::values::MAX_PROCESSOR_NAME;

/// This is not the standard ABI.
pub unsafe fn abi_get_version(abi_major: *mut c_int, abi_minor: *mut c_int) -> Result {
    not_null(abi_major, "abi_major")?;
    not_null(abi_minor, "abi_minor")?;
    // SAFETY: the caller's pointers.
    unsafe { (*abi_major, *abi_minor) = (-1, -1) };
    Ok(())
}

/// The code is the program's own, and no error of MPI's.
pub unsafe fn abort(comm: Comm, errorcode: c_int) -> Result {
    // SAFETY: it takes a handle and a number.
    unsafe { checked::abort(comm.inward(), errorcode) }
}

/// Programs of this ABI have less room for the name than the core writes.
pub unsafe fn get_processor_name(name: *mut c_char, resultlen: *mut c_int) -> Result {
    // SAFETY: the caller's places.
    let (name, resultlen) = unsafe { (Out::at(name, "name")?, Out::at(resultlen, "resultlen")?) };
    let mut full = [0; abi::MAX_PROCESSOR_NAME as usize];
    let mut length = 0;
    // SAFETY: the longest name has room here, and the caller has room for as much as is given.
    unsafe {
        checked::get_processor_name(full.as_mut_ptr(), &mut length)?;
        let full = full.map(|byte| byte as u8);
        resultlen.put(text::give(
            &full[..length as usize],
            name,
            MAX_PROCESSOR_NAME,
        ));
    }
    Ok(())
}

/// There are no events, whose elements would have types.
pub unsafe fn t_event_get_info(
    event_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    array_of_datatypes: *mut Datatype,
    array_of_displacements: *mut i64,
    num_elements: *mut c_int,
    enumtype: *mut abi::T_enum,
    info: *mut Info,
    desc: *mut c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
) -> Result {
    let mut info = Place::out(info);
    // SAFETY: the caller's places.
    let result = unsafe {
        checked::t_event_get_info(
            event_index,
            name,
            name_len,
            verbosity,
            std::ptr::null_mut(),
            array_of_displacements,
            num_elements,
            enumtype,
            info.pass(),
            desc,
            desc_len,
            bind,
        )
    };
    info.give();
    result
}
