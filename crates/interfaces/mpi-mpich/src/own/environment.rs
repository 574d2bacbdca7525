//! Facts about this ABI, and the end of a job.

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

/// Returns -1: this is not the standard ABI.
pub unsafe fn abi_get_version(abi_major: *mut c_int, abi_minor: *mut c_int) -> Result {
    not_null(abi_major, "abi_major")?;
    not_null(abi_minor, "abi_minor")?;
    // SAFETY: by the C contract the pointers are valid.
    unsafe { (*abi_major, *abi_minor) = (-1, -1) };
    Ok(())
}

/// Passes the code on unchanged: it is the program's own and not an error code of MPI.
pub unsafe fn abort(comm: Comm, errorcode: c_int) -> Result {
    // SAFETY: the call takes plain values only.
    unsafe { checked::abort(comm.inward(), errorcode) }
}

/// Truncates the name: programs of this ABI have less room for it than the core writes.
pub unsafe fn get_processor_name(name: *mut c_char, resultlen: *mut c_int) -> Result {
    // SAFETY: by the C contract the results are writable.
    let (name, resultlen) = unsafe { (Out::at(name, "name")?, Out::at(resultlen, "resultlen")?) };
    let mut full = [0; abi::MAX_PROCESSOR_NAME as usize];
    let mut length = 0;
    // SAFETY: `full` has room for the longest name, and by the C contract `name` has room for `MAX_PROCESSOR_NAME`
    // bytes.
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

/// Passes no array of elements' types to the core: there are no events, so nothing has to be converted.
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
    // SAFETY: by the C contract the results are writable.
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
