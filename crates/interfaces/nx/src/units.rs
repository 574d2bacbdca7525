//! The units of Fortran programs, by which their calls for files name them.
//!
//! A unit that the program has opened with OPEN is the Fortran library's (gfortran's, if the program has it), and its descriptor is known there. One
//! that `gopen` has opened is known here alone: to CLOSE, READ and WRITE it is not connected, and the next `gopen` of the unit closes it.

use std::ffi::{CStr, c_int, c_void};

use crate::error::{EQPARAM, Fault};
use crate::forms::Argument;
use crate::state::library;

/// A unit that `gopen` has opened, and its descriptor.
pub struct Opened {
    unit: c_int,
    fd: c_int,
}

/// The number of a unit.
#[derive(Clone, Copy)]
pub struct Unit(c_int);

impl Argument for Unit {
    type Fortran = *const i32;

    unsafe fn take(from: *const i32) -> Unit {
        // SAFETY: the caller's.
        Unit(unsafe { from.read_unaligned() })
    }
}

impl Unit {
    fn fault(self, code: c_int) -> Fault {
        Fault::of(code, "unit", self.0.into())
    }

    /// The descriptor of the unit. All that the program has written to it by WRITE is in the file then.
    pub fn descriptor(self) -> Result<c_int, Fault> {
        if let Some(fd) = self.fortrans() {
            return Ok(fd);
        }
        let opened = library().units.iter().find(|opened| opened.unit == self.0);
        opened
            .map(|opened| opened.fd)
            .ok_or(self.fault(libc::EBADF))
    }

    /// A fault if OPEN has connected the unit, or if it cannot be one.
    pub fn is_free(self) -> Result<(), Fault> {
        match self.0 >= 0 && self.fortrans().is_none() {
            true => Ok(()),
            false => Err(self.fault(EQPARAM)),
        }
    }

    /// Keeps the descriptor of the unit, in place of the one that it had.
    pub fn open(self, fd: c_int) {
        let units = &mut library().units;
        if let Some(at) = units.iter().position(|opened| opened.unit == self.0) {
            // SAFETY: `gopen` has opened it, and nobody else has it.
            unsafe { libc::close(units.swap_remove(at).fd) };
        }
        units.push(Opened { unit: self.0, fd });
    }

    /// The descriptor of a unit that the Fortran library knows, which has written all that it kept for it.
    fn fortrans(self) -> Option<c_int> {
        let (number_of, flush) = (
            function(c"_gfortran_fnum_i4")?,
            function(c"_gfortran_flush_i4")?,
        );
        // SAFETY: gfortran's extensions FNUM and FLUSH, as its library exports them for an INTEGER.
        let (number_of, flush) = unsafe {
            (
                std::mem::transmute::<*mut c_void, extern "C" fn(*const c_int) -> c_int>(number_of),
                std::mem::transmute::<*mut c_void, extern "C" fn(*const c_int)>(flush),
            )
        };
        let fd = number_of(&self.0);
        (fd >= 0).then(|| {
            flush(&self.0);
            fd
        })
    }
}

/// A function of the program or of a library that it has.
fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a plain question.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
