//! Arrays of handles and statuses. Short ones do not allocate.

use std::mem::MaybeUninit;
use std::ptr::null_mut;

use regatta_mpi::abi;

use crate::outer::{Handle, Status};
use crate::places::{is_ignored, outward, unwritten};

/// Maximum number of elements of an array that does not allocate.
const INLINE_ELEMENTS: usize = 32;

/// Memory for an array. It is uninitialised until it is used, and must not be moved then.
pub struct Room<T> {
    short: [MaybeUninit<T>; INLINE_ELEMENTS],
    long: Vec<T>,
}

impl<T: Copy> Room<T> {
    /// Returns room for any array.
    #[inline(always)]
    pub const fn new() -> Room<T> {
        Room {
            short: [const { MaybeUninit::uninit() }; INLINE_ELEMENTS],
            long: Vec::new(),
        }
    }

    /// Initialises this many elements.
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
        // SAFETY: all these elements have been initialised.
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
    /// Returns its address.
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
    /// Converts an array to the core's handles. It is empty if the array is null or the length negative.
    #[inline(always)]
    pub fn of(array: impl Array<H>, length: i64, room: &'a mut Room<H::Core>) -> Handles<'a, H> {
        let at = array.address();
        let length = match at.is_null() {
            true => 0,
            false => usize::try_from(length).unwrap_or(0),
        };
        // SAFETY: by the C contract the array has `length` elements.
        let elements = room.fill(length, |index| unsafe { *at.add(index) }.inward());
        Handles { at, elements }
    }

    /// Returns the core's array, or null if there is none.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut H::Core {
        match self.at.is_null() {
            true => null_mut(),
            false => self.elements.as_mut_ptr(),
        }
    }

    /// Writes all handles back to the caller's array.
    #[inline(always)]
    pub fn give(self) {
        for (index, &core) in self.elements.iter().enumerate() {
            // SAFETY: by the C contract the array has this many elements, and this call may write them.
            unsafe { *self.at.add(index) = H::outward(core) };
        }
    }
}

/// An array of statuses for results.
pub struct Statuses<'a> {
    at: *mut Status,
    elements: &'a mut [abi::Status],
}

impl<'a> Statuses<'a> {
    /// Makes an array of this length. It is empty if the caller ignores the statuses.
    #[inline(always)]
    pub fn of(at: *mut Status, length: i64, room: &'a mut Room<abi::Status>) -> Statuses<'a> {
        let length = match is_ignored(at) {
            true => 0,
            false => usize::try_from(length).unwrap_or(0),
        };
        let elements = room.fill(length, |_| unwritten());
        Statuses { at, elements }
    }

    /// Returns the core's array, or null if the statuses are ignored.
    #[inline(always)]
    pub fn pass(&mut self) -> *mut abi::Status {
        match is_ignored(self.at) {
            true => null_mut(),
            false => self.elements.as_mut_ptr(),
        }
    }

    /// Writes the statuses that the core has set to the caller's array.
    #[inline(always)]
    pub fn give(self) {
        for (index, core) in self.elements.iter().enumerate() {
            // SAFETY: by the C contract the array has this many elements.
            unsafe { outward(core, self.at.add(index)) };
        }
    }
}
