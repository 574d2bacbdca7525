//! Statuses. MPItrampoline's has the words of the MPI library first, and the public fields after them.

use std::ffi::c_int;

/// A status of the standard ABI.
pub mod standard {
    use std::ffi::c_int;

    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    pub struct Status {
        pub source: c_int,
        pub tag: c_int,
        pub error: c_int,
        pub internal: [c_int; 5],
    }
}

/// A status of MPItrampoline's ABI.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct Status {
    internal: [c_int; 5],
    unused: c_int,
    source: c_int,
    tag: c_int,
    error: c_int,
}

const _: () = assert!(size_of::<Status>() == 40 && size_of::<standard::Status>() == 32);

impl Status {
    pub fn inward(&self) -> standard::Status {
        standard::Status {
            source: self.source,
            tag: self.tag,
            error: self.error,
            internal: self.internal,
        }
    }

    pub fn outward(status: &standard::Status) -> Status {
        Status {
            internal: status.internal,
            unused: 0,
            source: status.source,
            tag: status.tag,
            error: status.error,
        }
    }
}

/// Number of statuses up to which an array needs no allocation.
const IN_PLACE: usize = 16;

/// The standard ABI's statuses during a call, and the address of the caller's. MPI does not write some words of a
/// status, so each begins as a copy of the caller's.
pub struct Statuses {
    /// The caller's statuses; null if they are ignored.
    outer: *mut Status,
    count: usize,
    few: [standard::Status; IN_PLACE],
    many: Vec<standard::Status>,
}

impl Statuses {
    /// Copies one status; an ignored status has no copy.
    ///
    /// # Safety
    ///
    /// The pointer is null or points to a status.
    #[inline(always)]
    pub unsafe fn one(status: *mut Status) -> OneStatus {
        OneStatus {
            outer: status,
            // SAFETY: the caller guarantees that the pointer is null or points to a status.
            inner: unsafe { status.as_ref() }.map_or_else(Default::default, Status::inward),
        }
    }

    /// Copies an array of statuses.
    ///
    /// # Safety
    ///
    /// The pointer is null or points to this many statuses.
    pub unsafe fn several(statuses: *mut Status, count: c_int) -> Statuses {
        let count = if statuses.is_null() {
            0
        } else {
            count.max(0) as usize
        };
        let mut all = Statuses {
            outer: statuses,
            count,
            few: [standard::Status::default(); IN_PLACE],
            many: Vec::new(),
        };
        if count > IN_PLACE {
            all.many.resize(count, standard::Status::default());
        }
        for at in 0..count {
            // SAFETY: the index is within the caller's array.
            all.inner()[at] = unsafe { &*statuses.add(at) }.inward();
        }
        all
    }

    fn inner(&mut self) -> &mut [standard::Status] {
        match self.count {
            0..=IN_PLACE => &mut self.few,
            _ => &mut self.many,
        }
    }

    /// Returns the pointer that is passed to the call; null if the statuses are ignored.
    pub fn place(&mut self) -> *mut standard::Status {
        match self.outer.is_null() {
            true => std::ptr::null_mut(),
            false => self.inner().as_mut_ptr(),
        }
    }

    /// Copies to the caller's statuses what the call has written.
    ///
    /// # Safety
    ///
    /// The caller's statuses are still valid.
    pub unsafe fn give(&mut self) {
        for at in 0..self.count {
            let status = Status::outward(&self.inner()[at]);
            // SAFETY: the index is within the caller's array.
            unsafe { *self.outer.add(at) = status };
        }
    }
}

/// One status during a call.
pub struct OneStatus {
    outer: *mut Status,
    inner: standard::Status,
}

impl OneStatus {
    /// Returns the pointer that is passed to the call; null if the status is ignored.
    #[inline(always)]
    pub fn place(&mut self) -> *mut standard::Status {
        match self.outer.is_null() {
            true => std::ptr::null_mut(),
            false => &mut self.inner,
        }
    }

    /// Copies to the caller's status what the call has written.
    ///
    /// # Safety
    ///
    /// The caller's status is still valid.
    #[inline(always)]
    pub unsafe fn give(&mut self) {
        // SAFETY: the pointer is null or valid, as the caller guarantees.
        if let Some(outer) = unsafe { self.outer.as_mut() } {
            *outer = Status::outward(&self.inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(source: c_int) -> Status {
        Status::outward(&standard::Status {
            source,
            tag: 2,
            error: 3,
            internal: [4, 5, 6, 7, 8],
        })
    }

    #[test]
    fn ignored_statuses_stay_ignored() {
        // SAFETY: all pointers are null.
        unsafe {
            assert!(Statuses::one(std::ptr::null_mut()).place().is_null());
            let mut several = Statuses::several(std::ptr::null_mut(), 3);
            assert!(several.place().is_null());
            several.give();
        }
    }

    #[test]
    fn what_a_call_writes_is_given_and_the_rest_stays() {
        for count in [IN_PLACE, IN_PLACE + 1] {
            let mut outer = vec![status(1); count + 1];
            // SAFETY: the array has `count + 1` elements.
            unsafe {
                let mut several = Statuses::several(outer.as_mut_ptr(), count as c_int);
                (*several.place().add(count - 1)).source = 9;
                several.give();
            }
            assert_eq!((outer[count - 1].source, outer[count].source), (9, 1));
            assert_eq!(outer[0].inward().internal, [4, 5, 6, 7, 8]);
            assert_eq!((outer[0].tag, outer[0].error), (2, 3));
        }
    }
}
