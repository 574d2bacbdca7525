//! Places for results: the core writes into one here, whose content is translated and given to the caller.

use std::ffi::c_int;
use std::ptr::null_mut;

use regatta_mpi::abi;

use crate::outer::{Handle, Status};
use crate::roles;
use crate::values::STATUS_IGNORE;

/// A place for a handle.
pub struct Place<H: Handle> {
    at: *mut H,
    /// The core's.
    pub value: H::Core,
}

impl<H: Handle> Place<H> {
    /// Of a result.
    #[inline(always)]
    pub fn out(at: *mut H) -> Place<H> {
        let value = H::NOTHING;
        Place { at, value }
    }

    /// Of a handle that the call changes.
    #[inline(always)]
    pub fn changed(at: *mut H) -> Place<H> {
        let value = match at.is_null() {
            true => H::NOTHING,
            // SAFETY: callers of MPI give a handle that may be read.
            false => unsafe { *at }.inward(),
        };
        Place { at, value }
    }

    /// Where the core writes; null if the caller gave no place.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut H::Core {
        match self.at.is_null() {
            true => null_mut(),
            false => &mut self.value,
        }
    }

    /// Gives the caller the handle, if there is one.
    #[inline(always)]
    pub fn give(&self) {
        if !self.at.is_null() && self.value != H::NOTHING {
            // SAFETY: callers of MPI give a place that may be written.
            unsafe { *self.at = H::outward(self.value) };
        }
    }
}

/// A place for a number with a role.
pub struct Number {
    at: *mut c_int,
    value: c_int,
}

/// A number that the core has not written.
const UNWRITTEN: c_int = c_int::MIN + 1;

impl Number {
    /// Of a result.
    #[inline(always)]
    pub fn out(at: *mut c_int, _inward: fn(c_int) -> c_int) -> Number {
        let value = UNWRITTEN;
        Number { at, value }
    }

    /// Of a number that the call changes.
    pub fn changed(at: *mut c_int, inward: fn(c_int) -> c_int) -> Number {
        let value = match at.is_null() {
            true => UNWRITTEN,
            // SAFETY: callers of MPI give a number that may be read.
            false => inward(unsafe { *at }),
        };
        Number { at, value }
    }

    /// Where the core writes; null if the caller gave no place.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut c_int {
        match self.at.is_null() {
            true => null_mut(),
            false => &mut self.value,
        }
    }

    /// Gives the caller the number, if the core has written one.
    #[inline(always)]
    pub fn give(self, outward: fn(c_int) -> c_int) {
        if !self.at.is_null() && self.value != UNWRITTEN {
            // SAFETY: callers of MPI give a place that may be written.
            unsafe { *self.at = outward(self.value) };
        }
    }
}

/// A place for a status.
pub struct Outcome {
    at: *mut Status,
    value: abi::Status,
}

/// A status that the core has not written. Most calls leave its error alone.
#[inline(always)]
pub const fn unwritten() -> abi::Status {
    let mut status = abi::Status::empty(UNWRITTEN);
    status.tag = UNWRITTEN;
    status.error = UNWRITTEN;
    status
}

/// The core's form of a caller's status.
///
/// # Safety
/// It may be read.
pub unsafe fn inward(status: *const Status) -> abi::Status {
    // SAFETY: the caller's promise.
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
/// It may be written.
#[inline(always)]
pub unsafe fn outward(core: &abi::Status, to: *mut Status) {
    // SAFETY: the caller's promise.
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

/// Whether a caller wants no status.
#[inline(always)]
pub fn is_ignored(status: *const Status) -> bool {
    status.is_null() || status as usize == STATUS_IGNORE
}

impl Outcome {
    /// Of a result.
    #[inline(always)]
    pub fn out(at: *mut Status) -> Outcome {
        let value = unwritten();
        Outcome { at, value }
    }

    /// Of a status that the call changes.
    pub fn changed(at: *mut Status) -> Outcome {
        let value = match is_ignored(at) {
            true => unwritten(),
            // SAFETY: callers of MPI give a status that may be read.
            false => unsafe { inward(at) },
        };
        Outcome { at, value }
    }

    /// Of a status that the call reads.
    pub fn given(at: *const Status) -> Outcome {
        Outcome::changed(at.cast_mut())
    }

    /// The core's status; null for none.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut abi::Status {
        match is_ignored(self.at) {
            true => null_mut(),
            false => &mut self.value,
        }
    }

    /// Gives the caller what the core has written.
    #[inline(always)]
    pub fn give(self) {
        if !is_ignored(self.at) {
            // SAFETY: callers of MPI give a place that may be written.
            unsafe { outward(&self.value, self.at) };
        }
    }
}
