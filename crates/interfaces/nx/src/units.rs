//! The units of Fortran programs, by which their calls name files.
//!
//! A unit that the program has opened with OPEN belongs to the Fortran library (gfortran's, if the program uses it),
//! which knows its descriptor. A unit that `gopen` has opened is known only here: for CLOSE, READ and WRITE it is not
//! connected, and the next `gopen` of the unit closes it.

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
        // SAFETY: the caller guarantees that the memory is valid.
        Unit(unsafe { from.read_unaligned() })
    }
}

impl Unit {
    fn fault(self, code: c_int) -> Fault {
        Fault::of(code, "unit", self.0.into())
    }

    /// Returns the descriptor of the unit, after flushing what the program has written to it with WRITE.
    pub fn descriptor(self) -> Result<c_int, Fault> {
        if let Some(fd) = self.fortrans() {
            return Ok(fd);
        }
        let opened = library().units.iter().find(|opened| opened.unit == self.0);
        opened
            .map(|opened| opened.fd)
            .ok_or(self.fault(libc::EBADF))
    }

    /// Fails if OPEN has connected the unit, or if its number is invalid.
    pub fn is_free(self) -> Result<(), Fault> {
        match self.0 >= 0 && self.fortrans().is_none() {
            true => Ok(()),
            false => Err(self.fault(EQPARAM)),
        }
    }

    /// Stores the descriptor of the unit, and closes the previous one.
    pub fn open(self, fd: c_int) {
        let units = &mut library().units;
        if let Some(at) = units.iter().position(|opened| opened.unit == self.0) {
            // SAFETY: `gopen` has opened the descriptor, and nothing else uses it.
            unsafe { libc::close(units.swap_remove(at).fd) };
        }
        units.push(Opened { unit: self.0, fd });
    }

    /// Returns the descriptor of a unit that the Fortran library has open, after flushing the unit.
    fn fortrans(self) -> Option<c_int> {
        let (number_of, flush) = (
            function(c"_gfortran_fnum_i4")?,
            function(c"_gfortran_flush_i4")?,
        );
        // SAFETY: these are gfortran's extensions FNUM and FLUSH, which its library exports with these types for an
        // INTEGER.
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

/// Returns the address of a function of the program or of a library that it has loaded.
fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the call takes plain values only.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
