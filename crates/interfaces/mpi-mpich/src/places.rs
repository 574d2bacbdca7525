//! Results: the core writes into memory here, whose content is converted and written to the caller.

use std::ffi::c_int;
use std::ptr::null_mut;

use regatta_mpi::abi;

use crate::outer::{Handle, Status};
use crate::roles;
use crate::values::STATUS_IGNORE;

/// A result that is a handle.
pub struct Place<H: Handle> {
    at: *mut H,
    /// The core's handle.
    pub value: H::Core,
}

impl<H: Handle> Place<H> {
    /// Makes a place for a result.
    #[inline(always)]
    pub fn out(at: *mut H) -> Place<H> {
        let value = H::NOTHING;
        Place { at, value }
    }

    /// Makes a place for a handle that the call changes.
    #[inline(always)]
    pub fn changed(at: *mut H) -> Place<H> {
        let value = match at.is_null() {
            true => H::NOTHING,
            // SAFETY: by the C contract the handle is readable.
            false => unsafe { *at }.inward(),
        };
        Place { at, value }
    }

    /// Returns the address to which the core writes, or null if the caller passes null.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut H::Core {
        match self.at.is_null() {
            true => null_mut(),
            false => &mut self.value,
        }
    }

    /// Writes the handle to the caller, if the core has set one.
    #[inline(always)]
    pub fn give(&self) {
        if !self.at.is_null() && self.value != H::NOTHING {
            // SAFETY: by the C contract the result is writable.
            unsafe { *self.at = H::outward(self.value) };
        }
    }
}

/// A result that is a number with a role.
pub struct Number {
    at: *mut c_int,
    value: c_int,
}

/// The value of a number that the core has not written.
const UNWRITTEN: c_int = c_int::MIN + 1;

impl Number {
    /// Makes a place for a result.
    #[inline(always)]
    pub fn out(at: *mut c_int, _inward: fn(c_int) -> c_int) -> Number {
        let value = UNWRITTEN;
        Number { at, value }
    }

    /// Makes a place for a number that the call changes.
    pub fn changed(at: *mut c_int, inward: fn(c_int) -> c_int) -> Number {
        let value = match at.is_null() {
            true => UNWRITTEN,
            // SAFETY: by the C contract the number is readable.
            false => inward(unsafe { *at }),
        };
        Number { at, value }
    }

    /// Returns the address to which the core writes, or null if the caller passes null.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut c_int {
        match self.at.is_null() {
            true => null_mut(),
            false => &mut self.value,
        }
    }

    /// Writes the number to the caller, if the core has set it.
    #[inline(always)]
    pub fn give(self, outward: fn(c_int) -> c_int) {
        if !self.at.is_null() && self.value != UNWRITTEN {
            // SAFETY: by the C contract the result is writable.
            unsafe { *self.at = outward(self.value) };
        }
    }
}

/// A result that is a status.
pub struct Outcome {
    at: *mut Status,
    value: abi::Status,
}

/// Returns a status that the core has not written. Most calls do not set its error.
#[inline(always)]
pub const fn unwritten() -> abi::Status {
    let mut status = abi::Status::empty(UNWRITTEN);
    status.tag = UNWRITTEN;
    status.error = UNWRITTEN;
    status
}

/// Converts a caller's status to the core's.
///
/// # Safety
/// `status` is readable.
pub unsafe fn inward(status: *const Status) -> abi::Status {
    // SAFETY: the caller guarantees valid pointers.
    let status = unsafe { *status };
    let mut core = abi::Status::empty(roles::rank::inward(status.source));
    core.tag = roles::tag::inward(status.tag);
    core.error = roles::code::inward(status.error);
    status.give(&mut core);
    core
}

/// Writes those members of a status that the core has written.
///
/// # Safety
/// `to` is writable.
#[inline(always)]
pub unsafe fn outward(core: &abi::Status, to: *mut Status) {
    // SAFETY: the caller guarantees valid pointers.
    unsafe {
        if core.source != UNWRITTEN || core.tag != UNWRITTEN {
            (*to).source = roles::rank::outward(core.source);
            (*to).tag = roles::tag::outward(core.tag);
            (*to).take(core);
        }
        if core.error != UNWRITTEN {
            (*to).error = roles::code::outward(core.error);
        }
    }
}

/// Returns whether the caller ignores the status.
#[inline(always)]
pub fn is_ignored(status: *const Status) -> bool {
    status.is_null() || status as usize == STATUS_IGNORE
}

impl Outcome {
    /// Makes a place for a result.
    #[inline(always)]
    pub fn out(at: *mut Status) -> Outcome {
        let value = unwritten();
        Outcome { at, value }
    }

    /// Makes a place for a status that the call changes.
    pub fn changed(at: *mut Status) -> Outcome {
        let value = match is_ignored(at) {
            true => unwritten(),
            // SAFETY: by the C contract the status is readable.
            false => unsafe { inward(at) },
        };
        Outcome { at, value }
    }

    /// Makes a place for a status that the call reads.
    pub fn given(at: *const Status) -> Outcome {
        Outcome::changed(at.cast_mut())
    }

    /// Returns the core's status, or null if it is ignored.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut abi::Status {
        match is_ignored(self.at) {
            true => null_mut(),
            false => &mut self.value,
        }
    }

    /// Writes to the caller what the core has set.
    #[inline(always)]
    pub fn give(self) {
        if !is_ignored(self.at) {
            // SAFETY: by the C contract the result is writable.
            unsafe { outward(&self.value, self.at) };
        }
    }
}
