//! Becoming a node, and leaving.

use std::ffi::c_int;

use crate::error::{EQDRVERR, Fault, check, fault};
use crate::rg;
use crate::state::{Library, library};

/// The library's state, as a node. NX has no call that begins a program: the first call of any kind does.
#[inline(always)]
pub fn enrolled<'a>() -> Result<&'a mut Library, Fault> {
    let library = library();
    if library.joined {
        return Ok(library);
    }
    enrol()
}

#[cold]
#[inline(never)]
fn enrol<'a>() -> Result<&'a mut Library, Fault> {
    // SAFETY: plain calls.
    let (me, nodes, first) = unsafe {
        check(rg::rg_init())?;
        (
            number(rg::rg_rank(rg::WORLD))?,
            number(rg::rg_size(rg::WORLD))?,
            number(rg::rg_tid_of(rg::WORLD, 0))?,
        )
    };
    // SAFETY: it runs once, when the program ends.
    if unsafe { libc::atexit(leave) } != 0 {
        return Err(Fault::plain(EQDRVERR));
    }
    let library = library();
    (library.me, library.nodes, library.first) = (me, nodes, first);
    library.joined = true;
    Ok(library)
}

fn number(code: c_int) -> Result<c_int, Fault> {
    match code {
        0.. => Ok(code),
        _ => Err(fault(code)),
    }
}

/// A program that ends by itself has done its work: its node leaves. One that a call ends has failed.
extern "C" fn leave() {
    crate::handlers::end();
    if !library().failed {
        // SAFETY: requests that are still open are dropped, and their memory is the program's, which ends.
        unsafe { rg::rg_finalize() };
    }
}
