//! Calls with arrays of numbers that have roles, and calls whose results are addresses.

use std::ffi::{c_int, c_void};

use regatta_mpi::abi::OutCount;
use regatta_mpi::checked;
use regatta_mpi::error::Result;

use crate::outer::{Comm, Group, Handle, Session};
use crate::roles::{attached, rank};

pub unsafe fn group_translate_ranks(
    group1: Group,
    n: c_int,
    ranks1: *const c_int,
    group2: Group,
    ranks2: *mut c_int,
) -> Result {
    let count = match ranks1.is_null() {
        true => 0,
        false => usize::try_from(n).unwrap_or(0),
    };
    // SAFETY: by the C contract the array has `n` elements.
    let wanted: Vec<c_int> = (0..count)
        .map(|index| rank::inward(unsafe { *ranks1.add(index) }))
        .collect();
    let array = match ranks1.is_null() {
        true => ranks1,
        false => wanted.as_ptr(),
    };
    // SAFETY: by the C contract the arrays have `n` elements.
    unsafe {
        checked::group_translate_ranks(group1.inward(), n, array, group2.inward(), ranks2)?;
        for index in 0..count {
            let place = ranks2.add(index);
            *place = rank::outward(*place);
        }
    }
    Ok(())
}

/// Converts the address of a detached buffer, which may be MPI_BUFFER_AUTOMATIC.
unsafe fn outward(buffer_addr: *mut c_void) {
    let place = buffer_addr.cast::<isize>();
    // SAFETY: the core has written an address there.
    unsafe { place.write_unaligned(attached::outward(place.read_unaligned())) };
}

pub unsafe fn buffer_detach(buffer_addr: *mut c_void, size: OutCount) -> Result {
    // SAFETY: by the C contract the pointers are valid.
    unsafe {
        checked::buffer_detach(buffer_addr, size)?;
        outward(buffer_addr);
    }
    Ok(())
}

pub unsafe fn comm_detach_buffer(comm: Comm, buffer_addr: *mut c_void, size: OutCount) -> Result {
    // SAFETY: by the C contract the pointers are valid.
    unsafe {
        checked::comm_detach_buffer(comm.inward(), buffer_addr, size)?;
        outward(buffer_addr);
    }
    Ok(())
}

pub unsafe fn session_detach_buffer(
    session: Session,
    buffer_addr: *mut c_void,
    size: OutCount,
) -> Result {
    // SAFETY: by the C contract the pointers are valid.
    unsafe {
        checked::session_detach_buffer(session.inward(), buffer_addr, size)?;
        outward(buffer_addr);
    }
    Ok(())
}
