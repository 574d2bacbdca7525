//! Arrays of handles and of statuses: short ones without an allocation.

use std::mem::MaybeUninit;
use std::ptr::null_mut;

use regatta_mpi::abi;

use crate::outer::{Handle, Status};
use crate::places::{is_ignored, outward, unwritten};

/// Longer arrays are allocated.
const SHORT: usize = 32;

/// So many elements; short arrays lie in place.
enum Elements<T> {
    Short([MaybeUninit<T>; SHORT], usize),
    Long(Vec<T>),
}

impl<T: Copy> Elements<T> {
    #[inline(always)]
    fn new(length: usize, element: impl Fn(usize) -> T) -> Elements<T> {
        if length > SHORT {
            return Elements::Long((0..length).map(element).collect());
        }
        let mut all = [const { MaybeUninit::uninit() }; SHORT];
        for (index, place) in all[..length].iter_mut().enumerate() {
            place.write(element(index));
        }
        Elements::Short(all, length)
    }

    #[inline(always)]
    fn slice(&mut self) -> &mut [T] {
        match self {
            // SAFETY: so many have been written.
            Elements::Short(all, length) => unsafe { all[..*length].assume_init_mut() },
            Elements::Long(all) => all,
        }
    }
}

/// An array of handles.
pub struct Handles<H: Handle> {
    at: *mut H,
    elements: Elements<H::Core>,
}

/// A caller's array, constant or not.
pub trait Array<T> {
    /// Its address.
    fn address(self) -> *mut T;
}

impl<T> Array<T> for *mut T {
    fn address(self) -> *mut T {
        self
    }
}

impl<T> Array<T> for *const T {
    fn address(self) -> *mut T {
        self.cast_mut()
    }
}

impl<H: Handle> Handles<H> {
    /// Of so many elements; none if it is null or the number negative.
    #[inline(always)]
    pub fn of(array: impl Array<H>, length: i64) -> Handles<H> {
        let at = array.address();
        let length = match at.is_null() {
            true => 0,
            false => usize::try_from(length).unwrap_or(0),
        };
        // SAFETY: callers of MPI give as many elements as they say.
        let elements = Elements::new(length, |index| unsafe { *at.add(index) }.inward());
        Handles { at, elements }
    }

    /// The core's array; null for none.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut H::Core {
        match self.at.is_null() {
            true => null_mut(),
            false => self.elements.slice().as_mut_ptr(),
        }
    }

    /// Gives the caller all of them.
    #[inline(always)]
    pub fn give(mut self) {
        for (index, &core) in self.elements.slice().iter().enumerate() {
            // SAFETY: the caller's array, of as many elements, which calls of MPI may write.
            unsafe { *self.at.add(index) = H::outward(core) };
        }
    }
}

/// An array of statuses, for results.
pub struct Statuses {
    at: *mut Status,
    elements: Elements<abi::Status>,
}

impl Statuses {
    /// Of so many elements; none if they are ignored.
    #[inline(always)]
    pub fn of(at: *mut Status, length: i64) -> Statuses {
        let length = match is_ignored(at) {
            true => 0,
            false => usize::try_from(length).unwrap_or(0),
        };
        let elements = Elements::new(length, |_| unwritten());
        Statuses { at, elements }
    }

    /// The core's array; null for none.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut abi::Status {
        match is_ignored(self.at) {
            true => null_mut(),
            false => self.elements.slice().as_mut_ptr(),
        }
    }

    /// Gives the caller those that the core has written.
    #[inline(always)]
    pub fn give(mut self) {
        for (index, core) in self.elements.slice().iter().enumerate() {
            // SAFETY: the caller's array, of as many elements.
            unsafe { outward(core, self.at.add(index)) };
        }
    }
}
