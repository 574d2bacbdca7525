//! Arrays of handles and of statuses: short ones without an allocation.

use std::mem::MaybeUninit;
use std::ptr::null_mut;

use regatta_mpi::abi;

use crate::outer::{Handle, Status};
use crate::places::{is_ignored, outward, unwritten};

/// Maximum number of elements of an array for which no memory is allocated.
const INLINE_ELEMENTS: usize = 32;

/// Room for an array, which is not written to before it is used, and never moved.
pub struct Room<T> {
    short: [MaybeUninit<T>; INLINE_ELEMENTS],
    long: Vec<T>,
}

impl<T: Copy> Room<T> {
    /// Room for any array.
    #[inline(always)]
    pub const fn new() -> Room<T> {
        Room {
            short: [const { MaybeUninit::uninit() }; INLINE_ELEMENTS],
            long: Vec::new(),
        }
    }

    /// This many elements.
    #[inline(always)]
    fn fill(&mut self, length: usize, element: impl Fn(usize) -> T) -> &mut [T] {
        if length > INLINE_ELEMENTS {
            self.long.extend((0..length).map(element));
            return &mut self.long;
        }
        let all = &mut self.short[..length];
        for (index, place) in all.iter_mut().enumerate() {
            place.write(element(index));
        }
        // SAFETY: all of them have been written.
        unsafe { all.assume_init_mut() }
    }
}

/// An array of handles.
pub struct Handles<'a, H: Handle> {
    at: *mut H,
    elements: &'a mut [H::Core],
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

impl<'a, H: Handle> Handles<'a, H> {
    /// Of so many elements; none if it is null or the number negative.
    #[inline(always)]
    pub fn of(array: impl Array<H>, length: i64, room: &'a mut Room<H::Core>) -> Handles<'a, H> {
        let at = array.address();
        let length = match at.is_null() {
            true => 0,
            false => usize::try_from(length).unwrap_or(0),
        };
        // SAFETY: callers of MPI give as many elements as they say.
        let elements = room.fill(length, |index| unsafe { *at.add(index) }.inward());
        Handles { at, elements }
    }

    /// The core's array; null for none.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut H::Core {
        match self.at.is_null() {
            true => null_mut(),
            false => self.elements.as_mut_ptr(),
        }
    }

    /// Gives the caller all of them.
    #[inline(always)]
    pub fn give(self) {
        for (index, &core) in self.elements.iter().enumerate() {
            // SAFETY: the caller's array, of as many elements, which calls of MPI may write.
            unsafe { *self.at.add(index) = H::outward(core) };
        }
    }
}

/// An array of statuses, for results.
pub struct Statuses<'a> {
    at: *mut Status,
    elements: &'a mut [abi::Status],
}

impl<'a> Statuses<'a> {
    /// Of so many elements; none if they are ignored.
    #[inline(always)]
    pub fn of(at: *mut Status, length: i64, room: &'a mut Room<abi::Status>) -> Statuses<'a> {
        let length = match is_ignored(at) {
            true => 0,
            false => usize::try_from(length).unwrap_or(0),
        };
        let elements = room.fill(length, |_| unwritten());
        Statuses { at, elements }
    }

    /// The core's array; null for none.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut abi::Status {
        match is_ignored(self.at) {
            true => null_mut(),
            false => self.elements.as_mut_ptr(),
        }
    }

    /// Gives the caller those that the core has written.
    #[inline(always)]
    pub fn give(self) {
        for (index, core) in self.elements.iter().enumerate() {
            // SAFETY: the caller's array, of as many elements.
            unsafe { outward(core, self.at.add(index)) };
        }
    }
}
